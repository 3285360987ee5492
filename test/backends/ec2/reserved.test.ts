import { beforeEach, describe, expect, it } from '@jest/globals'
import type { Reservation } from '../../../backends/ec2/sdk/api'
import type { LaunchOutcome } from '../../../core/activities'
import type { Offer } from '../../../core/offer'
import type { Order } from '../../../core/job/plan'
import { formatInstant, HOUR_MS, MINUTE_MS } from '../../../core/time/time'
import { patiently } from '../harness'
import { answered } from './fake-api'
import { BLOCK, ON_DEMAND_RESERVATION, SUBNETS } from './fake-market'
import { BESIDE } from './harness'
import { FakeHarness } from './fake-harness'

const NOW_MS = Date.parse('2026-12-01T10:00:00Z')

let nowMs: number
let h: FakeHarness
const made = (config: ConstructorParameters<typeof FakeHarness>[0] = {}): FakeHarness =>
  new FakeHarness(config, { clock: () => nowMs }, 'block')

beforeEach(() => {
  nowMs = NOW_MS
  h = made()
})

const reservedOffers = async (): Promise<Offer[]> =>
  (await h.backend.offers({}, patiently())).filter(({ capacityType }) => capacityType === 'reserved')
const change = (id: string, more: Partial<Reservation>): void => {
  h.aws.reservations = h.aws.reservations.map((one) => (one.id === id ? { ...one, ...more } : one))
}
const only = async (id: string): Promise<Offer> => {
  const found = (await reservedOffers()).filter(({ reservationId }) => reservationId === id)
  expect(found).toHaveLength(1)
  return found[0]!
}

describe('offers of what is reserved', () => {
  it('cost as much idle as in use on demand and nothing more in a block, but for disk and address', async () => {
    expect(await reservedOffers()).toEqual([
      expect.objectContaining({
        ...{ type: 'g5.xlarge', place: 'us-east-1b', reservationId: ON_DEMAND_RESERVATION },
        priceMicroUsdPerHour: 1_006_000 + BESIDE,
        reservation: { free: 4, total: 4, idleMicroUsdPerHour: 1_006_000 },
      }),
      expect.objectContaining({
        ...{ type: 'p5.48xlarge', place: 'us-east-1a', reservationId: BLOCK },
        priceMicroUsdPerHour: BESIDE,
        reservation: { free: 4, total: 4, idleMicroUsdPerHour: 0, endsAtMs: NOW_MS + 24 * HOUR_MS },
      }),
    ])
  })

  it('can be used until half an hour before the end of a block, an hour of an UltraServer', async () => {
    expect((await only(BLOCK)).usableUntilMs).toBe(NOW_MS + 24 * HOUR_MS - 30 * MINUTE_MS)
    h = made()
    change(BLOCK, { isUltraServer: true })
    expect((await only(BLOCK)).usableUntilMs).toBe(NOW_MS + 23 * HOUR_MS)
  })

  it('of a reservation on demand that ends say that their machines go on', async () => {
    change(ON_DEMAND_RESERVATION, { endsAtMs: NOW_MS + HOUR_MS })
    const offer = await only(ON_DEMAND_RESERVATION)
    expect(offer.usableUntilMs).toBeUndefined()
    expect(offer.note).toContain(`ends ${formatInstant(NOW_MS + HOUR_MS)}; its machines run on after that`)
  })

  it.each<[string, Partial<Reservation>, RegExp]>([
    [
      'has not begun',
      { state: 'scheduled', startsAtMs: NOW_MS + HOUR_MS },
      /is scheduled.*from 2026-12-01T11:00:00Z/,
    ],
    ['is not paid for', { state: 'payment-pending' }, /is payment-pending: it cannot be used yet/],
    ['is full', { free: 0 }, /all 4 places of the reservation cr-0b+ are in use/],
  ])('are unavailable where it %s', async (_what, more, note) => {
    change(BLOCK, more)
    expect(await only(BLOCK)).toMatchObject({
      availability: 'unavailable',
      note: expect.stringMatching(note),
    })
  })

  it('are unavailable where no subnet is in its zone', async () => {
    h.aws.subnets = SUBNETS.filter(({ zone }) => zone === 'us-east-1b')
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
    h = made({ reservations: [BLOCK] })
    expect((await reservedOffers()).map(({ reservationId }) => reservationId)).toEqual([BLOCK])
    h = new FakeHarness({ reservations: [BLOCK] }, { clock: () => nowMs, deployment: 'ours' }, 'block')
    change(ON_DEMAND_RESERVATION, { tags: { 'crucible:deployment': 'ours' } })
    expect(await reservedOffers()).toHaveLength(2)
    change(ON_DEMAND_RESERVATION, { tags: { 'crucible:deployment': 'theirs' } })
    nowMs += MINUTE_MS
    expect(await reservedOffers()).toHaveLength(1)
    h = made({ reservations: 'none' })
    expect(await reservedOffers()).toEqual([])
    expect(h.backend.capabilities.capacityTypes).toEqual(['on-demand', 'spot'])
    expect(h.aws.countOf('reservations')).toBe(0)
  })

  it('are left out without the permission to ask for them, and nothing else is', async () => {
    h.aws.fail('reservations', 'UnauthorizedOperation', { httpStatus: 403 })
    const offers = await h.backend.offers({}, patiently())
    expect(offers.length).toBeGreaterThan(4)
    expect(offers.filter(({ capacityType }) => capacityType === 'reserved')).toEqual([])
  })
})

