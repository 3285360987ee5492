import { createBackendAcross } from '../../../../backends/ec2'
import type { Ec2Config } from '../../../../backends/ec2/config'
import type { AwsError } from '../../../../backends/ec2/sdk/api'
import type { Backend, ReservingBackend } from '../../../../backends/backend'
import type { Offer } from '../../../../core/offer'
import type { CapacityWish, ReservationKind } from '../../../../core/reservation/reservation'
import { DAY_MS, HOUR_MS } from '../../../../core/time/time'
import { patiently } from '../../harness'
import type { ReservingHarness, ReservingTraits, TruePurchase } from '../../reserving-harness'
import { FakeAws, answered } from '../fake-api'
import { reservations, SUBNETS } from '../fake-market'
import { CONFIG } from '../harness'

export const EC2_RESERVING_TRAITS: ReservingTraits = {
  changesHourlyPrices: true,
}

export const BLOCK_TYPE = 'p5.48xlarge'
export const HOURLY_TYPE = 'g5.xlarge'
/** Capacity Blocks start and end at this time of day. */
const START_MS = Date.UTC(2026, 10, 30, 11, 30)
const PURCHASES = ['buyBlock', 'buyExtension', 'create']

/** EC2 in two Regions over a fake of the provider, in driven time. */
export class Ec2ReservingHarness implements ReservingHarness {
  readonly regions = ['us-east-1', 'us-west-2'] as const
  readonly clouds: Readonly<Record<string, FakeAws>>
  readonly reserving: ReservingBackend
  clockMs = START_MS - 20 * HOUR_MS
  #outcome: 'confirmed' | 'failed' = 'confirmed'

  constructor(private readonly config: Partial<Ec2Config> = {}) {
    const now = (): number => this.clockMs
    this.clouds = Object.fromEntries(this.regions.map((region) => [region, new FakeAws(now, region)]))
    this.clouds['us-west-2']!.subnets = [{ ...SUBNETS[0]!, id: 'subnet-w', zone: 'us-west-2a' }]
    this.aws.reserving.blocks.push({
      ...{ id: 'cb-1', type: BLOCK_TYPE, count: 2, zone: 'us-east-1a' },
      ...{ startsAtMs: START_MS, endsAtMs: START_MS + 2 * DAY_MS },
      ...{ upfrontFee: '4529.340001', currency: 'USD', tenancy: 'default' },
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
    return this.#backend().reserving!
  }

  #backend(more: { deployment?: string } = {}): Backend {
    const config = { ...CONFIG, regions: [...this.regions], ...this.config }
    const deps = { clock: () => this.clockMs, runnerUrl: async () => 'https://store.example/runner', ...more }
    return createBackendAcross((region) => this.clouds[region]!.api(), config, deps)
  }

  async offered(id: string, deployment: string): Promise<Offer | undefined> {
    const offers = await this.#backend({ deployment }).offers({}, patiently())
    return offers.find(({ reservationId }) => reservationId === id)
  }

  nowMs(): number {
    return this.clockMs
  }

  wish(kind: ReservationKind): CapacityWish {
    return kind === 'prepaid'
      ? { backend: 'ec2', kind, types: [BLOCK_TYPE], count: 2, durationMs: 2 * DAY_MS - HOUR_MS }
      : { backend: 'ec2', kind, types: [HOURLY_TYPE], count: 1 }
  }

  committedWish(): CapacityWish {
    return { ...this.wish('hourly'), count: 8, earliestStartAtMs: this.clockMs + 60 * DAY_MS }
  }

  neverSold(): CapacityWish {
    return { ...this.wish('prepaid'), types: [HOURLY_TYPE] }
  }

  async sellOut(): Promise<void> {
    for (const { reserving } of this.#all) Object.assign(reserving, { blocks: [], hasCapacity: false })
  }

  async raisePrices(): Promise<void> {
    for (const aws of this.#all) {
      for (const block of aws.reserving.blocks) block.upfrontFee = '4529.340002'
      aws.prices = new Map([...aws.prices!].map(([type, usd]) => [type, String(Number(usd) + 1)]))
    }
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
        ...{ reservation, intent: tags['crucible:intent'], deployment: tags['crucible:deployment'] },
      }))
  }

  #fault(calls: string[], when: 'instead' | 'after', error?: AwsError): void {
    for (const aws of this.#all)
      for (const call of calls) aws.faults.push({ call, when, ...(error && { error }) })
  }

  loseNextAnswer(): void {
    this.#fault(PURCHASES, 'after')
  }

  failNextPurchase(): void {
    this.#fault(PURCHASES, 'instead', answered('InternalError', 500))
  }

  /** The trial of a purchase is refused already. */
  refuseNextPurchase(): void {
    this.#fault(['tryBlock', 'create'], 'instead', answered('UnauthorizedOperation', 403))
  }

  silence(region: string): void {
    this.clouds[region]!.isBroken = true
  }

  buyByHand(): string {
    this.aws.reservations.push(...reservations(this.clockMs))
    return this.aws.reservations[0]!.id
  }

  failPayments(): void {
    this.#outcome = 'failed'
  }

  async settlePayment(id: string): Promise<void> {
    this.pay(id, this.#outcome)
  }

  pay(id: string, outcome: 'confirmed' | 'failed'): void {
    const owner = this.#all.find(({ reserving }) => reserving.held.some(({ told }) => told.id === id))
    owner!.reserving.pay(id, outcome)
  }

  async pass(durationMs: number): Promise<void> {
    this.clockMs += durationMs
  }

  async use(id: string): Promise<void> {
    const machine = { capacityType: 'reserved', tags: {}, reservation: id } as const
    this.aws.add(machine, { type: BLOCK_TYPE, subnet: 'subnet-a' })
  }

  async dispose(): Promise<void> {}
}
