/** Assembles the parts of a cloud. */
import { SpotAdvisor } from './prices/spot-advisor'
import type { Front } from './wire/server'
import type { Clock } from './clock'
import { Control } from './control'
import { Ec2 } from './ec2/ec2'
import { Life, occasionOf } from './ec2/life'
import type { Instance, Region } from './ec2/model'
import { PowerSupply } from './ec2/power'
import { ec2Service } from './ec2/service'
import { HttpFront } from './http/front'
import { iamService } from './identity/iam'
import { Identities } from './identity/identities'
import { stsService } from './identity/sts'
import { Ids } from './ids'
import { drawKeys, type CloudKeys } from './keys'
import type { CloudOptions } from './index'
import { Journal } from './journal'
import { createMachine } from './machines/machine'
import { MachinePool } from './machines/pool'
import { freeTierService } from './prices/free-tier'
import { pricingService } from './prices/pricing'
import { QuotaBook } from './prices/quota-book'
import { quotaService } from './prices/quota-service'
import type { Provider } from './provider'
import { PROVIDERS } from './providers'
import { ecrService } from './registry/ecr'
import { Registries } from './registry/registries'
import { RegistryTokens } from './registry/tokens'
import { Agents } from './ssm/agents'
import { ssmService } from './ssm/service'
import type { StoreFront } from './store-front'
import { Dispatch } from './wire/dispatch'
import type { Service } from './wire/service'
import { Throttle } from './wire/throttle'
import { Faults } from './world/faults'
import { Market } from './world/market'
import { drawMs, type World } from './world/world'

/** The inputs from which a cloud is assembled. */
export interface Ingredients {
  options: CloudOptions
  world: World
  clock: Clock
  /** Folder of the machines' disks. */
  directory: string
}

/** The addresses of the cloud, known only once it listens. */
interface Addresses {
  services?: string
  store?: StoreFront
}

export interface Assembly {
  world: World
  clock: Clock
  addresses: Addresses
  keys: CloudKeys
  identities: Identities
  faults: Faults
  journal: Journal
  ec2: Ec2
  pool: MachinePool
  providers: readonly Provider[]
  fronts: readonly Front[]
  control: Control
  dispatch: Dispatch
}

/** The parts that all providers share. */
interface Ground {
  world: World
  clock: Clock
  addresses: Addresses
  keys: CloudKeys
  ids: Ids
  faults: Faults
  journal: Journal
  pool: MachinePool
}

export function assemble({ options, world, clock, directory }: Ingredients): Assembly {
  const addresses: Addresses = {}
  const keys = drawKeys()
  const ids = new Ids(world.random, String(clock.nowMs()))
  const faults = new Faults(world.faults, clock, world.random)
  const journal = new Journal()
  const pool = new MachinePool({
    clock,
    faults,
    directory,
    createMachine: options.createMachine ?? createMachine,
    environment: () => environmentOf(addresses),
    draw: (name) => drawMs(world, name),
  })
  const ground = { world, clock, addresses, keys, ids, faults, journal, pool }
  const { identities, ec2, life, registries, dispatch } = assembleAws(ground)
  const providers = PROVIDERS.map((create) => create({ ...ground, registries }))
  const fronts = providers.map(
    ({ service }) => new HttpFront({ service, faults, journal, clock, requestId: () => ids.uuid() }),
  )
  const control = new Control({ ec2, life, journal, faults, providers })
  const all = [...fronts, new SpotAdvisor(world)]
  return { ...ground, identities, ec2, providers, fronts: all, control, dispatch }
}

function assembleAws({ world, clock, keys, ids, faults, journal, pool }: Ground) {
  const nowMs = (): number => clock.nowMs()
  const market = new Market(world, clock)
  const identities = new Identities({ world, clock, ids, keys })
  const throttle = new Throttle(world, clock)
  const tokens = new RegistryTokens(world, clock, ids)
  const registries = new Registries({ world, clock, faults, identities, tokens })
  const quotas = new QuotaBook(world, nowMs)
  const regionOf = ({ region }: Instance): Region => ec2.region(region)
  const power: PowerSupply = new PowerSupply({
    world,
    clock,
    identities,
    pool,
    regionOf,
    registriesFor: (instance) => (question) =>
      registries.ask(question, { occasion: occasionOf(instance), hasInternet: power.hasInternet(instance) }),
  })
  const life = new Life({ world, clock, faults, market, pool, power, regionOf })
  const ec2: Ec2 = new Ec2({
    world,
    clock,
    ids,
    market,
    faults,
    throttle,
    identities,
    quotas,
    lifecycle: life,
  })
  const agents = new Agents(ec2)
  life.whenAgentRegisters((instance) => agents.register(instance))
  const services: Service[] = [
    ec2Service(ec2),
    ssmService(ec2, agents),
    stsService(world, identities),
    iamService(world, identities),
    ecrService(world, tokens),
    pricingService(world, market, nowMs),
    freeTierService(world, nowMs),
    quotaService({ world, id: () => ids.uuid(), nowMs, book: quotas }),
  ]
  const dispatch = new Dispatch({
    services: new Map(services.map((service) => [service.name, service])),
    identities,
    faults,
    throttle,
    journal,
    clock,
    regions: world.regions,
    requestId: () => ids.uuid(),
    wallMs: () => Date.now() + world.ahead,
  })
  return { identities, ec2, life, registries, dispatch }
}

/** Variables that give programs on a machine the addresses of the services. */
function environmentOf({ services = '', store }: Addresses): Record<string, string> {
  return {
    AWS_ENDPOINT_URL: services,
    ...(store === undefined ? {} : { AWS_ENDPOINT_URL_S3: store.endpoint }),
  }
}
