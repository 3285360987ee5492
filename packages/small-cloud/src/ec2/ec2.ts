/** EC2: its regions, and the parts that every action needs. */
import type { Clock } from '../clock'
import type { Identities } from '../identity/identities'
import type { Ids } from '../ids'
import type { QuotaBook } from '../prices/quota-book'
import { ApiError } from '../wire/errors'
import type { Throttle } from '../wire/throttle'
import type { Faults } from '../world/faults'
import type { Market } from '../world/market'
import { drawMs, type World } from '../world/world'
import type { DurationName } from '../world/durations'
import { BlockMarket } from './block-market'
import { CancellationQuotes } from './cancellation-quotes'
import { DateChangeQuotes } from './date-change-quotes'
import { ExtensionMarket } from './extension-market'
import type { LaunchPlan } from './launch-plan'
import type { Instance, Region } from './model'
import { makeRegion } from './region'
import { ReservationLife } from './reservation-life'
import { addPlanned } from './reservation-plans'
import { Tokens } from './tokens'

export interface Ec2Parts {
  world: World
  clock: Clock
  ids: Ids
  market: Market
  faults: Faults
  throttle: Throttle
  identities: Identities
  quotas: QuotaBook
  /** Manages an instance from its launch to its end. */
  lifecycle: Lifecycle
}

/** State changes of instances, on request and spontaneous. */
export interface Lifecycle {
  begin(instance: Instance, plan: Pick<LaunchPlan, 'isKeyRefused'>): void
  /** Ends an instance with an orderly shutdown, unless `isSudden`. */
  terminate(instance: Instance, isSudden?: boolean): void
  /** Stops a running instance; its disk stays. A stopping or stopped instance is left as it is. */
  halt(instance: Instance, isSudden: boolean): void
  /** Starts a stopped instance. Other instances are left as they are. */
  resume(instance: Instance): void
  /** Ends an instance with an orderly shutdown at the provider's initiative. */
  reclaim(instance: Instance): void
}

export class Ec2 {
  readonly regions: ReadonlyMap<string, Region>
  readonly tokens: Tokens
  readonly account: string
  /** The start of the world. */
  readonly startMs: number
  readonly reservations: ReservationLife
  readonly blocks: BlockMarket
  readonly extensions: ExtensionMarket
  readonly quotes: CancellationQuotes
  readonly dateChanges: DateChangeQuotes

  constructor(readonly parts: Ec2Parts) {
    const { world, clock } = parts
    this.account = world.account
    this.startMs = clock.nowMs()
    this.regions = new Map(
      [...world.regions].map(([name, plan]) => [name, makeRegion(world, plan, clock.nowMs())]),
    )
    this.tokens = new Tokens()
    this.reservations = new ReservationLife(this)
    this.blocks = new BlockMarket(this)
    this.extensions = new ExtensionMarket(this)
    this.quotes = new CancellationQuotes(this)
    this.dateChanges = new DateChangeQuotes(this)
    for (const plan of world.reservations) addPlanned(this, plan)
  }

  get nowMs(): number {
    return this.parts.clock.nowMs()
  }

  region(name: string): Region {
    const region = this.regions.get(name)
    if (region === undefined) throw new ApiError('InvalidParameterValue', `There is no region ${name}`)
    return region
  }

  drawMs(name: DurationName): number {
    return drawMs(this.parts.world, name)
  }

  *instances(): Generator<Instance> {
    for (const region of this.regions.values()) yield* region.instances.values()
  }

  findInstance(id: string): Instance | undefined {
    for (const region of this.regions.values()) {
      const instance = region.instances.get(id)
      if (instance !== undefined) return instance
    }
    return undefined
  }
}
