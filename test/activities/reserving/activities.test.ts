/** The activities of reservations, as a worker runs them: over a scripted market, with a record that a test reads. */
import { describe, expect, it } from '@jest/globals'
import { decideExtension } from '../../../activities/reserving/extension'
import type { Backend } from '../../../backends/backend'
import type { JobSpec } from '../../../core/job/job'
import { microUsd } from '../../../core/money/money'
import type { PlanReport } from '../../../core/job/plan'
import type { OwnedReservation } from '../../../core/reservation/reservation'
import { DAY_MS, HOUR_MS } from '../../../core/time/time'
import { putDocument } from '../../../storage/json'
import { layout } from '../../../storage/layout'
import { claimReservation, putReservationEntry, readHolder } from '../../../storage/reservations'
import { Desk, environment, HOURLY, WISH } from './desk'
import { INTENT, START_MS } from './place'

describe('a look for capacity', () => {
  it('puts what it has seen and its verdict on record', async () => {
    const desk = new Desk()
    const verdict = await desk.look()
    expect(verdict).toMatchObject({ kind: 'buy', account: 'account-1', sends: 0 })
    const [entry] = await desk.record()
    expect(entry).toMatchObject({
      seq: 1,
      atMs: START_MS,
      kind: 'looked',
      summary: verdict.message,
      data: { wish: WISH, quotes: [{ type: 'p5' }], owned: [], verdict: { kind: 'buy' } },
    })
  })

  it('is refused for a reservation that is over, and buys nothing', async () => {
    const desk = new Desk()
    await desk.look()
    const over = { seq: 9, atMs: START_MS, kind: 'over', summary: '', data: {} } as const
    await putReservationEntry(desk.store, INTENT, over)
    for (const isFirst of [true, false])
      await expect(desk.look({ isFirst })).rejects.toMatchObject({ failure: { code: 'NOT_ALLOWED' } })
    expect((await desk.record()).at(-1)).toMatchObject({ kind: 'over' })
  })

  it('says which parts did not answer, and fails if none did', async () => {
    const desk = new Desk()
    desk.market.sell({ ...HOURLY, kind: 'hourly', region: 'west' })
    desk.market.silent.add('west')
    expect((await desk.look()).unseen).toEqual(['west: west does not answer'])
    expect((await desk.look({ wish: { ...WISH, regions: ['east'] } })).unseen).toEqual([])
    desk.market.silent.add('east')
    await expect(desk.look()).rejects.toThrow('does not answer')
  })

  it('gives up what is never sold at the first look only, and passes other trouble on', async () => {
    const desk = new Desk()
    const wish = { ...WISH, types: ['none'] }
    expect(await desk.look({ wish, isFirst: true })).toMatchObject({ kind: 'give-up', isInvalid: true })
    expect(await desk.look({ wish })).toMatchObject({ kind: 'wait' })
    desk.market.faults.add('reservable', {
      kind: 'throws',
      failure: { class: 'throttled', message: 'too many requests' },
    })
    await expect(desk.look()).rejects.toThrow('too many requests')
  })

  it('adopts what was bought for the wish, claims it, and says which purchase made it', async () => {
    const desk = new Desk()
    await desk.purchases.seal({ intent: INTENT, send: 1 })
    await desk.buy(desk.order({ send: 2 }))
    const verdict = await desk.look({ sends: 2 })
    expect(verdict).toMatchObject({ kind: 'adopt', send: 2, reservation: { intent: INTENT } })
    const claim = {
      backend: 'scripted',
      ownedId: (verdict as { reservation: OwnedReservation }).reservation.id,
    }
    expect(await claimReservation(desk.store, { ...claim, intent: 'res-b' })).toBe(INTENT)
  })

  it('adopts idle prepaid capacity without an owner and names no purchase, and not what another wish has', async () => {
    const desk = new Desk()
    const id = desk.untagged()
    const verdict = await desk.look()
    expect(verdict).toMatchObject({ kind: 'adopt', reservation: { id } })
    expect(verdict).not.toHaveProperty('send')
    const other = new Desk()
    const taken = other.untagged()
    await claimReservation(other.store, { backend: 'scripted', ownedId: taken, intent: 'res-b' })
    expect((await other.look()).kind).toBe('buy')
  })

  it('does not adopt what another wish has claimed', async () => {
    const desk = new Desk()
    const id = 'r-1'
    await claimReservation(desk.store, { backend: 'scripted', ownedId: id, intent: 'res-b' })
    await desk.buy()
    expect(desk.market.purchases).toMatchObject([{ id }])
    await expect(desk.look({ sends: 1 })).rejects.toThrow(`res-b claimed ${id} first; searching again.`)
  })

  it('takes up a purchase that the workflow does not know, and passes those that ended', async () => {
    const desk = new Desk()
    await desk.purchases.seal({ intent: INTENT, send: 1 })
    const order = desk.order({ send: 2 })
    await desk.purchases.mark(order, { ownedBefore: [] })
    expect(await desk.look()).toMatchObject({ kind: 'resume', order, sends: 1 })
    await desk.purchases.conclude(order, {
      kind: 'no-effect',
      failure: { class: 'capacity', message: 'gone' },
    })
    expect(await desk.look()).toMatchObject({ kind: 'buy', sends: 2 })
  })

  it('is refused by a backend that sells none', async () => {
    const desk = new Desk()
    const activities = desk.over({ name: 'modal' } as Backend)
    await expect(environment().run(() => activities.surveyCapacity({}))).rejects.toThrow(
      'modal sells no reservations, or its settings exclude them.',
    )
  })
})

