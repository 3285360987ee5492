import { beforeEach, describe, expect, it } from '@jest/globals'
import { BackendError } from '../../../../backends/errors'
import { AwsError } from '../../../../backends/ec2/sdk/api'
import type { CreateRequest } from '../../../../backends/ec2/sdk/api-reserving'
import type {
  CapacityQuote,
  ReservationKind,
  ReservationOrder,
} from '../../../../core/reservation/reservation'
import { DAY_MS, MINUTE_MS } from '../../../../core/time/time'
import { patiently } from '../../harness'
import { answered } from '../fake-api'
import { Ec2ReservingHarness } from './harness'

let h: Ec2ReservingHarness

beforeEach(() => {
  h = new Ec2ReservingHarness()
})

const quoted = async (kind: ReservationKind = 'prepaid'): Promise<CapacityQuote> =>
  (await h.reserving.reservable(h.wish(kind), patiently()))[0]!
const orderOf = (quote: CapacityQuote, more: Partial<ReservationOrder> = {}): ReservationOrder => ({
  intent: 'res-1',
  send: 1,
  deployment: 'test',
  owner: 'ann@example.org',
  backend: 'ec2',
  quote,
  ...more,
})
const fail = (call: string, error: AwsError): void => {
  h.aws.faults.push({ call, when: 'instead', error })
}
const lost = (reach: AwsError['reach']): AwsError => new AwsError('lost', { code: 'ECONNRESET', reach })