const PENDING = 'InvalidCapacityReservationState.PendingActivation'

describe('a launch into what is reserved', () => {
  const launch = (order: Order): Promise<LaunchOutcome> => h.backend.launch(order, patiently())

  it('names the reservation, and is read back as such', async () => {
    const order = await h.order()
    expect(await launch(order)).toMatchObject({
      handle: { realised: { capacityType: 'reserved', reservationId: BLOCK, priceMicroUsdPerHour: BESIDE } },
    })
    expect(h.aws.calls.find(({ name }) => name === 'runReserved')?.detail).toMatchObject({
      ...{ token: order.token, reservation: BLOCK, isBlock: true },
      pool: { type: 'p5.48xlarge', subnet: 'subnet-a' },
    })
    expect(h.aws.countOf('createFleet')).toBe(0)
  })

  it('is read back as what it is should it ever be elsewhere', async () => {
    const add = h.aws.add.bind(h.aws)
    h.aws.add = ({ reservation: _, ...request }, pool) => add({ ...request, capacityType: 'on-demand' }, pool)
    expect(await launch(await h.order())).toMatchObject({
      handle: { realised: { capacityType: 'on-demand' } },
    })
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
    if (more === null) h.aws.reservations = []
    else change(BLOCK, more)
    expect(await launch(order)).toMatchObject({
      kind: 'refused',
      failure: { class: failureClass, message: expect.stringMatching(message) },
    })
    expect(h.aws.machines.size).toBe(0)
    expect(h.aws.countOf('createFleet')).toBe(0)
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
      h.aws.fail('runReserved', code)
      expect(await launch(order)).toMatchObject(outcome)
    }
  })

  it('that EC2 calls too early is sent again where the reservation has begun', async () => {
    const order = await h.order()
    h.aws.fail('runReserved', PENDING)
    await expect(launch(order)).rejects.toMatchObject({
      failure: { class: 'transient', retryAfterMs: expect.any(Number) },
    })
    expect(await launch(order)).toMatchObject({ kind: 'launched' })
  })

  it('that EC2 calls too early waits, too, where the reservation itself cannot be asked about', async () => {
    const order = await h.order()
    h.aws.fail('runReserved', PENDING)
    h.aws.fail('reservations', 'UnauthorizedOperation', { httpStatus: 403 })
    expect(await launch(order)).toMatchObject({ kind: 'refused', failure: { class: 'capacity' } })
  })

  it('is tried again for some minutes while the capacity of a block comes late, and then no more', async () => {
    change(BLOCK, { startsAtMs: NOW_MS })
    h.aws.late.add(BLOCK)
    const order = await h.order()
    nowMs += 9 * MINUTE_MS
    await expect(launch(order)).rejects.toMatchObject({
      failure: { class: 'transient', retryAfterMs: expect.any(Number) },
    })
    nowMs += 2 * MINUTE_MS
    expect(await launch(order)).toMatchObject({
      kind: 'refused',
      failure: { class: 'capacity', message: expect.stringContaining('gave none of its 4 free places') },
    })
    expect(await only(BLOCK)).toMatchObject({ availability: 'unavailable' })
    nowMs += 4 * MINUTE_MS
    expect(await only(BLOCK)).toMatchObject({ availability: 'unknown' })
  })

  it('is refused for want of capacity where the reservation itself cannot be asked about', async () => {
    const order = await h.order()
    h.aws.late.add(BLOCK)
    h.aws.faults.push({
      call: 'reservations',
      when: 'instead',
      error: answered('UnauthorizedOperation', 403),
    })
    expect(await launch(order)).toMatchObject({ kind: 'refused', failure: { class: 'capacity' } })
  })

  it('has a template that says nothing of reservations; one on demand has one that forbids them', async () => {
    const templateOf = async (capacityType: Order['capacityType']) => {
      const order = await h.order({ capacityType })
      await launch(order)
      return h.aws.templates.get(order.offers[0]!.data!['template']!)!.avoidsReservations
    }
    expect(await templateOf('on-demand')).toBe(true)
    expect(await templateOf('spot')).toBe(false)
    expect(await templateOf('reserved')).toBe(false)
  })
})