describe('a survey', () => {
  it('shows what is owned, and quotes for a wish only, without a record', async () => {
    const desk = new Desk()
    const id = desk.untagged()
    const survey = await desk.run('surveyCapacity', {})
    expect(survey).toMatchObject({ account: 'account-1', owned: [{ id }], quotes: [] })
    expect((await desk.run('surveyCapacity', { wish: WISH })).quotes).toHaveLength(1)
    expect(await desk.record()).toEqual([])
  })
})

describe('a purchase', () => {
  it('is on record before it is sent, and what was found of it after', async () => {
    const desk = new Desk()
    const order = desk.order()
    desk.market.faults.add('reserve', { kind: 'loses-answer', hasEffect: true })
    expect((await desk.run('buyCapacity', { order, rule: {} })).kind).toBe('unconfirmed')
    expect((await desk.run('findPurchase', { order, rule: {} })).kind).toBe('found')
    expect((await desk.record()).map(({ kind, summary }) => [kind, summary])).toEqual([
      [
        'sent',
        'Purchase 1: 4 × p5 in east-a, 2026-11-03T00:00:00Z to 2026-11-05T00:00:00Z for $1.00 upfront',
      ],
      ['searched-for-purchase', `The purchase was made: ${desk.market.purchases[0]!.id}.`],
    ])
  })

  it('that a person decides has their name on record', async () => {
    const desk = new Desk()
    const order = desk.order()
    desk.market.faults.add('reserve', { kind: 'loses-answer', hasEffect: false })
    await desk.run('buyCapacity', { order, rule: {} })
    expect((await desk.run('findPurchase', { order, rule: {} })).kind).toBe('absent')
    await desk.run('decidePurchase', { order, by: 'eve', ownedId: null })
    expect((await desk.record()).at(-1)).toMatchObject({
      kind: 'decided',
      summary: 'eve: Nothing was bought. eve has determined that it was not bought.',
    })
  })
})

