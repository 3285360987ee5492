import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import type { Backend } from '../../../backends/backend'
import type { Ec2Config } from '../../../backends/ec2/config'
import type { Reservation } from '../../../backends/ec2/sdk/api'
import type { LaunchOutcome } from '../../../core/activities'
import type { Offer } from '../../../core/offer'
import type { Order } from '../../../core/job/plan'
import { formatInstant, HOUR_MS, MINUTE_MS } from '../../../core/time/time'
import { patiently } from '../harness'
import { BESIDE, Ec2Harness, type PaperHarness } from './harness'

const NOW_MS = Date.parse('2026-12-01T10:00:00Z')

let h: PaperHarness
/** The backend whose account lists its reservations with these changes. */
let backend: Backend
let changes: Record<string, Partial<Reservation> | null>
let [ON_DEMAND_RESERVATION, BLOCK] = ['', '']

beforeEach(async () => {
  h = await Ec2Harness.onPaper({ startMs: NOW_MS, way: 'block' })
  ;[ON_DEMAND_RESERVATION, BLOCK] = h.cloud.reservations().map(({ id }) => id) as [string, string]
  changes = {}
  backend = made()
})
afterEach(() => h.dispose())

function made(config: Partial<Ec2Config> = {}, deployment?: string): Backend {
  const asked = h.reopenWith(
    (api) => ({
      ...api,
      market: {
        ...api.market,
        reservations: async (signal) =>
          (await api.market.reservations(signal)).flatMap((one) => {
            const change = changes[one.id]
            return change === null ? [] : [{ ...one, ...change }]
          }),
      },
    }),
    config,
    { deployment },
  )
  return asked
}

const reservedOffers = async (): Promise<Offer[]> =>
  (await backend.offers({}, patiently())).filter(({ capacityType }) => capacityType === 'reserved')
const change = (id: string, more: Partial<Reservation> | null): void => void (changes[id] = more)
const only = async (id: string): Promise<Offer> => {
  const found = (await reservedOffers()).filter(({ reservationId }) => reservationId === id)
  expect(found).toHaveLength(1)
  return found[0]!
}