describe('a purchase of a Capacity Block', () => {
  it.each([
    ['403, not permitted', answered('UnauthorizedOperation', 403), 'refused', 'auth'],
    ['400, a parameter', answered('InvalidParameterValue', 400), 'refused', 'invalid'],
    ['400, the offering', answered('InvalidCapacityBlockOfferingId.NotFound', 400), 'refused', 'capacity'],
    ['400, of an unknown kind', answered('Novelty', 400), 'refused', 'unclassified'],
    ['503, a throttle', answered('RequestLimitExceeded', 503), 'refused', 'throttled'],
    ['500, internal', answered('InternalError', 500), 'unconfirmed', 'transient'],
    ['400, internal', answered('InternalError', 400), 'unconfirmed', 'transient'],
    ['500, without capacity', answered('InsufficientInstanceCapacity', 500), 'unconfirmed', 'capacity'],
    ['503, unavailable', answered('Unavailable', 503), 'unconfirmed', 'transient'],
    ['502, of an unknown kind', answered('BadGateway', 502), 'unconfirmed', 'transient'],
    ['a connection that broke', lost('unanswered'), 'unconfirmed', 'transient'],
    ['no connection', lost('unsent'), 'refused', 'transient'],
  ])('answered by %s is judged, and sent once', async (_what, error, kind, failure) => {
    const order = orderOf(await quoted())
    fail('buyBlock', error)
    expect(await h.reserving.reserve(order, patiently())).toMatchObject({ kind, failure: { class: failure } })
    expect([h.sent(), h.purchases()]).toEqual([1, []])
  })

  it('without an answer until the caller leaves is unconfirmed', async () => {
    const order = orderOf(await quoted())
    h.aws.faults.push({ call: 'buyBlock', when: 'hangs' })
    const leaving = new AbortController()
    const outcome = h.reserving.reserve(order, { signal: leaving.signal })
    setImmediate(() => leaving.abort())
    expect((await outcome).kind).toBe('unconfirmed')
    expect(h.purchases()).toHaveLength(1)
  })

  it('is tried as a dry run first, with the same request', async () => {
    await h.reserving.reserve(orderOf(await quoted()), patiently())
    const [trial] = h.aws.calls.filter(({ name }) => name === 'tryBlock')
    const [purchase] = h.aws.calls.filter(({ name }) => name === 'buyBlock')
    expect(trial!.detail).toEqual({ ...(purchase!.detail as object), isTrial: true })
    expect(purchase!.detail).toEqual({
      offering: 'cb-1',
      isTrial: false,
      tags: {
        Name: 'crucible res-1',
        'crucible:deployment': 'test',
        'crucible:intent': 'res-1',
        'crucible:intent-send': '1',
        'crucible:owner': 'ann@example.org',
        'crucible:offering': 'cb-1',
        'crucible:fee': '4529.340001 USD',
      },
    })
  })

  it("has the account's own tags", async () => {
    h = new Ec2ReservingHarness({ tags: { team: 'ml' } })
    await h.reserving.reserve(orderOf(await quoted()), patiently())
    const [purchase] = h.aws.calls.filter(({ name }) => name === 'buyBlock')
    expect(purchase!.detail).toMatchObject({ tags: { team: 'ml', 'crucible:intent': 'res-1' } })
  })

  it('stops if the dry run is answered like a purchase', async () => {
    const order = orderOf(await quoted())
    h.aws.reserving.ignoresTrials = true
    expect(await h.reserving.reserve(order, patiently())).toMatchObject({ kind: 'unconfirmed' })
    expect(h.sent()).toBe(0)
  })

  it('is not sent if the dry run fails in passing', async () => {
    const order = orderOf(await quoted())
    fail('tryBlock', answered('InternalError', 500))
    await expect(h.reserving.reserve(order, patiently())).rejects.toMatchObject({
      failure: { class: 'transient' },
    })
    expect(h.sent()).toBe(0)
  })

  it('is not sent if the caller leaves during the dry run', async () => {
    const order = orderOf(await quoted())
    const leaving = new AbortController()
    h.aws.faults.push({
      call: 'tryBlock',
      when: 'instead',
      get error() {
        leaving.abort()
        return answered('DryRunOperation', 412)
      },
    })
    await expect(h.reserving.reserve(order, { signal: leaving.signal })).rejects.toBeInstanceOf(BackendError)
    expect([h.sent(), h.purchases()]).toEqual([0, []])
  })

  it('is not sent if its time is over after the dry run, though no timer has told so yet', async () => {
    const order = orderOf(await quoted())
    const suspended = { ...patiently(), isLate: () => true }
    await expect(h.reserving.reserve(order, suspended)).rejects.toMatchObject({
      failure: { class: 'transient' },
    })
    expect([h.sent(), h.purchases()]).toEqual([0, []])
  })

  it('says how to permit it, if it is not permitted', async () => {
    const order = orderOf(await quoted())
    fail('tryBlock', answered('UnauthorizedOperation', 403))
    expect(await h.reserving.reserve(order, patiently())).toMatchObject({
      failure: { hint: expect.stringContaining('CRUCIBLE_EC2_BUYER_ROLE') },
    })
  })

  it('is not sent in the name of a role of another account, whose blocks never show here', async () => {
    h = new Ec2ReservingHarness({ buyerRole: 'arn:aws:iam::999999999999:role/buyer' })
    for (const kind of ['prepaid', 'hourly'] as const)
      expect(await h.reserving.reserve(orderOf(await quoted(kind)), patiently())).toMatchObject({
        kind: 'refused',
        failure: { class: 'auth', message: expect.stringMatching(/another account/) },
      })
    expect(h.sent()).toBe(0)
    h = new Ec2ReservingHarness({ buyerRole: 'arn:aws:iam::123456789012:role/buyer' })
    expect((await h.reserving.reserve(orderOf(await quoted()), patiently())).kind).toBe('reserved')
  })

  it('buys the same block under its new id', async () => {
    const order = orderOf(await quoted())
    h.aws.reserving.blocks[0]!.id = 'cb-2'
    expect((await h.reserving.reserve(order, patiently())).kind).toBe('reserved')
    expect(h.aws.reserving.purchases[0]!.tags['crucible:offering']).toBe('cb-2')
  })

  it.each([
    ['zone', { zone: 'us-east-1b' }],
    ['start', { startsAtMs: Date.UTC(2026, 10, 30, 12) }],
    ['end', { endsAtMs: Date.UTC(2026, 11, 2, 11) }],
    ['fee, which is lower', { upfrontFee: '4529.34' }],
    ['currency', { currency: 'EUR' }],
    ['tenancy', { tenancy: 'dedicated' }],
  ])('of another %s is not the one that was wanted', async (_what, other) => {
    const order = orderOf(await quoted())
    Object.assign(h.aws.reserving.blocks[0]!, other)
    expect(await h.reserving.reserve(order, patiently())).toMatchObject({
      kind: 'refused',
      failure: { class: 'capacity' },
    })
    expect(h.sent()).toBe(0)
  })

  it('buys a block that begins as soon as possible although its start has moved on meanwhile', async () => {
    h.clockMs = h.aws.reserving.blocks[0]!.startsAtMs - 30 * MINUTE_MS
    const order = orderOf(await quoted())
    const { startsAtMs } = h.aws.reserving.blocks[0]!
    const moved = { startsAtMs: startsAtMs + MINUTE_MS, upfrontFee: '4527.5' }
    h.clockMs += MINUTE_MS
    Object.assign(h.aws.reserving.blocks[0]!, { id: 'cb-2', ...moved })
    expect(await h.reserving.reserve(order, patiently())).toMatchObject({
      kind: 'reserved',
      reservation: { upfrontMicroUsd: 4_527_500_000 },
    })
    expect(h.aws.reserving.purchases[0]!.tags['crucible:fee']).toBe('4527.5 USD')
  })

  it.each([
    ['at a higher fee', { upfrontFee: '4529.340002' }],
    ['to another end', { endsAtMs: Date.UTC(2026, 11, 2, 11) }],
    ['by more than a quarter of an hour', { startsAtMs: Date.UTC(2026, 10, 30, 11, 46) }],
  ])('does not buy a block whose start has moved on %s', async (_what, other) => {
    h.clockMs = h.aws.reserving.blocks[0]!.startsAtMs - 30 * MINUTE_MS
    const order = orderOf(await quoted())
    Object.assign(h.aws.reserving.blocks[0]!, { startsAtMs: Date.UTC(2026, 10, 30, 11, 31), ...other })
    expect(await h.reserving.reserve(order, patiently())).toMatchObject({ kind: 'refused' })
    expect(h.sent()).toBe(0)
  })

  it('is a success even if nothing else can be read after it', async () => {
    const quote = await quoted()
    const reopened = h.reopen()
    for (const call of ['identity', 'types']) fail(call, answered('UnauthorizedOperation', 403))
    expect(await reopened.reserve(orderOf(quote), patiently())).toMatchObject({
      kind: 'reserved',
      reservation: { intent: 'res-1', phase: 'unpaid' },
    })
  })
})