describe('a look at what is held', () => {
  const held = { state: 'active', upfrontMicroUsd: 0, idleMicroUsd: 0, idleMs: 0, misses: 0 } as const
  const look = (
    desk: Desk,
    ref: { id: string; region: string },
    more: object = {},
  ): Promise<{ next: string }> =>
    desk.run('holdReservation', { ref, wish: WISH, rule: {}, held: { ...held, ...more } })

  it('is on record if it is news', async () => {
    const desk = new Desk()
    const ref = desk.hourly()
    expect((await look(desk, ref, { state: 'scheduled' })).next).toBe('hold')
    await look(desk, ref)
    await look(desk, ref, { idleMs: 2 * HOUR_MS, reservation: desk.market.reservation(ref.id) })
    const kinds = (await desk.record()).map(({ kind, seq }) => [kind, seq])
    expect(kinds).toEqual([
      ['held', 1],
      ['held', 3],
    ])
  })

  it('finds one that the provider does not list missing', async () => {
    const desk = new Desk()
    expect(await look(desk, { id: 'r-9', region: 'east' })).toMatchObject({
      message: 'The provider does not list the reservation at the moment.',
    })
  })
})

describe('a second purchase with the tags of a wish', () => {
  it('that the wish does not hold is said, while it is held', async () => {
    const desk = new Desk()
    const ref = desk.hourly()
    const stray = desk.hourly()
    desk.hourly({ tags: { deployment: 'other', intent: INTENT } })
    const held = {
      state: 'active' as const,
      upfrontMicroUsd: 0,
      idleMicroUsd: 0,
      idleMs: 0,
      misses: 0,
      reservation: desk.market.reservation(ref.id)!,
    }
    const look = (): Promise<{ warning?: string }> =>
      desk.run('holdReservation', { ref, held, wish: WISH, rule: {} })
    expect((await look()).warning).toMatch(
      new RegExp(`^${stray.id} \\(4 × p5\\) was bought for ${INTENT}, too, .* cancel it at the provider`),
    )
    desk.market.release(stray, { chargeMicroUsd: 0 })
    expect(await look()).not.toHaveProperty('warning')
  })
})

describe('a release', () => {
  const give = (desk: Desk, ref: { id: string; region: string }, chargeMaxMicroUsd = 0): Promise<void> =>
    desk.run('releaseReservation', { ref, reason: 'ada asked for it', chargeMaxMicroUsd })

  it('gives back and says why on record', async () => {
    const desk = new Desk()
    const ref = desk.hourly()
    await give(desk, ref)
    expect(desk.market.held()).toEqual([])
    expect(await desk.record()).toMatchObject([
      { kind: 'released', summary: `Gave back ${ref.id}: ada asked for it` },
    ])
  })

  it('is refused while it costs more than is accepted', async () => {
    const desk = new Desk()
    const ref = desk.hourly({ committedUntilMs: START_MS + HOUR_MS })
    await expect(give(desk, ref, microUsd(8) - 1)).rejects.toThrow(
      /still costs \$8\.00, and \$8\.00 is accepted\. Accept it with --max-charge/,
    )
    expect(await desk.record()).toEqual([])
    await give(desk, ref, microUsd(8))
    expect(await desk.record()).toHaveLength(1)
  })
})

describe('a change of the machines', () => {
  const change = (desk: Desk, ref: { id: string; region: string }, more: object): Promise<OwnedReservation> =>
    desk.run('changeReservation', { ref, rule: {}, spentMicroUsd: 0, ...more })

  it('sets number and end, and repeats without an effect', async () => {
    const desk = new Desk()
    desk.market.sell({ ...HOURLY, kind: 'hourly' })
    const ref = desk.hourly()
    const endsAtMs = START_MS + DAY_MS
    const wanted = { count: 6, endsAtMs }
    expect(await change(desk, ref, wanted)).toMatchObject({ total: 6, free: 6, endsAtMs })
    expect(await change(desk, ref, wanted)).toMatchObject({ total: 6, endsAtMs })
    expect(desk.market.reservation(ref.id)).toMatchObject({ total: 6, endsAtMs })
    expect((await change(desk, ref, { endsAtMs: null })).endsAtMs).toBeUndefined()
    expect((await desk.record()).map(({ kind, summary }) => [kind, summary])).toEqual([
      ['changed', `${ref.id} has 6 machines, until 2026-11-03T00:00:00Z.`],
      ['changed', `${ref.id} has 6 machines, until 2026-11-03T00:00:00Z.`],
      ['changed', `${ref.id} has 6 machines, without an end.`],
    ])
  })

  it('that the rule or the machines in it forbid is refused before anything is sent', async () => {
    const desk = new Desk()
    const ref = desk.hourly({ used: 3 })
    const rule = { spendMaxMicroUsd: microUsd(11) }
    await expect(change(desk, ref, { count: 2 })).rejects.toThrow(/3 of the 4 places .* are in use/)
    await expect(change(desk, ref, { count: 6, rule })).rejects.toThrow('Raise it: --max-spend 12.')
    await expect(change(desk, ref, { count: 5, rule, spentMicroUsd: microUsd(2) })).rejects.toThrow(
      'Raise it',
    )
    await expect(change(desk, { ...ref, id: 'r-9' }, { count: 2 })).rejects.toMatchObject({
      failure: { class: 'expired' },
    })
    expect(desk.market.calls.some(({ verb }) => verb === 'change')).toBe(false)
    expect(await desk.record()).toEqual([])
  })
})