describe('offers of what is reserved', () => {
  it('cost as much idle as in use on demand and nothing more in a block, but for disk and address', async () => {
    const found = await reservedOffers()
    expect(found).toHaveLength(2)
    expect(found).toEqual(
      expect.arrayContaining([
        expect.objectContaining({
          type: 'g5.xlarge',
          place: 'us-east-1b',
          reservationId: ON_DEMAND_RESERVATION,
          priceMicroUsdPerHour: 1_006_000 + BESIDE,
          reservation: { free: 4, total: 4, idleMicroUsdPerHour: 1_006_000 },
        }),
        expect.objectContaining({
          type: 'p5.48xlarge',
          place: 'us-east-1a',
          reservationId: BLOCK,
          priceMicroUsdPerHour: BESIDE,
          reservation: { free: 4, total: 4, idleMicroUsdPerHour: 0, endsAtMs: NOW_MS + 24 * HOUR_MS },
        }),
      ]),
    )
  })

  it('can be used until half an hour before the end of a block, an hour of an UltraServer', async () => {
    expect((await only(BLOCK)).usableUntilMs).toBe(NOW_MS + 24 * HOUR_MS - 30 * MINUTE_MS)
    change(BLOCK, { isUltraServer: true })
    await h.clock.advance(MINUTE_MS)
    expect((await only(BLOCK)).usableUntilMs).toBe(NOW_MS + 23 * HOUR_MS)
  })

  it('of a reservation on demand that ends say that their machines go on', async () => {
    change(ON_DEMAND_RESERVATION, { endsAtMs: NOW_MS + HOUR_MS })
    const offer = await only(ON_DEMAND_RESERVATION)
    expect(offer.usableUntilMs).toBeUndefined()
    expect(offer.note).toContain(`ends ${formatInstant(NOW_MS + HOUR_MS)}; its machines continue after that`)
  })

  it.each<[string, Partial<Reservation>, RegExp]>([
    [
      'has not begun',
      { state: 'scheduled', startsAtMs: NOW_MS + HOUR_MS },
      /is scheduled.*from 2026-12-01T11:00:00Z/,
    ],
    ['is not paid for', { state: 'payment-pending' }, /is payment-pending: it cannot be used yet/],
    ['is full', { free: 0 }, /all 4 places of the reservation cr-\w+ are in use/],
  ])('are unavailable where it %s', async (_what, more, note) => {
    change(BLOCK, more)
    expect(await only(BLOCK)).toMatchObject({
      availability: 'unavailable',
      note: expect.stringMatching(note),
    })
  })

  it('are unavailable where no subnet is in its zone', async () => {
    await h.dispose()
    const regions = {
      'us-east-1': {
        zones: ['us-east-1a', 'us-east-1b'],
        groups: ['crucible-machine'],
        subnets: [{ zone: 'us-east-1b', egress: 'public' as const, isDefault: true }],
      },
    }
    h = await Ec2Harness.onPaper({ world: { regions } })
    backend = made()
    BLOCK = h.cloud.reservations()[1]!.id
    expect(await only(BLOCK)).toMatchObject({
      availability: 'unavailable',
      note: expect.stringContaining('none of the subnets is in us-east-1a'),
    })
  })

  it.each<[string, Partial<Reservation>]>([
    ['over', { state: 'expired' }],
    ['cancelled', { state: 'cancelled' }],
    ['not paid for', { state: 'payment-failed' }],
    ['for another system', { platform: 'Windows' }],
    ['for hosts of its own', { tenancy: 'dedicated' }],
    ['can be interrupted at any time', { isInterruptible: true }],
    ['of a type that is not offered', { type: 'trn1.2xlarge' }],
  ])('are none where it is %s', async (_what, more) => {
    change(BLOCK, more)
    expect((await reservedOffers()).map(({ reservationId }) => reservationId)).toEqual([
      ON_DEMAND_RESERVATION,
    ])
  })

  it('are of those only that the settings name, and of those that the deployment has bought', async () => {
    backend = made({ reservations: [BLOCK] })
    expect((await reservedOffers()).map(({ reservationId }) => reservationId)).toEqual([BLOCK])
    backend = made({ reservations: [BLOCK] }, 'ours')
    change(ON_DEMAND_RESERVATION, { tags: { 'crucible:deployment': 'ours' } })
    expect(await reservedOffers()).toHaveLength(2)
    change(ON_DEMAND_RESERVATION, { tags: { 'crucible:deployment': 'theirs' } })
    await h.clock.advance(MINUTE_MS)
    expect(await reservedOffers()).toHaveLength(1)
    backend = made({ reservations: 'none' })
    const asked = h.calls('DescribeCapacityReservations').length
    expect(await reservedOffers()).toEqual([])
    expect(backend.capabilities.capacityTypes).toEqual(['on-demand', 'spot'])
    expect(h.calls('DescribeCapacityReservations')).toHaveLength(asked)
  })

  it('are for jobs that name them, unless the settings open them or the deployment has bought them', async () => {
    const forNaming = async (): Promise<(string | undefined)[]> =>
      (await reservedOffers())
        .filter(({ reservation }) => reservation!.isForNaming === true)
        .map(({ reservationId }) => reservationId)
    backend = made({ reservations: 'named' }, 'ours')
    change(ON_DEMAND_RESERVATION, { tags: { 'crucible:deployment': 'ours' } })
    expect(await forNaming()).toEqual([BLOCK])
    backend = made({ reservations: 'named' })
    expect((await forNaming()).sort()).toEqual([ON_DEMAND_RESERVATION, BLOCK].sort())
    for (const reservations of ['all', [BLOCK]] as const) {
      backend = made({ reservations: typeof reservations === 'string' ? reservations : [...reservations] })
      expect(await forNaming()).toEqual([])
    }
  })

  it('are left out without the permission to ask for them, and nothing else is', async () => {
    unreadable()
    const offers = await backend.offers({}, patiently())
    expect(offers.length).toBeGreaterThan(4)
    expect(offers.filter(({ capacityType }) => capacityType === 'reserved')).toEqual([])
  })
})

/** From now on the account may not list its reservations. */
const unreadable = (): void =>
  h.fail('DescribeCapacityReservations', 'UnauthorizedOperation', { status: 403, times: 99 })

const PENDING = 'InvalidCapacityReservationState.PendingActivation'

/** The capacity of the block comes late: nothing goes into its free places yet. */
const isLate = (): void => h.fail('RunInstances', 'ReservationCapacityExceeded', { times: 99 })

