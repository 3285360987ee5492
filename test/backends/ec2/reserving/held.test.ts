import { beforeEach, describe, expect, it } from '@jest/globals'
import { Ec2ReservingHarness } from './harness'
import { phaseOf } from '../../../../backends/ec2/market/reservations'
import type { OwnedReservation } from '../../../../core/reservation/reservation'
import { DAY_MS } from '../../../../core/time/time'
import { patiently } from '../../harness'
import { answered } from '../fake-api'
import { reservations } from '../fake-market'

let h: Ec2ReservingHarness

beforeEach(() => {
  h = new Ec2ReservingHarness()
})

const held = async (): Promise<OwnedReservation[]> => h.reserving.reservations(patiently())
const bought = async (wish = h.wish('prepaid')): Promise<OwnedReservation> => {
  const [quote] = await h.reserving.reservable(wish, patiently())
  const order = { intent: 'res-1', send: 1, deployment: 'test', owner: 'ann', backend: 'ec2' }
  const outcome = await h.reserving.reserve({ ...order, quote: quote! }, patiently())
  if (outcome.kind !== 'reserved') throw new Error(outcome.failure.message)
  return outcome.reservation
}

describe('what is held', () => {
  it.each([
    ['payment-pending', 'unpaid'],
    ['payment-failed', 'failed'],
    ['pending', 'assessing'],
    ['assessing', 'assessing'],
    ['scheduled', 'scheduled'],
    ['delayed', 'delayed'],
    ['active', 'active'],
    ['cancelling', 'ending'],
    ['cancelled', 'ended'],
    ['expired', 'ended'],
    ['failed', 'failed'],
    ['unsupported', 'failed'],
    // Never taken for something that is over.
    ['a-new-word', 'delayed'],
  ])('in the state %s is %s', (state, phase) => {
    expect(phaseOf({ state })).toBe(phase)
  })

  it('is shared if another account owns it, and then costs nothing idle', async () => {
    const [one] = reservations(h.nowMs())
    h.aws.reservations.push({ ...one!, owner: '999999999999', matching: 'open' })
    expect((await held())[0]).toMatchObject({
      isShared: true,
      isTargeted: false,
      idleMicroUsdPerHour: 0,
      total: 4,
      free: 4,
    })
  })

  it('says why jobs can never run in it', async () => {
    const [one] = reservations(h.nowMs())
    h.aws.reservations.push(
      { ...one!, id: 'cr-windows', platform: 'Windows' },
      { ...one!, id: 'cr-trainium', type: 'trn1.2xlarge' },
      { ...one!, id: 'cr-unknown', type: 'x99.large' },
      one!,
    )
    expect((await held()).map(({ unfit }) => unfit)).toEqual([
      expect.stringContaining('Windows'),
      expect.stringContaining('not NVIDIA GPUs'),
      'it is unknown, or CRUCIBLE_EC2_TYPES excludes it',
      undefined,
    ])
  })

  it('is shown without its extension if the worker may not read extensions', async () => {
    const { id } = await bought()
    h.aws.fail('extensions', 'UnauthorizedOperation', { httpStatus: 403 })
    const [one] = await held()
    expect(one).toMatchObject({ id })
    expect(one!.extension).toBeUndefined()
  })

  it('shows the extension that was bought last', async () => {
    const { id: reservation } = await bought()
    const extension = { reservation, fee: '1', state: 'payment-failed', boughtAtMs: 1, endsAtMs: 5 }
    h.aws.reserving.extensions.push({ ...extension, boughtAtMs: 2, endsAtMs: 6 }, extension)
    expect((await held())[0]).toMatchObject({ extension: { phase: 'failed', endsAtMs: 6 } })
  })

  it('is not asked for if reservations are off', () => {
    expect(new Ec2ReservingHarness({ reservations: 'none' }).reserving).toBeUndefined()
  })
})

