import {
  AwsError,
  type Ec2Api,
  type FleetAnswer,
  type FleetRequest,
  type Machine,
} from '../../../backends/ec2/sdk/api'
import type {
  Bucket,
  Reservation,
  ReservedRequest,
  QuotaRequest,
  TemplateSpec,
  Volume,
} from '../../../backends/ec2/sdk/api'
import type { SpotRequest } from '../../../backends/ec2/sdk/api-leftovers'
import type { CommandRequest, InvocationResult } from '../../../backends/ec2/sdk/api-commands'
import { answered } from './fake-error'
import { FakeMachine } from './fake-machine'
import { FakeReserving } from './fake-reserving'
import { GROUPS, IMAGES, ON_DEMAND_USD, poolKey, SPOT_USD, SUBNETS, TYPES } from './fake-market'

export { answered }

type TemplateWish = Parameters<Ec2Api['leftovers']['templates']>[0]

/** Something that goes wrong with the next call of a name, in the place of it or after it. */
export interface Fault {
  call: string
  /** `instead`: it has no effect. `after`: it has, and its answer is lost. `hangs`: it has, and nothing ever answers. */
  when: 'instead' | 'after' | 'hangs'
  error?: AwsError
}

interface SentCommand extends CommandRequest {
  id: string
  atMs: number
  result: InvocationResult
}

/**
 * The provider at the boundary of `api.ts`: pools that run dry, tokens that are honoured, lists that lag, agents that
 * register after a while. What is asked of it is kept.
 */
export class FakeAws {
  readonly calls: { name: string; detail: unknown }[] = []
  readonly faults: Fault[] = []
  readonly machines = new Map<string, FakeMachine>()
  readonly templates = new Map<string, TemplateSpec>()
  readonly volumes: Volume[] = []
  readonly spotRequests: SpotRequest[] = []
  /** When each launch template was made, by its name. */
  readonly templateTimes = new Map<string, number>()
  readonly quotas = new Map<string, number>()
  readonly objects = new Set<string>()
  denied: string[] = []
  readonly quotaRequests: QuotaRequest[] = []
  /** Pools without a machine, by `poolKey`; all others have plenty. */
  readonly empty = new Map<string, string>()
  /** How long a change takes to show in lists. */
  staleForMs = 0
  /** From its launch until a machine's agent registers; `null` for never. */
  registersAfterMs: number | null = 0
  isBroken = false
  defaultRoute: string | undefined = 'igw-1'
  endpoints: string[] = []
  profile: { roleName?: string; policies: string[] } | undefined = {
    roleName: 'machine',
    policies: ['AmazonSSMManagedInstanceCore'],
  }
  /** What the role of the machines may do. */
  machineMay: string[] = []
  /** Those of services. */
  roles = ['AWSServiceRoleForEC2Spot']
  clockAheadMs = 0
  readonly roleArns = new Map<string, string>()
  plan: 'free' | 'paid' = 'paid'
  bucketRegion: string | undefined = 'us-east-1'
  keepsPutIfAbsent = true
  subnets = SUBNETS
  groups = GROUPS
  /** Of an architecture, a name stands for the first. */
  images = IMAGES
  prices: ReadonlyMap<string, string> | undefined = ON_DEMAND_USD
  diskUsdPerGiBMonth: string | undefined = '0.08'
  transferUsdPerGb: string | undefined = '0.02'
  spotPrices: typeof SPOT_USD | undefined = SPOT_USD
  reservations: Reservation[] = []
  /** Into which nothing more goes, though they show free places. */
  readonly late = new Set<string>()
  /** What spot cost when, the oldest first. */
  spotHistory: { type: string; zone: string; atMs: number; usdPerHour: string }[] = []
  /** What a command does on its machine, where that is of interest. */
  onCommand: ((machine: FakeMachine, request: CommandRequest) => Partial<InvocationResult>) | undefined
  readonly #tokens = new Map<string, { body: string; answer: FleetAnswer | FakeMachine }>()
  readonly #commands: SentCommand[] = []
  readonly #fleets = new Map<string, FleetAnswer>()
  #count = 0

  /** What is bought in advance. */
  readonly reserving: FakeReserving