describe('a launch into what is reserved', () => {
  const launch = (order: Order): Promise<LaunchOutcome> => backend.launch(order, patiently())

  it('names the reservation, and is read back as such', async () => {
    const order = await h.order()
    expect(await launch(order)).toMatchObject({
      handle: { realised: { capacityType: 'reserved', reservationId: BLOCK, priceMicroUsdPerHour: BESIDE } },
    })
    expect(h.calls('RunInstances').at(-1)!.parameters).toMatchObject({
      ClientToken: order.token,
      InstanceType: 'p5.48xlarge',
      SubnetId: order.offers[0]!.data!['subnet'],
      InstanceMarketOptions: { MarketType: 'capacity-block' },
      CapacityReservationSpecification: { CapacityReservationTarget: { CapacityReservationId: BLOCK } },
    })
    expect(h.calls('CreateFleet')).toEqual([])
  })

  it.each<[string, Partial<Reservation> | null, string, RegExp]>([
    ['is full', { free: 0 }, 'capacity', /All 4 places .* are in use/],
    ['is over', { state: 'expired' }, 'expired', /is expired/],
    ['was cancelled', { state: 'cancelled' }, 'expired', /is cancelled/],
    ['is gone', null, 'expired', /./],
    [
      'has not begun',
      { state: 'scheduled', startsAtMs: NOW_MS + HOUR_MS },
      'capacity',
      /begins 2026-12-01T11:00/,
    ],
  ])('that %s is refused, and goes nowhere else', async (_what, more, failureClass, message) => {
    const order = await h.order()
    change(BLOCK, more)
    h.fail('RunInstances', 'ReservationCapacityExceeded')
    expect(await launch(order)).toMatchObject({
      kind: 'refused',
      failure: { class: failureClass, message: expect.stringMatching(message) },
    })
    expect(h.cloud.instances()).toEqual([])
    expect(h.calls('CreateFleet')).toEqual([])
  })

  it.each<[string, Partial<Reservation>, object]>([
    [
      'waits for one that has not begun',
      { state: 'scheduled', startsAtMs: NOW_MS + HOUR_MS },
      {
        kind: 'refused',
        failure: { class: 'capacity', message: expect.stringMatching(/begins 2026-12-01T11:00/) },
      },
    ],
    ['waits for one that is not paid for', { state: 'payment-pending' }, { failure: { class: 'capacity' } }],
    ['expires with one that is over', { state: 'expired' }, { failure: { class: 'expired' } }],
  ])('that EC2 calls too early %s', async (_what, more, outcome) => {
    const order = await h.order()
    change(BLOCK, more)
    for (const code of [PENDING, 'InvalidCapacityReservationState']) {
      h.fail('RunInstances', code)
      expect(await launch(order)).toMatchObject(outcome)
    }
  })

  it('that EC2 calls too early is sent again where the reservation has begun', async () => {
    const order = await h.order()
    h.fail('RunInstances', PENDING)
    await expect(launch(order)).rejects.toMatchObject({
      failure: { class: 'transient', retryAfterMs: expect.any(Number) },
    })
    expect(await launch(order)).toMatchObject({ kind: 'launched' })
  })

  it('that EC2 calls too early waits, too, where the reservation itself cannot be asked about', async () => {
    const order = await h.order()
    h.fail('RunInstances', PENDING)
    unreadable()
    expect(await launch(order)).toMatchObject({ kind: 'refused', failure: { class: 'capacity' } })
  })

  it('is tried again for some minutes while the capacity of a block comes late, and then no more', async () => {
    const order = await h.order()
    isLate()
    await h.clock.advance(9 * MINUTE_MS)
    await expect(launch(order)).rejects.toMatchObject({
      failure: { class: 'transient', retryAfterMs: expect.any(Number) },
    })
    await h.clock.advance(2 * MINUTE_MS)
    expect(await launch(order)).toMatchObject({
      kind: 'refused',
      failure: { class: 'capacity', message: expect.stringContaining('gave none of its 4 free places') },
    })
    expect(await only(BLOCK)).toMatchObject({ availability: 'unavailable' })
    await h.clock.advance(4 * MINUTE_MS)
    expect(await only(BLOCK)).toMatchObject({ availability: 'unknown' })
  })

  it('is refused for want of capacity where the reservation itself cannot be asked about', async () => {
    const order = await h.order()
    isLate()
    unreadable()
    expect(await launch(order)).toMatchObject({ kind: 'refused', failure: { class: 'capacity' } })
  })

  it('has a template that says nothing of reservations; one on demand has one that forbids them', async () => {
    const forbids = async (capacityType: Order['capacityType']): Promise<boolean> => {
      const order = await h.order({ capacityType })
      await launch(order)
      const name = order.offers[0]!.data!['template']!
      const made = h.calls('CreateLaunchTemplate').map(({ parameters }) => JSON.stringify(parameters))
      return made.find((text) => text.includes(name))!.includes('"CapacityReservationPreference":"none"')
    }
    expect(await forbids('on-demand')).toBe(true)
    expect(await forbids('spot')).toBe(false)
    expect(await forbids('reserved')).toBe(false)
  })
})

