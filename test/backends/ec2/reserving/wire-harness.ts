import { RunInstancesCommand } from '@aws-sdk/client-ec2'
import type { Cloud } from '#small-cloud'
import { createBackendAcross } from '../../../../backends/ec2'
import { createSdkApi } from '../../../../backends/ec2/sdk/index'
import type { Backend, ReservingBackend } from '../../../../backends/backend'
import type { Offer } from '../../../../core/offer'
import type { CapacityRequest, ReservationKind } from '../../../../core/reservation/reservation'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../../core/time/time'
import { IMAGE, stopClouds, testCloud, type TestCloud } from '../../../../packages/small-cloud/test/support'
import { patiently } from '../../harness'
import type { ReservingHarness, TruePurchase } from '../../reserving-harness'
import { CONFIG } from '../harness'
import { BLOCK_TYPE, HOURLY_TYPE } from './harness'
import { adoptKeys } from '../../../support/cloud-keys'

const BLOCK_ZONE = 'us-east-1a'
const GROUP = 'crucible-machine'
/** Since the start of the cloud. */
const [DEARER_AFTER_MS, SOLD_OUT_AFTER_MS] = [30 * MINUTE_MS, 2 * HOUR_MS]
const PAYMENT_MS = 10 * MINUTE_MS
/** Calls that buy, and how many dry runs precede each purchase. */
const PURCHASES: Readonly<Record<string, number>> = {
  PurchaseCapacityBlock: 1,
  PurchaseCapacityBlockExtension: 1,
  CreateCapacityReservation: 0,
}

/** EC2 in two Regions over the SDK and the wire, to a small cloud with a driven clock. */
export class WireReservingHarness implements ReservingHarness {
  readonly regions = ['us-east-1', 'us-west-2'] as const
  readonly reserving: ReservingBackend
  /** Reservations that the account got in another way than by a purchase here. */
  readonly #foreign = new Set<string>()

  private constructor(
    private readonly test: TestCloud,
    private readonly endpoint: string,
  ) {
    adoptKeys(test.cloud)
    this.reserving = this.reopen()
  }

  /** @param endpointOf another address of the cloud, such as that of a proxy */
  static async make(
    endpointOf: (cloud: Cloud) => Promise<string> = async (cloud) => cloud.endpoint,
  ): Promise<WireReservingHarness> {
    const test = await testCloud({
      durations: { payment: PAYMENT_MS },
      regions: {
        'us-east-1': { zones: [BLOCK_ZONE, 'us-east-1b'], groups: [GROUP] },
        'us-west-2': { zones: ['us-west-2a'], groups: [GROUP] },
      },
      prices: [
        {
          type: HOURLY_TYPE,
          capacity: 'on-demand',
          changes: [
            [0, 1.006],
            [DEARER_AFTER_MS, 2.006],
          ],
        },
      ],
      blockOfferings: [
        {
          type: BLOCK_TYPE,
          zone: BLOCK_ZONE,
          count: 8,
          usdPerInstanceHour: [
            [0, 31.4646],
            [DEARER_AFTER_MS, 31.4647],
          ],
          stock: [
            [0, 8],
            [SOLD_OUT_AFTER_MS, 0],
          ],
        },
      ],
      throttling: 'off',
    })
    return new WireReservingHarness(test, await endpointOf(test.cloud))
  }

  get cloud(): Cloud {
    return this.test.cloud
  }

  reopen(): ReservingBackend {
    return this.#backend().reserving!
  }

