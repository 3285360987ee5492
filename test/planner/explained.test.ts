import { describe, expect, it } from '@jest/globals'
import { microUsd } from '../../core/money/money'
import { rowKey, type Offer } from '../../core/offer'
import { HOUR_MS } from '../../core/time/time'
import { parseWhatIf } from '../../intake/what-if'
import { answerWhatIf, explainPlan, type RecordedQuestion } from '../../planner/why/why'
import { recordedPlan, without, type RecordedWishes } from './recorded'
import { CAPABILITIES, offer } from './wishes'

/** Rows at $1.00, $1.01, ... an hour. */
const rowsOf = (count: number, changes: Partial<Offer> = {}): Offer[] =>
  Array.from({ length: count }, (_, index) =>
    offer({ type: `t${index}`, priceMicroUsdPerHour: microUsd(1 + index / 100), ...changes }),
  )
const placesOf = (count: number): Offer[] =>
  Array.from({ length: count }, (_, index) => offer({ place: `p${index}` }))
const changedEntry = (
  question: RecordedQuestion,
  changes: Partial<RecordedQuestion['entry']['data']>,
): RecordedQuestion => {
  const data = { ...question.entry.data, ...changes }
  return { ...question, entry: { ...question.entry, data } }
}

describe('an explained plan', () => {
  it('shows the five next rows, and counts the others', () => {
    const shown = (rows: number) => {
      const { alternatives, othersTotal } = explainPlan({ ...recordedPlan(rowsOf(rows)), isSearched: false })
      return { types: alternatives.map(({ offer: { type } }) => type).join(' '), othersTotal }
    }
    expect(shown(1)).toEqual({ types: '', othersTotal: 0 })
    expect(shown(6)).toEqual({ types: 't1 t2 t3 t4 t5', othersTotal: 0 })
    expect(shown(8)).toEqual({ types: 't1 t2 t3 t4 t5', othersTotal: 2 })
  })

  it('shows the best place of a row', () => {
    const at = (place: string, usd: number) =>
      offer({ type: 'other', place, priceMicroUsdPerHour: microUsd(usd) })
    const { alternatives } = explainPlan(recordedPlan([offer(), at('b', 3), at('a', 2), at('c', 4)]))
    expect(alternatives.map(({ offer: { place } }) => place)).toEqual(['a'])
  })

  it('shows a placement without its reasons and risks, which have their own place', () => {
    const explained = explainPlan(recordedPlan(rowsOf(2, { availability: 'unknown' })))
    expect(explained.risks).toEqual(['availability is unknown until launch'])
    for (const one of [explained.chosen!, ...explained.alternatives]) {
      expect(one).not.toHaveProperty('reasons')
      expect(one).not.toHaveProperty('risks')
    }
  })

  it.each([
    [1, 'Attempt 1 was ordered: here on-demand, small in p0, $1.00/h.'],
    [2, 'Attempt 1 was ordered: here on-demand, small in p0, $1.00/h, or 1 offer like it.'],
    [3, 'Attempt 1 was ordered: here on-demand, small in p0, $1.00/h, or 2 offers like it.'],
  ])('says that an order of %d offers was sent', (count, text) => {
    expect(explainPlan(recordedPlan(placesOf(count))).text).toBe(text)
  })

  it('says why the job waited, or can never run', () => {
    const waits = explainPlan(recordedPlan([offer({ availability: 'unavailable' })]))
    expect(waits).toMatchObject({ outcome: 'wait', chosen: null, reasons: [], risks: [], othersTotal: 0 })
    expect(waits.text).toMatch(/^The job waited\. .*out of stock/)
    const never = recordedPlan([offer()], { spec: { resources: { cpus: { min: 99 } } } })
    const { outcome } = never.entry.data
    expect(explainPlan(never)).toMatchObject({ outcome: 'never', chosen: null, replay: 'same' })
    expect(explainPlan(never).text).toBe(outcome.kind === 'never' && outcome.failure.message)
  })

  it('chooses nothing where the job waited although there are places', () => {
    const question = recordedPlan(rowsOf(2))
    const outcome = {
      kind: 'wait' as const,
      reason: 'It is second in line.',
      retryInMs: 1,
      silentBackends: [],
    }
    const waits = explainPlan(changedEntry(question, { outcome: { ...outcome, position: 2 } }))
    expect(waits).toMatchObject({ chosen: null, text: 'The job waited. It is second in line.' })
    expect(waits.reasons).not.toEqual([])
  })

  it('is searched for switch points only on request, and if it can be decided again', () => {
    const question = recordedPlan(rowsOf(2))
    expect(explainPlan(question)).toMatchObject({ isSearched: true })
    expect(explainPlan(question).switchPoints).not.toEqual([])
    expect(explainPlan({ ...question, isSearched: false })).toMatchObject({
      isSearched: false,
      switchPoints: [],
      replay: 'same',
    })
    expect(explainPlan({ ...question, answers: undefined })).toMatchObject({ isSearched: false })
    question.entry.data.plan!.placements[0]!.costMicroUsd += 1
    expect(explainPlan(question)).toMatchObject({ isSearched: false, switchPoints: [], replay: 'different' })
  })

  it('has no attempt, rules or silent backends if its record has none', () => {
    const question = recordedPlan(rowsOf(1))
    expect(explainPlan(question)).toMatchObject({ attempt: 1, rules: 'r', silentBackends: [] })
    const data = without(question.entry.data, 'rules')
    const entry = { ...without(question.entry, 'attempt'), data } as RecordedQuestion['entry']
    const bare = { ...question, entry }
    expect(explainPlan(bare)).toMatchObject({ attempt: null, rules: null })
  })

  it.each([
    ['inputs', undefined],
    ['a resolved job', {}],
  ])('cannot be decided again without %s on record', (_, inputs) => {
    const old = changedEntry(recordedPlan(rowsOf(1)), { inputs } as never)
    expect(explainPlan(old)).toMatchObject({
      replay: 'impossible',
      missing: [expect.stringMatching(/^The record lacks the offers and the time/), expect.any(String)],
    })
  })

  it('has the backends that did not answer, also from a record with the plan alone', () => {
    const silentBackends = [{ backend: 'there', reason: 'no worker' }]
    const question = recordedPlan(rowsOf(1), { facts: { silentBackends } })
    expect(explainPlan(question)).toMatchObject({ silentBackends })
    const data = without(question.entry.data, 'facts')
    const old = { ...question, entry: { ...question.entry, data } }
    expect(explainPlan(old)).toMatchObject({ silentBackends, replay: 'impossible' })
    expect(explainPlan(old).reasons).toEqual(question.entry.data.plan!.placements[0]!.reasons)
  })

  it('takes the arithmetic from what the backend of the first place says of itself', () => {
    const boot = { lowMs: HOUR_MS, middleMs: HOUR_MS, highMs: HOUR_MS, source: 'measured' }
    const slow = { ...CAPABILITIES, boot }
    const there = { ...offer({ priceMicroUsdPerHour: microUsd(0.5) }), backend: 'there' }
    const answers = [
      { backend: 'here', capabilities: slow, offers: [offer()] },
      { backend: 'there', capabilities: CAPABILITIES, offers: [there] },
    ]
    const { arithmetic, chosen } = explainPlan(recordedPlan([], { facts: { answers } }))
    expect(rowKey(chosen!.offer)).toBe('there/on-demand/small')
    expect(arithmetic.reduce((sum, { addedMs }) => sum + addedMs, 0)).toBe(chosen!.durationMs)
  })
})