describe('a reservation that EC2 fills on its own', () => {
  const leaving = async (): Promise<unknown[]> =>
    (await backend.offers({}, patiently())).flatMap(({ capacityType, type, place, leavesOpen }) =>
      leavesOpen === undefined
        ? []
        : [[capacityType, type, place, leavesOpen.reservationId, leavesOpen.free]],
    )

  it('is named by the on-demand offers that leave it alone, and by its own', async () => {
    expect(await leaving()).toEqual([])
    change(ON_DEMAND_RESERVATION, { matching: 'open' })
    backend = made()
    expect(await leaving()).toEqual([['on-demand', 'g5.xlarge', 'us-east-1b', ON_DEMAND_RESERVATION, 4]])
    expect((await only(ON_DEMAND_RESERVATION)).reservation).toMatchObject({ isOpen: true })
    expect((await only(BLOCK)).reservation).not.toHaveProperty('isOpen', true)
  })

  it.each<[string, Partial<Reservation>, Partial<Ec2Config>, number]>([
    ['also where the deployment lists others', {}, { reservations: ['cr-0'] }, 1],
    ['not where it is full', { free: 0 }, {}, 0],
    ['not where it has not begun', { state: 'scheduled' }, {}, 0],
    ['not where it is for Windows', { platform: 'Windows' }, {}, 0],
    ['not where the deployment uses no reservation', {}, { reservations: 'none' }, 0],
  ])('is named %s', async (_, more, config, count) => {
    change(ON_DEMAND_RESERVATION, { matching: 'open', ...more })
    backend = made(config)
    expect(await leaving()).toHaveLength(count)
  })
})

describe('a machine in a block', () => {
  it('can be used for longer once more of the block was bought', async () => {
    const outcome = await backend.launch(await h.order(), patiently())
    if (outcome.kind !== 'launched') throw new Error(JSON.stringify(outcome))
    const look = async () => (await backend.observe([outcome.handle], patiently()))[0]!
    const cutOffMs = NOW_MS + 24 * HOUR_MS - 30 * MINUTE_MS
    await h.clock.advance(MINUTE_MS)
    expect(await look()).toMatchObject({ state: 'running', usableUntilMs: cutOffMs })
    h.cloud.extend(BLOCK, '48h')
    await h.clock.advance(MINUTE_MS)
    expect(await look()).toMatchObject({ usableUntilMs: expect.closeTo(cutOffMs + 24 * HOUR_MS, -6) })
    // Unknown: the last known value stands.
    unreadable()
    await h.clock.advance(MINUTE_MS)
    expect(await look()).toMatchObject({
      state: 'running',
      usableUntilMs: expect.closeTo(cutOffMs + 24 * HOUR_MS, -6),
    })
  })

  it('that EC2 ends was taken back, whatever it says of that', async () => {
    const outcome = await backend.launch(await h.order(), patiently())
    if (outcome.kind !== 'launched') throw new Error(JSON.stringify(outcome))
    await h.clock.advance(24 * HOUR_MS)
    expect((await backend.observe([outcome.handle], patiently()))[0]).toMatchObject({ cause: 'interrupted' })
  })
})

describe('check', () => {
  it('names reservations of the settings that are none', async () => {
    backend = made({ reservations: [BLOCK, 'cr-0123'] })
    const problems = await backend.check(patiently())
    expect(problems).toEqual([
      expect.objectContaining({
        severity: 'warning',
        message: expect.stringContaining('reservation cr-0123 for'),
      }),
    ])
  })
})
