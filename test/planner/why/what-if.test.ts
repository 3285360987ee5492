import { describe, expect, it } from '@jest/globals'
import { microUsd } from '../../../core/money/money'
import type { Offer } from '../../../core/offer'
import { HOUR_MS, MINUTE_MS } from '../../../core/time/time'
import { parseWhatIf } from '../../../intake/what-if'
import { changedQuestion, selects, type Question } from '../../../planner/why/what-if'
import type { WhatIf } from '../../../core/job/what-if'
import { recordedPlan, type RecordedWishes } from '../recorded'
import { offer } from '../wishes'

const gpu = (accelerator: string) => ({ cpus: 8, memoryGiB: 32, gpus: 1, accelerator })
const SPOT = offer({ capacityType: 'spot', type: 'p4', shape: gpu('A100') })
const FIXED = offer({ type: 'p4', shape: gpu('A100'), priceMicroUsdPerHour: microUsd(3) })
const FAST = offer({ type: 'p5', place: 'b', shape: gpu('H100'), priceMicroUsdPerHour: microUsd(9) })
const CPUS = offer({ type: 'c7', shape: { cpus: 8, memoryGiB: 32, gpus: 0 } })

const questionOf = (offers: Offer[], wishes: RecordedWishes = {}): Question => {
  const { entry, answers, submittedAtMs } = recordedPlan(offers, wishes)
  const { inputs, facts } = entry.data
  return { input: inputs, facts: { ...facts!, answers: answers! }, submittedAtMs }
}
const QUESTION = questionOf([SPOT, FIXED, FAST, CPUS])

const read = (changes: (string | WhatIf)[]): WhatIf[] =>
  changes.map((one) => (typeof one === 'string' ? parseWhatIf(one) : one))
const changed = (question: Question, ...changes: (string | WhatIf)[]): Question => {
  const next = changedQuestion(question, read(changes))
  if ('problem' in next) throw new Error(next.problem)
  return next.question
}
const refused = (question: Question, ...changes: (string | WhatIf)[]): unknown =>
  changedQuestion(question, read(changes))
const offersOf = ({ facts }: Question): Offer[] => facts.answers.flatMap(({ offers }) => offers)
const pricesOf = (question: Question): number[] =>
  offersOf(question).map(({ priceMicroUsdPerHour: price }) => price / microUsd(1))

describe('the offers that a change is for', () => {
  it.each<[of: string | null, selected: Offer[]]>([
    [null, [SPOT, FIXED, FAST, CPUS]],
    ['spot', [SPOT]],
    ['here', [SPOT, FIXED, FAST, CPUS]],
    ['here:on-demand', [FIXED, FAST, CPUS]],
    ['p4', [SPOT, FIXED]],
    ['a100', [SPOT, FIXED]],
    ['H100', [FAST]],
    ['T4', []],
    ['here/on-demand', [FIXED, FAST, CPUS]],
    ['here/on-demand/p4', [FIXED]],
    ['here/on-demand/p5/b', [FAST]],
    ['here/on-demand/p', []],
    ['her', []],
    ['p', []],
  ])('with the name %s', (of, selected) => {
    expect([SPOT, FIXED, FAST, CPUS].filter(selects(of))).toEqual(selected)
  })
})

describe('another price', () => {
  it('is that of the offers it is for, in whole micro-dollars and not below zero', () => {
    expect(pricesOf(changed(QUESTION, 'price.p4=+50%'))).toEqual([1.5, 4.5, 9, 1])
    expect(pricesOf(changed(QUESTION, 'price=-2'))).toEqual([0, 1, 7, 0])
    const odd = questionOf([offer({ priceMicroUsdPerHour: 3 })])
    expect(offersOf(changed(odd, 'price=+50%'))[0]!.priceMicroUsdPerHour).toBe(5)
  })

  it('moves the highest price in proportion, and limits what disk and address cost', () => {
    const priced = offer({
      priceMicroUsdPerHour: microUsd(2),
      priceMaxMicroUsdPerHour: microUsd(3),
      besideMicroUsdPerHour: microUsd(0.5),
      listPriceMicroUsdPerHour: microUsd(4),
    })
    const at = (price: string) => offersOf(changed(questionOf([priced]), `price=${price}`))[0]!
    expect(at('4')).toEqual({
      ...offer(),
      priceMicroUsdPerHour: microUsd(4),
      priceMaxMicroUsdPerHour: microUsd(6),
      besideMicroUsdPerHour: microUsd(0.5),
    })
    expect(at('0.2')).toMatchObject({
      priceMaxMicroUsdPerHour: microUsd(0.3),
      besideMicroUsdPerHour: microUsd(0.2),
    })
    expect(offersOf(changed(questionOf([offer()]), 'price=4'))).toEqual([
      offer({ priceMicroUsdPerHour: microUsd(4) }),
    ])
  })

  it('keeps the highest price of an offer that was free, if that is not below it', () => {
    const free = questionOf([offer({ priceMicroUsdPerHour: 0, priceMaxMicroUsdPerHour: microUsd(3) })])
    const mostAt = (price: string) =>
      offersOf(changed(free, `price=${price}`))[0]!.priceMaxMicroUsdPerHour! / microUsd(1)
    expect(mostAt('2')).toBe(3)
    expect(mostAt('4')).toBe(4)
  })
})