describe('an on-demand reservation', () => {
  it.each([
    ['no capacity', answered('InsufficientInstanceCapacity', 500), 'refused', 'capacity'],
    ['a quota', answered('InstanceLimitExceeded', 400), 'refused', 'quota'],
    ['an internal error', answered('InternalError', 500), 'unconfirmed', 'transient'],
    ['a broken connection', lost('unanswered'), 'unconfirmed', 'transient'],
  ])('answered by %s is judged', async (_what, error, kind, failure) => {
    const order = orderOf(await quoted('hourly'))
    fail('create', error)
    expect(await h.reserving.reserve(order, patiently())).toMatchObject({ kind, failure: { class: failure } })
  })

  it('has a token of deployment, intent and send', async () => {
    const quote = await quoted('hourly')
    for (const more of [{}, { send: 2 }, { intent: 'res-2' }, { deployment: 'other' }])
      await h.reserving.reserve(orderOf(quote, more), patiently())
    const tokens = h.aws.calls
      .filter(({ name }) => name === 'create')
      .map(({ detail }) => (detail as CreateRequest).token)
    expect(new Set(tokens).size).toBe(4)
    expect(tokens.every((token) => token.length <= 64)).toBe(true)
  })

  it('asks for its start and commitment, if these are in the future', async () => {
    const wish = { ...h.committedWish(), durationMs: 20 * DAY_MS }
    const [quote] = await h.reserving.reservable(wish, patiently())
    const startsAtMs = wish.earliestStartAtMs!
    expect(quote).toMatchObject({ startsAtMs, endsAtMs: startsAtMs + 20 * DAY_MS, committedMs: 14 * DAY_MS })
    await h.reserving.reserve(orderOf(quote!), patiently())
    expect(h.aws.calls.find(({ name }) => name === 'create')!.detail).toMatchObject({
      type: 'g5.xlarge',
      count: 8,
      endsAtMs: startsAtMs + 20 * DAY_MS,
      later: { startsAtMs, committedMs: 14 * DAY_MS },
    })
  })

  it('is not made once its end has passed', async () => {
    const wish = { ...h.wish('hourly'), durationMs: DAY_MS }
    const [quote] = await h.reserving.reservable(wish, patiently())
    await h.pass(DAY_MS)
    expect(await h.reserving.reserve(orderOf(quote!), patiently())).toMatchObject({ kind: 'refused' })
    expect(h.sent()).toBe(0)
  })

  it('is not sent once its time is over', async () => {
    const [quote] = await h.reserving.reservable(h.wish('hourly'), patiently())
    const late = h.reserving.reserve(orderOf(quote!), { ...patiently(), isLate: () => true })
    await expect(late).rejects.toMatchObject({ failure: { class: 'transient' } })
    expect(h.sent()).toBe(0)
  })
})

describe('a purchase of an extension', () => {
  const extended = async (): Promise<ReservationOrder> => {
    const bought = await h.reserving.reserve(orderOf(await quoted()), patiently())
    if (bought.kind !== 'reserved') throw new Error(bought.failure.message)
    const { id, region } = bought.reservation
    h.pay(id, 'confirmed')
    const wish = { ...h.wish('prepaid'), durationMs: DAY_MS, extends: { id, region } }
    return orderOf((await h.reserving.reservable(wish, patiently()))[0]!)
  }

  it('is unconfirmed if the answer is lost, and shows in the reservation', async () => {
    const order = await extended()
    h.aws.faults.push({ call: 'buyExtension', when: 'after' })
    expect((await h.reserving.reserve(order, patiently())).kind).toBe('unconfirmed')
    const [held] = await h.reserving.reservations(patiently())
    expect(held).toMatchObject({ extension: { phase: 'unpaid', endsAtMs: order.quote.endsAtMs } })
    expect(h.sent()).toBe(2)
  })

  it('is refused if another one was bought since', async () => {
    const order = await extended()
    await h.reserving.reserve(order, patiently())
    expect(await h.reserving.reserve(order, patiently())).toMatchObject({
      kind: 'refused',
      failure: { class: 'capacity' },
    })
    expect(h.sent()).toBe(2)
  })

  it('is tried as a dry run first', async () => {
    const order = await extended()
    fail('tryExtension', answered('UnauthorizedOperation', 403))
    expect(await h.reserving.reserve(order, patiently())).toMatchObject({ failure: { class: 'auth' } })
    expect(h.sent()).toBe(1)
  })
})