describe('a machine in a block', () => {
  it('can be used for longer once more of the block was bought', async () => {
    const outcome = await h.backend.launch(await h.order(), patiently())
    if (outcome.kind !== 'launched') throw new Error(JSON.stringify(outcome))
    const look = async () => (await h.backend.observe([outcome.handle], patiently()))[0]!
    const cutOffMs = NOW_MS + 24 * HOUR_MS - 30 * MINUTE_MS
    expect(await look()).toMatchObject({ state: 'running', usableUntilMs: cutOffMs })
    change(BLOCK, { endsAtMs: NOW_MS + 48 * HOUR_MS })
    nowMs += MINUTE_MS
    expect(await look()).toMatchObject({ usableUntilMs: cutOffMs + 24 * HOUR_MS })
    // Unknown: the last known value stands.
    h.aws.reservations = []
    h.aws.faults.push({ call: 'reservations', when: 'instead', error: answered('InternalError', 500) })
    expect(await look()).toMatchObject({ state: 'running', usableUntilMs: cutOffMs + 24 * HOUR_MS })
  })

  it('that EC2 ends was taken back, whatever it says of that', async () => {
    const outcome = await h.backend.launch(await h.order(), patiently())
    if (outcome.kind !== 'launched') throw new Error(JSON.stringify(outcome))
    h.aws.machines.get(outcome.handle.id)!.end({ code: 'Server.Whatever', message: '' })
    expect((await h.backend.observe([outcome.handle], patiently()))[0]).toMatchObject({
      cause: 'interrupted',
    })
  })
})

describe('check', () => {
  it('names reservations of the settings that are none, and the permission to see them', async () => {
    h = made({ reservations: [BLOCK, 'cr-0123'] })
    h.aws.denied = ['ec2:DescribeCapacityReservations']
    const problems = await h.backend.check(patiently())
    expect(problems).toEqual([
      expect.objectContaining({
        severity: 'warning',
        remedy: 'Allow ec2:DescribeCapacityReservations in its policies.',
      }),
      expect.objectContaining({
        severity: 'warning',
        message: expect.stringContaining('reservation cr-0123 for'),
      }),
    ])
  })
})