describe('the switch point of a job that no offer fits', () => {
  const pointOf = (offers: Offer[]) =>
    explainPlan(
      recordedPlan(offers, { spec: { durationMs: HOUR_MS }, input: { budgetMicroUsd: microUsd(1) } }),
    ).switchPoints.find(({ whatIf }) => whatIf.startsWith('budget='))

  it('is the budget for the cheapest of its zones', () => {
    const at = (place: string, usd: number) => offer({ place, priceMicroUsdPerHour: microUsd(usd) })
    const point = pointOf([at('a', 5), at('b', 3), at('c', 4)])
    expect(point).toMatchObject({ first: 'here/on-demand/small' })
    expect(point).toEqual(pointOf([at('b', 3)]))
  })

  it('is the budget for the cheapest of very many rows, wherever it is listed', () => {
    const many = rowsOf(30).map((one) => ({
      ...one,
      priceMicroUsdPerHour: one.priceMicroUsdPerHour + microUsd(1),
    }))
    expect(pointOf([...many].reverse())).toMatchObject({ first: 'here/on-demand/t0' })
  })
})

describe('a job that only waited in line', () => {
  const data = without(recordedPlan(rowsOf(1)).entry.data, 'plan', 'facts')
  const waiting = (position: number | undefined): RecordedQuestion => {
    const question = recordedPlan(rowsOf(1))
    const wait = { kind: 'wait' as const, reason: 'It is third in line.', retryInMs: 1, silentBackends: [] }
    const outcome = position === undefined ? wait : { ...wait, position }
    const entry = { ...question.entry, data: { ...data, outcome } } as RecordedQuestion['entry']
    return { ...question, answers: undefined, entry }
  }

  it('misses nothing on record', () => {
    expect(explainPlan(waiting(3))).toMatchObject({
      missing: [],
      replay: 'impossible',
      excluded: [],
      text: 'The job waited. It is third in line.',
    })
    expect(explainPlan(waiting(undefined)).missing).toEqual([
      expect.stringMatching(/^The record lacks the offers and the time/),
      'The figures are those on record.',
    ])
  })

  it.each([
    ['the offers of the plan are gone', [], /no longer in the store/],
    ['its record has a plan without its facts', ['facts'], /^The record lacks the offers and the time/],
    ['its record has facts without their plan', ['plan'], /no longer in the store/],
  ] as const)('does miss something if %s', (_, keys, words) => {
    const question = changedEntry(recordedPlan(rowsOf(1)), waiting(2).entry.data)
    const data = without(question.entry.data, ...keys)
    const entry = { ...question.entry, data }
    expect(explainPlan({ ...question, answers: undefined, entry }).missing[0]).toMatch(words)
  })

  it('has nothing to decide again', () => {
    expect(answerWhatIf(waiting(3), [])).toEqual({
      problem: 'The job waited for older jobs and made no plan.',
      remedy: 'Choose another decision with --decision.',
    })
  })
})