describe('another speed', () => {
  const speedsOf = (question: Question) => offersOf(question).map(({ shape }) => shape.speedFactor)

  it('is that of the accelerator, by any of its names', () => {
    expect(speedsOf(changed(QUESTION, 'speed.a100=0.5'))).toEqual([0.5, 0.5, undefined, undefined])
  })

  it('is a multiple of the one that the offer has, and goes away at 1', () => {
    const faster = questionOf([offer({ shape: { ...gpu('A100'), speedFactor: 2 } })])
    expect(speedsOf(changed(faster, 'speed.A100=1.5'))).toEqual([3])
    expect(offersOf(changed(faster, 'speed.A100=0.5'))[0]!.shape).toEqual(gpu('A100'))
  })

  it('can be that of an accelerator that is not in the list of the known ones', () => {
    const own = questionOf([offer({ shape: gpu('own-9') })])
    expect(speedsOf(changed(own, 'speed.own-9=2'))).toEqual([2])
  })
})

describe('another limit', () => {
  const SUBMITTED_MS = QUESTION.submittedAtMs
  const limited = questionOf([FIXED], {
    input: { deadlineAtMs: SUBMITTED_MS + 9 * HOUR_MS, budgetMicroUsd: microUsd(20) },
  })

  it('is a deadline after the submission, an instant, a move of the present one, or none', () => {
    const at = (question: Question, text: string) => changed(question, text).input.deadlineAtMs
    expect(at(QUESTION, 'deadline=36h')).toBe(SUBMITTED_MS + 36 * HOUR_MS)
    expect(at(QUESTION, 'deadline=2027-01-31T18:00:00Z')).toBe(Date.UTC(2027, 0, 31, 18))
    expect(at(limited, 'deadline=+6h')).toBe(SUBMITTED_MS + 15 * HOUR_MS)
    expect(at(limited, 'deadline=2027-01-31T18:00:00Z')).toBe(Date.UTC(2027, 0, 31, 18))
    expect(changed(limited, 'deadline=none').input).not.toHaveProperty('deadlineAtMs')
    expect(changed(limited, 'deadline=none').input.budgetMicroUsd).toBe(microUsd(20))
  })

  it('is a budget, a change of the present one in whole micro-dollars, or none', () => {
    const of = (question: Question, text: string) => changed(question, text).input.budgetMicroUsd
    expect(of(QUESTION, 'budget=50')).toBe(microUsd(50))
    expect(of(limited, 'budget=+6')).toBe(microUsd(26))
    expect(of(limited, 'budget=50')).toBe(microUsd(50))
    expect(of(questionOf([FIXED], { input: { budgetMicroUsd: 3 } }), 'budget=+50%')).toBe(5)
    expect(changed(limited, 'budget=none').input).not.toHaveProperty('budgetMicroUsd')
    expect(changed(limited, 'budget=none').input.deadlineAtMs).toBe(limited.input.deadlineAtMs)
  })

  it('is refused if the job has none to change', () => {
    expect(refused(QUESTION, 'deadline=+6h')).toHaveProperty('problem', 'the job has no deadline to move')
    expect(refused(QUESTION, 'budget=+6')).toHaveProperty('problem', 'the job has no budget to change')
  })
})