describe('giving back', () => {
  it.each(['delayed', 'assessing'])('is free while it is %s', async (state) => {
    const [one] = reservations(h.nowMs())
    const committedUntilMs = h.nowMs() + DAY_MS
    h.aws.reservations.push({ ...one!, state, committedUntilMs })
    const ref = { id: one!.id, region: 'us-east-1' }
    expect(await h.reserving.releaseTerms(ref, patiently())).toEqual({ chargeMicroUsd: 0 })
  })

  it('waits for terms that AWS has not worked out yet', async () => {
    const { id, region } = await bought(h.committedWish())
    h.aws.reserving.quotesArePending = true
    await expect(h.reserving.releaseTerms({ id, region }, patiently())).rejects.toMatchObject({
      failure: { class: 'transient', retryAfterMs: 5_000 },
    })
  })

  it('costs the price on demand for the machines and hours of the commitment', async () => {
    const { id, region } = await bought(h.committedWish())
    const terms = await h.reserving.releaseTerms({ id, region }, patiently())
    expect(terms.chargeMicroUsd).toBe(14 * 24 * 8 * 1_006_000)
    await h.reserving.release({ id, region }, terms, patiently())
    expect((await held())[0]).toMatchObject({ phase: 'ending', state: 'cancelling' })
    await h.pass(80 * DAY_MS)
    expect((await held())[0]).toMatchObject({ phase: 'ended' })
  })

  it('has no cost at the price of another Region', async () => {
    const { id, region } = await bought({ ...h.committedWish(), regions: ['us-west-2'] })
    expect(region).toBe('us-west-2')
    const cloud = h.clouds[region]!
    for (const call of ['onDemandPrice', 'onDemandPrices'])
      for (let times = 0; times < 3; times++) cloud.fail(call, 'InternalError', { httpStatus: 500 })
    const reopened = h.reopen()
    await expect(reopened.releaseTerms({ id, region }, patiently())).rejects.toMatchObject({
      failure: { class: 'transient', message: expect.stringContaining('in us-west-2 cannot be read') },
    })
    const [shown] = await reopened.reservations(patiently())
    expect(shown).toMatchObject({ id, idleMicroUsdPerHour: undefined })
  })

  it('throws what AWS refuses', async () => {
    const { id, region } = await bought({ ...h.wish('hourly'), regions: ['us-east-1'] })
    h.aws.faults.push({ call: 'cancel', when: 'instead', error: answered('UnauthorizedOperation', 403) })
    const release = h.reserving.release({ id, region }, { chargeMicroUsd: 0 }, patiently())
    await expect(release).rejects.toMatchObject({ failure: { class: 'auth' } })
  })
})

describe('a later start', () => {
  const later = async (days: number) => {
    const ref = await bought(h.committedWish())
    const [before] = await held()
    const startsAtMs = before!.startsAtMs! + days * DAY_MS
    return { ref, startsAtMs, change: h.reserving.change(ref, { kind: 'start', startsAtMs }, patiently()) }
  }

  it('takes the terms of a quote that moves the commitment, once', async () => {
    const { ref, startsAtMs, change } = await later(3)
    expect(await change).toMatchObject({ id: ref.id, startsAtMs })
    expect((await held())[0]).toMatchObject({ startsAtMs })
    await h.reserving.change(ref, { kind: 'start', startsAtMs }, patiently())
    expect([h.aws.countOf('dateChangeQuote'), h.aws.countOf('modify')]).toEqual([1, 1])
  })

  it('takes no other terms, which a person must accept', async () => {
    h.aws.reserving.longerCommitmentMs = DAY_MS
    const { change } = await later(3)
    await expect(change).rejects.toMatchObject({
      failure: {
        class: 'invalid',
        message: expect.stringMatching(/^AWS offers other terms .*committed until/),
      },
    })
    expect(h.aws.countOf('modify')).toBe(0)
  })
})

describe('a change', () => {
  it('is not sent if it changes nothing', async () => {
    const ref = await bought({ ...h.wish('hourly'), count: 2, regions: ['us-east-1'] })
    await h.reserving.change(ref, { kind: 'count', count: 2 }, patiently())
    await h.reserving.change(ref, { kind: 'end', endsAtMs: null }, patiently())
    expect(h.aws.countOf('modify')).toBe(0)
  })

  it('of a reservation that is over is refused as expired', async () => {
    const ref = await bought({ ...h.wish('hourly'), regions: ['us-east-1'] })
    await h.reserving.release(ref, { chargeMicroUsd: 0 }, patiently())
    await expect(h.reserving.change(ref, { kind: 'count', count: 2 }, patiently())).rejects.toMatchObject({
      failure: { class: 'expired' },
    })
  })
})