describe('a split', () => {
  const part = {
    reservationId: 'res-part',
    owner: 'ada',
    deployment: 'dep',
    submittedAtMs: START_MS,
    rule: {},
    wish: { ...WISH, kind: 'hourly', count: 1 },
  } as const
  const split = (desk: Desk, ref: { id: string; region: string }, count = 1): Promise<OwnedReservation> =>
    desk.run('splitReservation', { ref, count, part })

  it('is made once, with a request, a purchase and a claim of its own', async () => {
    const desk = new Desk()
    const ref = desk.hourly()
    const made = await split(desk, ref)
    expect(made).toMatchObject({ total: 1, intent: 'res-part', deployment: 'dep' })
    expect(await readHolder(desk.store, 'res-part')).toMatchObject({ share: 'owner' })
    expect((await split(desk, ref)).id).toBe(made.id)
    expect(desk.market.calls.filter(({ verb }) => verb === 'change')).toHaveLength(1)
    expect(desk.market.held().map(({ total }) => total)).toEqual([3, 1])
    expect(await desk.record('res-part')).toMatchObject([{ seq: 0, kind: 'requested', data: part }])
    expect(await desk.purchases.effect({ intent: 'res-part', send: 1 })).toMatchObject({
      kind: 'bought',
      reservationId: made.id,
    })
    const claim = { backend: 'scripted', ownedId: made.id, intent: 'res-b' }
    expect(await claimReservation(desk.store, claim)).toBe('res-part')
  })

  it('whose answer is lost is found by the same request, also while lists are late', async () => {
    const desk = new Desk({ listsLagMs: HOUR_MS })
    const ref = desk.hourly({ used: 3 })
    desk.market.faults.add('change', { kind: 'loses-answer', hasEffect: true })
    await expect(split(desk, ref)).rejects.toThrow('the answer was lost')
    expect(await desk.record('res-part')).toEqual([])
    expect(await split(desk, ref)).toMatchObject({ total: 1, intent: 'res-part' })
    expect(desk.market.held().map(({ total }) => total)).toEqual([3, 1])
  })

  it('is not one of the same name in another deployment', async () => {
    const desk = new Desk()
    const ref = desk.hourly()
    const other = desk.hourly({ tags: { deployment: 'other', intent: 'res-part' } })
    expect((await split(desk, ref)).id).not.toBe(other.id)
  })

  it.each([
    ['is searched for', (desk: Desk) => desk.note('res-part')],
    ['is being bought', (desk: Desk) => desk.purchases.seal({ intent: 'res-part', send: 1 })],
    ['is held', (desk: Desk) => desk.hourly({ tags: { deployment: 'dep', intent: 'res-part' } })],
  ] as const)('into a reservation that %s already is refused', async (_, take) => {
    const desk = new Desk()
    const ref = desk.hourly()
    await take(desk)
    await expect(split(desk, ref)).rejects.toThrow(/^res-part already exists; nothing was split/)
    expect(desk.market.held()[0]).toMatchObject({ id: ref.id, total: 4 })
  })

  it('of places in use, or of what is gone, is refused without a trace', async () => {
    const desk = new Desk()
    const ref = desk.hourly({ used: 3 })
    await expect(split(desk, ref, 2)).rejects.toThrow(/Only 1 of the 4 places/)
    await expect(split(desk, { ...ref, id: 'r-9' })).rejects.toThrow('r-9 has ended or does not exist.')
    expect(await desk.record('res-part')).toEqual([])
    expect(await desk.purchases.read({ intent: 'res-part', send: 1 })).toBeUndefined()
  })
})