describe('another duration', () => {
  const long = questionOf([FIXED], { spec: { durationMs: 10 * HOUR_MS } })
  const durationOf = ({ input }: Question) => input.resolved.spec.durationMs

  it('is the stated one, or a change of it in whole milliseconds', () => {
    expect(durationOf(changed(QUESTION, 'duration=12h'))).toBe(12 * HOUR_MS)
    expect(durationOf(changed(long, 'duration=12h'))).toBe(12 * HOUR_MS)
    expect(durationOf(changed(long, 'duration=+90m'))).toBe(10 * HOUR_MS + 90 * MINUTE_MS)
    expect(durationOf(changed(questionOf([FIXED], { spec: { durationMs: 3 } }), 'duration=+50%'))).toBe(5)
    expect(durationOf(changed(long, 'duration=0.001s'))).toBe(1)
  })

  it('is refused if the job states none to change, or nothing would be left of it', () => {
    expect(refused(QUESTION, 'duration=+20%')).toEqual({
      problem: 'the job states no duration',
      remedy: 'write a whole one: duration=10h',
    })
    expect(refused(long, 'duration=-10h')).toEqual({
      problem: 'no training time would be left',
      remedy: 'write a smaller change',
    })
  })
})

describe('other backends', () => {
  const there = { ...FAST, backend: 'there' }
  const two = (offers: Offer[]): Question => {
    const [first] = QUESTION.facts.answers
    const answers = [first!, { ...first!, backend: 'there', offers }]
    return { ...QUESTION, facts: { ...QUESTION.facts, answers } }
  }

  it('are all those that are named, together', () => {
    const only = changed(two([there]), 'backend=here:spot', 'backend=there')
    expect(only.input.resolved.spec.backends).toEqual([
      { backend: 'here', capacityType: 'spot' },
      { backend: 'there' },
    ])
    expect(offersOf(only)).toEqual([SPOT, FIXED, FAST, CPUS, there])
  })

  it('lack the offers of the one that is left out, and the wishes stay', () => {
    const without = changed(two([there]), 'backend=-here:on-demand')
    expect(offersOf(without)).toEqual([SPOT, there])
    expect(without.input).toEqual(QUESTION.input)
  })

  it('do not replace those of the job unless one is named', () => {
    const limited = questionOf([SPOT], { spec: { backends: [{ backend: 'here' }] } })
    expect(changed(limited, 'price=2').input).toEqual(limited.input)
    expect(changed(limited, 'backend=here:spot').input.resolved.spec.backends).toEqual([
      { backend: 'here', capacityType: 'spot' },
    ])
  })

  it('are refused without an offer, also among those that an earlier change left', () => {
    expect(refused(two([]), 'backend=there')).toEqual({
      problem: 'the decision has no offer of there',
      remedy: 'its offers are those of here, there',
    })
    expect(refused(two([there]), 'backend=-there', 'backend=there')).toHaveProperty('problem')
    const none = { ...QUESTION, facts: { ...QUESTION.facts, answers: [] } }
    expect(refused(none, 'backend=-here')).toHaveProperty('remedy', 'its offers are those of no backend')
  })
})

it('another objective and another attitude to interruptions are wishes of the job', () => {
  const { spec } = changed(QUESTION, 'optimize=time', 'interruptible=no').input.resolved
  expect(spec).toEqual({ ...QUESTION.input.resolved.spec, optimize: 'time', isInterruptible: false })
})

describe('a change that is for no offer', () => {
  it('is refused with the names that it could have', () => {
    expect(refused(QUESTION, 'price.p9=1')).toEqual({
      problem: 'no offer of the decision matches price.p9',
      remedy:
        'it has capacity types: spot, on-demand; backends: here; accelerators: A100, H100; machine types: c7, p4, p5',
    })
    expect(refused(questionOf([CPUS]), 'speed.T4=2')).toEqual({
      problem: 'no offer of the decision matches speed.T4',
      remedy: 'it has capacity types: on-demand; backends: here; machine types: c7',
    })
    expect(refused(questionOf([]), { key: 'price', of: null, adjustment: { by: 'set', value: 1 } })).toEqual({
      problem: 'no offer of the decision matches price',
      remedy: 'it has no offers',
    })
  })

  it('is refused with eight names of a kind, and the number of the others', () => {
    const types = (count: number): Offer[] =>
      Array.from({ length: count }, (_, index) => offer({ type: `t${index}` }))
    const remedyOf = (count: number) =>
      (refused(questionOf(types(count)), 'price.p9=1') as { remedy: string }).remedy
    expect(remedyOf(8)).toMatch(/; machine types: t0, t1, t2, t3, t4, t5, t6, t7$/)
    expect(remedyOf(10)).toMatch(/; machine types: t0, t1, t2, t3, t4, t5, t6, t7 and 2 more$/)
  })
})
