import { createBackendAcross } from '../../../../backends/ec2'
import type { Ec2Config } from '../../../../backends/ec2/config'
import type { ReservingBackend } from '../../../../backends/backend'
import type { CapacityRequest, ReservationKind } from '../../../../core/reservation/reservation'
import { DAY_MS, HOUR_MS } from '../../../../core/time/time'
import type { TruePurchase } from '../../reserving-harness'
import { FakeAws } from '../fake-api'
import { reservations, SUBNETS } from '../fake-market'
import { CONFIG } from '../harness'

export const BLOCK_TYPE = 'p5.48xlarge'
export const HOURLY_TYPE = 'g5.xlarge'
/** Capacity Blocks start and end at this time of day. */
const START_MS = Date.UTC(2026, 10, 30, 11, 30)
const PURCHASES = ['buyBlock', 'buyExtension', 'create']

/** EC2 in two Regions over a fake of what those ask who buy in advance, in driven time. */
export class Ec2ReservingHarness {
  readonly regions = ['us-east-1', 'us-west-2'] as const
  readonly clouds: Readonly<Record<string, FakeAws>>
  readonly reserving: ReservingBackend
  clockMs = START_MS - 20 * HOUR_MS

  constructor(private readonly config: Partial<Ec2Config> = {}) {
    const now = (): number => this.clockMs
    this.clouds = Object.fromEntries(this.regions.map((region) => [region, new FakeAws(now, region)]))
    this.clouds['us-west-2']!.subnets = [{ ...SUBNETS[0]!, id: 'subnet-w', zone: 'us-west-2a' }]
    this.aws.reserving.blocks.push({
      id: 'cb-1',
      type: BLOCK_TYPE,
      count: 2,
      zone: 'us-east-1a',
      startsAtMs: START_MS,
      endsAtMs: START_MS + 2 * DAY_MS,
      upfrontFee: '4529.340001',
      currency: 'USD',
      tenancy: 'default',
    })
    this.reserving = this.reopen()
  }

  /** The first Region. */
  get aws(): FakeAws {
    return this.clouds['us-east-1']!
  }

  get #all(): FakeAws[] {
    return Object.values(this.clouds)
  }

  reopen(): ReservingBackend {
    const config = { ...CONFIG, regions: [...this.regions], ...this.config }
    const deps = { clock: () => this.clockMs, runnerUrl: async () => 'https://store.example/runner' }
    return createBackendAcross((region) => this.clouds[region]!.api(), config, deps).reserving!
  }

  nowMs(): number {
    return this.clockMs
  }

  wish(kind: ReservationKind): CapacityRequest {
    return kind === 'prepaid'
      ? { backend: 'ec2', kind, types: [BLOCK_TYPE], count: 2, durationMs: 2 * DAY_MS - HOUR_MS }
      : { backend: 'ec2', kind, types: [HOURLY_TYPE], count: 1 }
  }

  committedWish(): CapacityRequest {
    return { ...this.wish('hourly'), count: 8, earliestStartAtMs: this.clockMs + 60 * DAY_MS }
  }

  sent(): number {
    return this.#all
      .flatMap((aws) => PURCHASES.map((call) => aws.countOf(call)))
      .reduce((sum, one) => sum + one, 0)
  }

  purchases(): TruePurchase[] {
    return this.#all
      .flatMap(({ reserving }) => reserving.purchases)
      .map(({ reservation, tags }) => ({
        reservation,
        intent: tags['crucible:intent'],
        deployment: tags['crucible:deployment'],
      }))
  }

  buyByHand(): string {
    this.aws.reservations.push(...reservations(this.clockMs))
    return this.aws.reservations[0]!.id
  }

  pay(id: string, outcome: 'confirmed' | 'failed'): void {
    const owner = this.#all.find(({ reserving }) => reserving.held.some(({ told }) => told.id === id))
    owner!.reserving.pay(id, outcome)
  }

  async pass(durationMs: number): Promise<void> {
    this.clockMs += durationMs
  }
}