describe('a look for an extension', () => {
  const usableUntilMs = START_MS + 3 * HOUR_MS
  const RUNNING = {
    owner: { deployment: 'dep', jobId: 'job-a', attemptId: 'job-a-1' },
    handle: { kind: 'machine' },
  }

  async function running(reservationId?: string): Promise<{ desk: Desk; reservation: OwnedReservation }> {
    const desk = new Desk()
    const id = desk.market.hold({
      kind: 'prepaid',
      ...HOURLY,
      total: 1,
      startsAtMs: START_MS,
      endsAtMs: START_MS + 3.5 * HOUR_MS,
    })
    desk.market.sell({ kind: 'extension', reservation: id, durationMs: DAY_MS, upfrontMicro: microUsd(9) })
    const realised = { reservationId: reservationId ?? id, priceMicroUsdPerHour: 0 }
    const machine = { kind: 'machine', id: 'i-1', attemptId: 'job-a-1', launchedAtMs: START_MS, realised }
    await putDocument(desk.store, layout.machine('job-a', 1), machine)
    const forecast = { startMs: 0, trainingMs: 4 * HOUR_MS }
    const launched = { expected: { costMicroUsd: 1, durationMs: 4 * HOUR_MS, forecast } }
    const offers = [{ reservationId: id, shape: { accelerator: 'H100' } }]
    await putDocument(desk.store, layout.record('job-a', 3), {
      seq: 3,
      atMs: START_MS,
      kind: 'launched',
      attempt: 1,
      summary: '',
      data: { ...launched, offers },
    })
    desk.resources = [RUNNING, { ...RUNNING, owner: { ...RUNNING.owner, deployment: 'other' } }]
    return { desk, reservation: desk.market.reservation(id)! }
  }

  it('finds the jobs in it and what an extension costs', async () => {
    const { desk, reservation } = await running()
    expect(reservation.usableUntilMs).toBe(usableUntilMs)
    expect(await desk.run('lookForExtension', { reservation, rule: {} })).toMatchObject({
      jobs: [
        { jobId: 'job-a', attempt: 1, left: { ms: 4 * HOUR_MS, basis: 'forecast' }, accelerator: 'H100' },
      ],
      quotes: [{ extends: reservation.id, upfrontMicro: microUsd(9) }],
      nowMs: START_MS,
    })
  })

  it('asks for no extension while everything is done in time, and leaves other machines out', async () => {
    const { desk, reservation } = await running()
    const later = { ...reservation, usableUntilMs: usableUntilMs + HOUR_MS }
    expect(await desk.run('lookForExtension', { reservation: later, rule: {} })).toMatchObject({ quotes: [] })
    expect(desk.market.calls.some(({ verb }) => verb === 'reservable')).toBe(false)
    const other = await running('r-9')
    const elsewhere = { reservation: other.reservation, rule: {} }
    expect(await other.desk.run('lookForExtension', elsewhere)).toMatchObject({ jobs: [] })
  })

  it('leaves out jobs that it is not for', async () => {
    const { desk, reservation } = await running()
    const jobsOf = async (trainings: string): Promise<string[]> => {
      const rule = { extendFor: { trainings, backends: [] } }
      const { jobs } = await desk.run('lookForExtension', { reservation, rule })
      return jobs.map(({ jobId }) => jobId)
    }
    expect(await jobsOf('job-a')).toEqual(['job-a'])
    expect(await jobsOf('job-b')).toEqual([])
  })

  it('is decided by the next best place for the rest, once, with its inputs on record', async () => {
    const { desk, reservation } = await running()
    const spec = { name: 'a', durationMs: 100 * HOUR_MS } as JobSpec
    await putDocument(desk.store, layout.record('job-a', 1), {
      seq: 1,
      atMs: START_MS,
      kind: 'resolved',
      summary: '',
      data: { spec },
    })
    const asked: JobSpec[] = []
    const place = (usd: number, reservationId?: string): object => ({
      costMicroUsd: microUsd(usd),
      offer: { backend: 'ec2', capacityType: 'spot', type: 'p5', place: 'a', reservationId },
    })
    const preview = async (rest: JobSpec): Promise<PlanReport> => {
      asked.push(rest)
      return { placements: [place(1, reservation.id), place(30), place(12)] } as PlanReport
    }
    const look = await desk.run('lookForExtension', { reservation, rule: {} })
    const task = { reservationId: INTENT, deployment: 'dep', owner: 'ada', recordSeq: 50 }
    const rule = { extendMaxMicroUsd: microUsd(20) }
    const deps = { store: desk.store, now: () => desk.clock.now(), preview }
    const decide = (changes: object = {}): ReturnType<typeof decideExtension> =>
      decideExtension(deps, { ...task, reservation, rule, extendedMicroUsd: 0, look, ...changes })
    expect(await decide()).toMatchObject({
      kind: 'extend',
      durationMs: DAY_MS,
      upfrontMaxMicroUsd: microUsd(9),
    })
    expect(asked).toEqual([{ ...spec, durationMs: HOUR_MS, durationOn: 'H100' }])
    expect((await desk.record()).at(-1)).toMatchObject({
      seq: 50,
      kind: 'judged-extension',
      data: {
        facts: { rule, elsewhere: { 'job-a': { costMicroUsd: microUsd(12) } }, quotes: [{}] },
        decision: { kind: 'extend' },
      },
    })
    // A repeated activity answers what is on record.
    expect(await decide({ rule: {} })).toMatchObject({ kind: 'extend' })
    expect(await decide({ rule: {}, recordSeq: 51 })).toMatchObject({ kind: 'move' })
  })

  it('for a training is compared with the backends on which it would continue, if there are any', async () => {
    const { desk, reservation } = await running()
    const spec = { name: 'a', reservation: 'res-1', regions: ['b'], backends: [] } as unknown as JobSpec
    await putDocument(desk.store, layout.record('job-a', 1), {
      seq: 1,
      atMs: START_MS,
      kind: 'resolved',
      summary: '',
      data: { spec },
    })
    const asked: JobSpec[] = []
    const preview = async (rest: JobSpec): Promise<PlanReport> => {
      asked.push(rest)
      const offer = { backend: 'ec2', capacityType: 'spot', type: 'p5', place: 'a' }
      return { placements: [{ costMicroUsd: microUsd(5), offer }] } as unknown as PlanReport
    }
    const decide = async (recordSeq: number, extendFor: object): Promise<string> => {
      const rule = { extendMaxMicroUsd: microUsd(20), extendFor: { trainings: 'job-a', ...extendFor } }
      const at = { reservationId: INTENT, deployment: 'dep', owner: 'ada', recordSeq }
      const look = await desk.run('lookForExtension', { reservation, rule } as never)
      const deps = { store: desk.store, now: () => desk.clock.now(), preview }
      const task = { ...at, reservation, rule, extendedMicroUsd: 0, look }
      return (await decideExtension(deps, task as never)).kind
    }
    const backends = [{ backend: 'ec2', capacityType: 'spot' }]
    // $9 against $5, and against nothing.
    expect(await decide(60, { backends, regions: ['c'] })).toBe('move')
    expect(asked).toEqual([{ name: 'a', backends, regions: ['c'], durationMs: HOUR_MS, durationOn: 'H100' }])
    expect(await decide(61, { backends: [] })).toBe('extend')
    expect(asked).toHaveLength(1)
  })
})