  #backend(more: { deployment?: string } = {}): Backend {
    const config = {
      ...CONFIG,
      image: IMAGE.replace(/^resolve:ssm:/, ''),
      regions: [...this.regions],
      endpoint: this.endpoint,
    }
    const deps = { clock: () => this.nowMs(), runnerUrl: async () => 'https://store.example/runner', ...more }
    const apiOf = (region: string) => createSdkApi({ region, endpoint: this.endpoint })
    return createBackendAcross(apiOf, config, deps)
  }

  async offered(id: string, deployment: string): Promise<Offer | undefined> {
    const offers = await this.#backend({ deployment }).offers({}, patiently())
    return offers.find(({ reservationId }) => reservationId === id)
  }

  nowMs(): number {
    return this.test.clock.nowMs()
  }

  wish(kind: ReservationKind): CapacityRequest {
    return kind === 'prepaid'
      ? { backend: 'ec2', kind, types: [BLOCK_TYPE], count: 2, durationMs: 2 * DAY_MS - HOUR_MS }
      : { backend: 'ec2', kind, types: [HOURLY_TYPE], count: 1 }
  }

  committedWish(): CapacityRequest {
    // EC2 takes whole seconds.
    const earliestStartAtMs = Math.ceil((this.nowMs() + 60 * DAY_MS) / 1_000) * 1_000
    return { ...this.wish('hourly'), count: 8, earliestStartAtMs }
  }

  neverSold(): CapacityRequest {
    return { ...this.wish('prepaid'), types: [HOURLY_TYPE] }
  }

  sellOut(): Promise<void> {
    return this.pass(SOLD_OUT_AFTER_MS)
  }

  raisePrices(): Promise<void> {
    return this.pass(DEARER_AFTER_MS)
  }

  sent(): number {
    return Object.keys(PURCHASES)
      .flatMap((action) => this.cloud.journal.calls({ action }))
      .filter(({ isDryRun }) => !isDryRun).length
  }

  purchases(): TruePurchase[] {
    return this.cloud
      .reservations()
      .filter(({ id }) => !this.#foreign.has(id))
      .flatMap(({ id, tags, extensions }) => [
        {
          reservation: id,
          intent: tags['crucible:intent'],
          deployment: tags['crucible:deployment'],
        },
        ...extensions.map(() => ({ reservation: id, intent: undefined, deployment: undefined })),
      ])
  }

  /** A dry run has no effect, so its answer is not lost. */
  loseNextAnswer(): void {
    for (const action of Object.keys(PURCHASES))
      this.cloud.addFault({ fault: 'lost-answer', times: 1, where: { action } })
  }

  /** The dry run before it does not fail. */
  failNextPurchase(): void {
    const internal = { fault: 'error', code: 'InternalError', status: 500, times: 1 } as const
    for (const [action, skip] of Object.entries(PURCHASES))
      this.cloud.addFault({ ...internal, skip, where: { action } })
  }

  /** The dry run is refused already. */
  refuseNextPurchase(): void {
    for (const action of Object.keys(PURCHASES))
      this.cloud.addFault({
        fault: 'error',
        code: 'UnauthorizedOperation',
        status: 403,
        times: 1,
        where: { action },
      })
  }

  silence(region: string): void {
    const refusal = { fault: 'error', code: 'UnauthorizedOperation', status: 403 } as const
    this.cloud.addFault({ ...refusal, where: { region, service: 'ec2' } })
  }

  buyByHand(): string {
    const plan = { kind: 'on-demand', type: HOURLY_TYPE, zone: BLOCK_ZONE, count: 1 } as const
    const { id } = this.cloud.reserve(plan)
    this.#foreign.add(id)
    return id
  }

  failPayments(): void {
    this.cloud.addFault({ fault: 'payment-fails' })
  }

  settlePayment(): Promise<void> {
    return this.pass(PAYMENT_MS)
  }

  pass(durationMs: number): Promise<void> {
    return this.test.clock.advance(durationMs)
  }

  async use(id: string): Promise<void> {
    await this.test.clients.ec2.send(
      new RunInstancesCommand({
        ImageId: IMAGE,
        InstanceType: BLOCK_TYPE,
        MinCount: 1,
        MaxCount: 1,
        InstanceMarketOptions: { MarketType: 'capacity-block' },
        CapacityReservationSpecification: { CapacityReservationTarget: { CapacityReservationId: id } },
      }),
    )
  }

  dispose(): Promise<void> {
    return stopClouds()
  }
}
