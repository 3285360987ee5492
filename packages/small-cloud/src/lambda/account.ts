/** A Lambda account: its instances, keys and file systems. */
import { stateOf } from '../machines/history'
import type { Provider, ProviderParts } from '../provider'
import { drawMs } from '../world/world'
import { LambdaLife } from './life'
import { LambdaMarket } from './market'
import { ENDED, type FileSystem, type LambdaInstance, type SshKey } from './model'
import { LAMBDA_REGIONS, LAMBDA_TYPES, type LambdaType } from './types'
import type { LambdaPlan } from './world'

export class LambdaAccount {
  readonly plan: LambdaPlan
  readonly apiKey: string
  readonly market: LambdaMarket
  readonly life: LambdaLife
  readonly instances = new Map<string, LambdaInstance>()
  readonly sshKeys: SshKey[]
  readonly fileSystems: FileSystem[]
  private launched = 0

  constructor(readonly parts: ProviderParts) {
    const { world, clock } = parts
    this.plan = world.lambda
    this.apiKey = world.lambda.apiKey ?? parts.keys.lambda
    this.market = new LambdaMarket(this.plan, clock, world.speed)
    this.life = new LambdaLife({ ...parts, forget: ({ id }) => this.instances.delete(id) })
    this.sshKeys = this.plan.sshKeys.map((name) => ({ id: this.id(), name, publicKey: 'ssh-ed25519 AAAA' }))
    this.fileSystems = this.plan.fileSystems.map((each) => ({
      id: this.id(),
      ...each,
      createdAtMs: clock.nowMs(),
    }))
  }

  get nowMs(): number {
    return this.parts.clock.nowMs()
  }

  /** 32 hexadecimal digits. */
  id(): string {
    return this.parts.ids.uuid().replaceAll('-', '')
  }

  /** The instances that the API shows now, oldest first. */
  visible(): LambdaInstance[] {
    return [...this.instances.values()].filter(({ visibleAtMs }) => visibleAtMs <= this.nowMs)
  }

  /** The instant whose states lists show. */
  shownAtMs(): number {
    return this.nowMs - drawMs(this.parts.world, 'staleList')
  }

  /** The instances of a type in a region that take a place. */
  taken(type?: string, region?: string): number {
    return [...this.instances.values()].filter(
      (each) =>
        !ENDED.includes(stateOf(each)) &&
        (type ?? each.type.name) === each.type.name &&
        (region ?? each.region) === each.region,
    ).length
  }

  /** The regions in which a type is in stock. */
  regionsWith(type: LambdaType): string[] {
    return type.regions.filter(
      (region) => this.market.stockOf(type.name, region) > this.taken(type.name, region),
    )
  }

  launch(
    wish: Pick<LambdaInstance, 'name' | 'region' | 'type' | 'sshKey' | 'mounts' | 'tags' | 'userData'> & {
      hostname: string | undefined
    },
  ): LambdaInstance {
    const number = ++this.launched
    const privateIp = `172.27.${124 + (number >> 8)}.${number & 255}`
    const instance: LambdaInstance = {
      ...wish,
      id: this.id(),
      // TEST-NET-2: these addresses are reserved for documentation and lead nowhere.
      ip: `198.51.100.${1 + (number % 254)}`,
      privateIp,
      hostname: wish.hostname ?? privateIp.replaceAll('.', '-'),
      launchedAtMs: this.nowMs,
      visibleAtMs: this.nowMs + drawMs(this.parts.world, 'notFound'),
      history: [{ atMs: this.nowMs, state: 'booting' }],
      isImpaired: false,
    }
    this.instances.set(instance.id, instance)
    this.life.begin(instance)
    return instance
  }

  /** Whether a launch fails for want of capacity: a fault makes it fail although the list of types shows capacity. */
  hasRoom(type: LambdaType, region: string): boolean {
    const occasion = { service: 'lambda', region, type: type.name, capacity: 'on-demand' }
    const isEmpty = this.parts.faults.first('no-capacity', occasion) !== undefined
    return !isEmpty && this.regionsWith(type).includes(region)
  }

  interrupt: Provider['interrupt'] = (id) => {
    const instance = this.instances.get(id)
    if (instance !== undefined) this.life.preempt(instance)
    return instance !== undefined
  }
}

export function typeNamed(name: string): LambdaType | undefined {
  return LAMBDA_TYPES.find((type) => type.name === name)
}

export function hasRegion(name: string): boolean {
  return Object.hasOwn(LAMBDA_REGIONS, name)
}