describe('a plan that is decided again', () => {
  const again = (offers: Offer[], text: string, wishes?: RecordedWishes) =>
    answerWhatIf(recordedPlan(offers, wishes), [parseWhatIf(text)])

  it('has its number, the change, and both results in words', () => {
    expect(again(rowsOf(2), 'price.t0=2')).toMatchObject({
      decision: 1,
      changes: ['price.t0=2'],
      isUnchanged: false,
      replay: 'same',
      was: { outcome: 'place', text: 'here on-demand, t0 in a, $1.00/h', place: { offer: { type: 't0' } } },
      now: { outcome: 'place', text: 'here on-demand, t1 in a, $1.01/h', place: { offer: { type: 't1' } } },
      ruledIn: [],
      ruledOut: [],
    })
  })

  it('names the rows that it loses or gains, each with the reason against it', () => {
    const mixed = [offer(), offer({ type: 'b', capacityType: 'spot' })]
    const spec = { isInterruptible: false }
    const row = { row: 'here/spot/b', reason: expect.stringMatching(/interruptible/) }
    expect(again(mixed, 'interruptible=no')).toMatchObject({ ruledOut: [row], ruledIn: [] })
    expect(again(mixed, 'interruptible=yes', { spec })).toMatchObject({ ruledOut: [], ruledIn: [row] })
  })

  it('waits in words if no place is left', () => {
    const answer = again(rowsOf(1), 'backend=-here')
    expect(answer).toMatchObject({ now: { place: null }, ruledOut: [{ row: 'here/on-demand/t0' }] })
  })
})