  constructor(
    readonly now: () => number = Date.now,
    region = 'us-east-1',
  ) {
    this.reserving = new FakeReserving(region, now, (id) => this.#takenOf(id))
  }

  countOf(name: string): number {
    return this.calls.filter((call) => call.name === name).length
  }

  machinesOf(attemptId: string): FakeMachine[] {
    return [...this.machines.values()].filter(({ tags }) => tags['crucible:attempt'] === attemptId)
  }

  fail(call: string, code: string, facts: { httpStatus?: number; message?: string } = {}): void {
    const { httpStatus = 400, message = `it was ${code}` } = facts
    this.faults.push({
      call,
      when: 'instead',
      error: new AwsError(message, { code, httpStatus, reach: 'answered' }),
    })
  }

  /** Buys a machine as a fleet would. */
  add(
    request: Pick<Machine, 'capacityType' | 'tags' | 'reservation'>,
    pool: { type: string; subnet: string },
  ): FakeMachine {
    const id = `i-${(++this.#count).toString(16).padStart(17, '0')}`
    const machine = new FakeMachine({
      id,
      type: pool.type,
      zone: this.subnets.find((subnet) => subnet.id === pool.subnet)!.zone,
      subnet: pool.subnet,
      capacityType: request.capacityType,
      launchedAtMs: this.now(),
      tags: { ...request.tags },
      ...(request.reservation !== undefined && { reservation: request.reservation }),
      now: this.now,
    })
    this.machines.set(id, machine)
    return machine
  }

  api(): Ec2Api {
    return {
      account: {
        identity: this.#verb('identity', () => ({
          ...{ account: '123456789012', arn: ARN, clockAheadMs: this.clockAheadMs },
        })),
        plan: this.#verb('plan', () => this.plan),
        quota: this.#verb('quota', (code: string) => this.quotas.get(code) ?? 768),
        deniedActions: this.#verb('deniedActions', (arn: string, { actions }: { actions: string[] }) =>
          actions.filter((action) =>
            arn.endsWith(`/${this.profile?.roleName}`)
              ? !this.machineMay.includes(action)
              : this.denied.includes(action),
          ),
        ),
        hasRole: this.#verb('hasRole', (name: string) => this.roles.includes(name)),
        roleArn: this.#verb('roleArn', (name: string) => this.roleArns.get(name)),
        quotaRequests: this.#verb('quotaRequests', () => this.quotaRequests),
        profile: this.#verb('profile', () => this.profile),
        parameter: this.#verb('parameter', (name: string) => {
          const image = this.images.find(({ architecture }) => name.includes(`/${architecture}/`))
          if (image === undefined) throw answered('ParameterNotFound')
          return image.id
        }),
        bucketRegion: this.#verb('bucketRegion', () => this.bucketRegion),
        putIfAbsent: this.#verb('putIfAbsent', ({ name: bucket }: Bucket, key: string) => {
          const isTaken = this.keepsPutIfAbsent && this.objects.has(`${bucket}/${key}`)
          this.objects.add(`${bucket}/${key}`)
          return !isTaken
        }),
        deleteObject: this.#verb('deleteObject', ({ name: bucket }: Bucket, key: string) => {
          this.objects.delete(`${bucket}/${key}`)
        }),
      },
      market: {
        types: this.#verb('types', () => TYPES),
        typeZones: this.#verb('typeZones', () =>
          TYPES.flatMap(({ name }) => this.subnets.map(({ zone }) => ({ type: name, zone }))),
        ),
        onDemandPrice: this.#verb('onDemandPrice', ({ type }: { type: string }) =>
          this.#have(this.prices).get(type),
        ),
        onDemandPrices: this.#verb('onDemandPrices', () => new Map(this.#have(this.prices))),
        diskUsdPerGiBMonth: this.#verb('diskUsdPerGiBMonth', () => this.#have(this.diskUsdPerGiBMonth)),
        transferUsdPerGb: this.#verb('transferUsdPerGb', () => this.#have(this.transferUsdPerGb)),
        spotPrices: this.#verb('spotPrices', () => [...this.#have(this.spotPrices)]),
        reservations: this.#verb('reservations', () =>
          [...this.reservations, ...this.reserving.listed()].map((one) => this.#shownOf(one)),
        ),
        spotPriceHistory: this.#verb('spotPriceHistory', (pool: { type: string; zone: string }) =>
          this.spotHistory.filter(({ type, zone }) => type === pool.type && zone === pool.zone),
        ),
        image: this.#verb('image', (id: string) => this.images.find((image) => image.id === id)),
      },
      network: {
        subnets: this.#verb('subnets', (wanted: string[] | 'default') =>
          wanted === 'default' ? this.subnets : this.subnets.filter(({ id }) => wanted.includes(id)),
        ),
        securityGroups: this.#verb('securityGroups', () => this.groups),
        defaultRoute: this.#verb('defaultRoute', () => this.defaultRoute),
        endpoints: this.#verb('endpoints', () => this.endpoints),
      },
      machines: {
        createFleet: this.#verb('createFleet', (request: FleetRequest) => this.#fleet(request)),
        fleet: this.#verb('fleet', (id: string) => this.#fleets.get(id)),
        runReserved: this.#verb('runReserved', (request: ReservedRequest) => this.#runReserved(request)),
        createTemplate: this.#verb('createTemplate', (spec: TemplateSpec) => {
          if (this.templates.has(spec.name))
            throw answered('InvalidLaunchTemplateName.AlreadyExistsException')
          this.templates.set(spec.name, spec)
          this.templateTimes.set(spec.name, this.now())
        }),
        byId: this.#verb('byId', (ids: string[]) => this.#shown().filter(({ id }) => ids.includes(id))),
        byTag: this.#verb('byTag', ({ name, value }: { name: string; value: string }) =>
          this.#shown().filter(({ tags }) => tags[name] === value),
        ),
        terminate: this.#verb('terminate', (id: string) => {
          const machine = this.machines.get(id)
          if (machine === undefined) throw answered('InvalidInstanceID.NotFound')
          machine.end({
            code: 'Client.UserInitiatedShutdown',
            message: 'Client.UserInitiatedShutdown: User initiated shutdown',
          })
        }),
        looseVolumes: this.#verb('looseVolumes', ({ name, value }: { name: string; value: string }) =>
          this.volumes.filter(({ tags }) => tags[name] === value),
        ),
        deleteVolume: this.#verb('deleteVolume', (id: string) => {
          const at = this.volumes.findIndex((volume) => volume.id === id)
          if (at < 0) throw answered('InvalidVolume.NotFound')
          this.volumes.splice(at, 1)
        }),
        console: this.#verb('console', (id: string) => {
          if (!this.machines.has(id)) throw answered('InvalidInstanceID.NotFound')
          return 'booted\n'
        }),
      },
      leftovers: {
        templates: this.#verb('templates', (wanted: TemplateWish) =>
          [...this.templates.values()]
            .map(({ name, tags }) => ({
              ...{ id: `lt-${name}`, name, tags },
              createdAtMs: this.templateTimes.get(name)!,
            }))
            .filter(({ id, tags }) =>
              'id' in wanted ? id === wanted.id : tags[wanted.tag.name] === wanted.tag.value,
            ),
        ),
        deleteTemplate: this.#verb('deleteTemplate', (id: string) => {
          if (!this.templates.delete(id.slice('lt-'.length)))
            throw answered('InvalidLaunchTemplateId.NotFound')
        }),
        spotRequests: this.#verb('spotRequests', (id: string | undefined) =>
          this.spotRequests.filter((request) => id === undefined || request.id === id),
        ),
        cancelSpotRequest: this.#verb('cancelSpotRequest', (id: string) => {
          const at = this.spotRequests.findIndex((request) => request.id === id)
          if (at < 0) throw answered('InvalidSpotInstanceRequestID.NotFound')
          this.spotRequests.splice(at, 1)
        }),
      },
      reserving: this.reserving.api((name, effect) => this.#verb(name, effect)),
      commands: {
        agent: this.#verb('agent', (id: string) => this.#agent(id)),
        send: this.#verb('send', (request: CommandRequest) => this.#send(request)),
        invocations: this.#verb('invocations', (machineId: string) =>
          this.#commands
            .filter((command) => command.machineId === machineId)
            .map(({ id, comment, atMs, result }) => ({
              ...{ commandId: id, comment, requestedAtMs: atMs },
              status: result.status,
            }))
            .reverse(),
        ),
        result: this.#verb(
          'result',
          (id: string) => this.#commands.find((command) => command.id === id)?.result,
        ),
      },
    }
  }

  #have<T>(value: T | undefined): T {
    if (value === undefined)
      throw new AwsError('connect ECONNREFUSED', { code: 'ECONNREFUSED', reach: 'unsent' })
    return value
  }

  /** One call, with what goes wrong about it. */
  #verb<A extends unknown[], T>(
    name: string,
    effect: (...values: A) => T,
  ): (...values: unknown[]) => Promise<T> {
    return async (...values) => {
      const signal = values.at(-1) as AbortSignal
      const given = values.slice(0, -1) as unknown as A
      if (signal.aborted)
        throw new AwsError('the caller stopped waiting', { code: 'Aborted', reach: 'unsent' })
      this.calls.push({ name, detail: given[0] })
      const at = this.faults.findIndex((fault) => fault.call === name)
      const [fault] = at < 0 ? [] : this.faults.splice(at, 1)
      if (this.isBroken) throw answered('UnauthorizedOperation', 403)
      if (fault?.when === 'instead') throw fault.error!
      let answer: T
      try {
        answer = effect(...given)
      } catch (error) {
        // An answer is lost of what had an effect.
        if (fault !== undefined) this.faults.unshift(fault)
        throw error
      }
      if (fault?.when === 'hangs') {
        await new Promise((resolve) => signal.addEventListener('abort', resolve))
        throw new AwsError('Request aborted', { code: 'AbortError', reach: 'unanswered' })
      }
      if (fault !== undefined)
        throw new AwsError('socket hang up', { code: 'ECONNRESET', reach: 'unanswered' })
      return answer
    }
  }

  #fleet(request: FleetRequest): FleetAnswer {
    if (!this.templates.has(request.templateName))
      throw answered('InvalidLaunchTemplateName.NotFoundException')
    const body = JSON.stringify(request)
    const known = this.#tokens.get(request.token)
    if (known !== undefined) {
      if (known.body !== body) throw answered('IdempotentParameterMismatch')
      return known.answer as FleetAnswer
    }
    const pool = request.pools.find(
      ({ type, subnet }) => !this.empty.has(poolKey(request.capacityType, type, subnet)),
    )
    const answer: FleetAnswer =
      pool === undefined
        ? {
            machines: [],
            errors: request.pools.map((one) => {
              const code = this.empty.get(poolKey(request.capacityType, one.type, one.subnet))!
              return { code, message: `it was ${code}`, pool: one }
            }),
          }
        : { machines: [{ id: this.add(request, pool).id, pool }], errors: [] }
    this.#tokens.set(request.token, { body, answer })
    this.#fleets.set(request.token, answer)
    return answer
  }

  /** As it is shown: with the places that its machines leave. */
  #shownOf(reservation: Reservation): Reservation {
    return { ...reservation, free: Math.max(0, reservation.free - this.#takenOf(reservation.id)) }
  }

  #takenOf(reservation: string): number {
    return [...this.machines.values()].filter(
      (machine) => machine.reservation === reservation && machine.state !== 'terminated',
    ).length
  }

  #runReserved({ token, ...request }: ReservedRequest): Machine {
    const { templateName, reservation: id, isBlock, pool, tags } = request
    if (!this.templates.has(templateName)) throw answered('InvalidLaunchTemplateName.NotFoundException')
    const body = JSON.stringify(request)
    const known = this.#tokens.get(token)
    if (known !== undefined) {
      if (known.body !== body) throw answered('IdempotentParameterMismatch')
      const machine = known.answer as FakeMachine
      if (machine.state === 'terminated') throw answered('IdempotentInstanceTerminated')
      return machine.view()
    }
    const reservation = [...this.reservations, ...this.reserving.listed()].find((one) => one.id === id)
    if (reservation === undefined) throw answered('InvalidCapacityReservationId.NotFound')
    if (reservation.isBlock !== isBlock) throw answered('InvalidParameterValue')
    const { free, state, type } = this.#shownOf(reservation)
    if (free <= 0 || state !== 'active' || type !== pool.type || this.late.has(id))
      throw answered('ReservationCapacityExceeded')
    const machine = this.add({ capacityType: 'reserved', tags, reservation: id }, pool)
    this.#tokens.set(token, { body, answer: machine })
    return machine.view()
  }

  #shown(): Machine[] {
    return [...this.machines.values()]
      .filter(({ launchedAtMs }) => this.now() - launchedAtMs >= this.staleForMs)
      .map((machine) => machine.view())
  }

  #agent(id: string): { isOnline: boolean } | undefined {
    const machine = this.machines.get(id)
    if (machine === undefined || machine.state !== 'running' || this.registersAfterMs === null)
      return undefined
    return this.now() - machine.launchedAtMs >= this.registersAfterMs ? { isOnline: true } : undefined
  }

  #send(request: CommandRequest): string {
    if (this.#agent(request.machineId) === undefined) throw answered('InvalidInstanceId')
    const id = `command-${this.#commands.length}`
    const told = this.onCommand?.(this.machines.get(request.machineId)!, request) ?? {}
    const result = { status: 'Success', details: 'Success', exitCode: 0, stdout: '', stderr: '', ...told }
    this.#commands.push({ ...request, id, atMs: this.now(), result })
    return id
  }
}

const ARN = 'arn:aws:sts::123456789012:assumed-role/crucible/worker'
