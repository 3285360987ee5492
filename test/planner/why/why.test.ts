import { describe, expect, it } from '@jest/globals'
import { formatWhatIf, type WhatIf } from '../../../core/job/what-if'
import type { WhatIfAnswer } from '../../../core/job/why'
import { formatUsd, microUsd } from '../../../core/money/money'
import { rowKey } from '../../../core/offer'
import { HOUR_MS } from '../../../core/time/time'
import { parseWhatIf } from '../../../intake/what-if'
import { explainOffer } from '../../../planner/plan/explain-offer'
import { makePlan } from '../../../planner/plan/plan'
import { requestFor } from '../../../planner/plan/request'
import { answerWhatIf, explainPlan, type RecordedQuestion } from '../../../planner/why/why'
import { recordedPlan, type RecordedWishes } from '../recorded'
import { NOW_MS, offer } from '../wishes'

const LONG = { durationMs: 10 * HOUR_MS, durationOn: 'A100', isInterruptible: true }
const gpu = (accelerator: string) => ({ cpus: 8, memoryGiB: 32, gpus: 1, accelerator, gpuMemoryGiB: 40 })
const SPOT = offer({
  capacityType: 'spot',
  type: 'p4',
  shape: gpu('A100'),
  priceMicroUsdPerHour: microUsd(1),
})
const FIXED = offer({ type: 'p4', shape: gpu('A100'), priceMicroUsdPerHour: microUsd(3) })
const FAST = offer({ type: 'p5', shape: gpu('H100'), priceMicroUsdPerHour: microUsd(9) })
const OFFERS = [SPOT, FIXED, FAST]
const GPUS = { gpus: { min: 1 } }

const recorded = (wishes: RecordedWishes = {}): RecordedQuestion =>
  recordedPlan(OFFERS, { ...wishes, spec: { ...LONG, resources: GPUS, ...wishes.spec } })

const again = (question: RecordedQuestion, ...texts: string[]): WhatIfAnswer => {
  const answer = answerWhatIf(question, texts.map(parseWhatIf))
  if ('problem' in answer) throw new Error(answer.problem)
  return answer
}
const firstOf = (question: RecordedQuestion, ...texts: string[]): string => {
  const { place } = again(question, ...texts).now
  return place === null ? 'nowhere' : rowKey(place.offer)
}

describe('the arithmetic of the first place', () => {
  const cases: [string, RecordedQuestion][] = [
    ['of spot capacity', recorded()],
    ['that is fastest', recorded({ spec: { optimize: 'time' } })],
    [
      'of a later attempt, where the job lost a machine',
      recorded({
        input: { attempt: 2, avoid: [{ offerKey: 'here/spot/p4/a', forMs: HOUR_MS, why: 'interruption' }] },
        facts: { leftShare: 0.4, savedBefore: { totalBytes: 4e9 } },
      }),
    ],
    [
      'with set-up, in long billing steps',
      recordedPlan(
        [
          {
            ...SPOT,
            billedInStepsOfMs: HOUR_MS,
            transfer: {
              storeRegion: 'x',
              upMicroUsdPerGb: 20_000,
              downMicroUsdPerGb: 20_000,
              bytesPerSecond: 1e8,
            },
          },
        ],
        {
          spec: {
            ...LONG,
            resources: GPUS,
            setup: 'pip install x',
            checkpoint: { directory: 'c', everyMs: HOUR_MS / 4, sizeBytes: 1e9 },
          },
        },
      ),
    ],
    [
      'with a limit on how long a machine runs',
      recordedPlan([{ ...FIXED, runMsMax: 4 * HOUR_MS }], {
        spec: {
          ...LONG,
          resources: GPUS,
          checkpoint: { directory: 'c', everyMs: HOUR_MS / 4, sizeBytes: 1e9 },
        },
      }),
    ],
  ]

  it.each(cases)('sums to its cost and time exactly: one %s', (_, question) => {
    const { arithmetic, chosen } = explainPlan(question)
    const sum = (of: 'addedMs' | 'addedMicroUsd') => arithmetic.reduce((total, line) => total + line[of], 0)
    expect({ ms: sum('addedMs'), microUsd: sum('addedMicroUsd') }).toEqual({
      ms: chosen!.durationMs,
      microUsd: chosen!.costMicroUsd,
    })
    expect(new Set(arithmetic.map(({ words }) => words)).size).toBe(arithmetic.length)
  })

  it('begins with the training time at the price of an hour', () => {
    const { arithmetic } = explainPlan(recorded())
    expect(arithmetic[0]).toMatchObject({
      part: 'duration',
      words: 'the training time',
      addedMs: 10 * HOUR_MS,
      addedMicroUsd: microUsd(10),
    })
    expect(arithmetic.map(({ part }) => part)).toEqual(expect.arrayContaining(['boot', 'wait', 'ranges']))
  })

  it('names the part that only some offers have', () => {
    const parts = cases.map(([, question]) => explainPlan(question).arithmetic.map(({ part }) => part))
    expect(parts[2]).toEqual(expect.arrayContaining(['restore', 'interruptions']))
    expect(parts[3]).toEqual(expect.arrayContaining(['setup', 'billing']))
    expect(parts[4]).toContain('moves')
  })
})

describe('an explained plan', () => {
  it('has the figures of the plan, and gives the same result when decided again', () => {
    const question = recorded()
    const explained = explainPlan(question)
    const [best] = question.entry.data.plan!.placements
    expect(explained).toMatchObject({ replay: 'same', missing: [], outcome: 'place', reasons: best!.reasons })
    expect(explained.chosen).toMatchObject({ costMicroUsd: best!.costMicroUsd, forecast: best!.forecast })
    expect(explained.alternatives.map(({ offer: one }) => rowKey(one))).toEqual([
      'here/on-demand/p4',
      'here/on-demand/p5',
    ])
  })

  it('says what it was made from', () => {
    const { inputs } = explainPlan(
      recorded({
        input: {
          attempt: 2,
          budgetMicroUsd: microUsd(50),
          deadlineAtMs: NOW_MS + 40 * HOUR_MS,
          ledger: {
            attempts: 1,
            failures: 0,
            interruptions: 1,
            unclassified: 0,
            misses: 0,
            spentMicroUsd: microUsd(3),
          },
          avoid: [{ offerKey: 'here/spot/p4/a', forMs: HOUR_MS, why: 'interruption' }],
        },
        facts: { leftShare: 0.62, nowMs: NOW_MS + 5_000, savedBefore: { totalBytes: 2e9 } },
      }),
    )
    const told = Object.fromEntries(inputs.map(({ name, text }) => [name, text]))
    expect(told).toMatchObject({
      wishes: 'best cost, interruptible',
      duration: '10h on A100',
      budget: '$50.00, $3.00 of it spent before, $47.00 left',
      offers: '3 of here (prices 5s old)',
      avoided: 'here/spot/p4/a interrupted this job (for another 1h)',
    })
    expect(told['work done']).toMatch(
      /attempt 2, 62 % of the work is left, newest checkpoint .*, 1 interruption so far/,
    )
    expect(told['deadline']).toMatch(/, 1d 15h later$/)
  })

  it('shows what is on record when the offers are gone, and says that they are', () => {
    const question = { ...recorded(), answers: undefined }
    const explained = explainPlan(question)
    expect(explained).toMatchObject({ replay: 'impossible', arithmetic: [], switchPoints: [] })
    expect(explained.missing).toEqual([
      expect.stringMatching(/no longer in the store \(market\/here\/aaaaaaaaaaaa\)/),
      'The figures are those on record.',
    ])
    expect(explained.chosen?.costMicroUsd).toBe(explainPlan(recorded()).chosen?.costMicroUsd)
    expect(answerWhatIf(question, [])).toMatchObject({
      problem: expect.stringMatching(/no longer in the store/),
    })
  })

  it('shows the places of a record without facts, and says what the record lacks', () => {
    const question = recorded()
    const { plan, inputs, outcome, rules } = question.entry.data
    const data = { inputs, outcome, plan, rules }
    const bare = {
      ...question,
      answers: undefined,
      entry: { ...question.entry, data },
    } as RecordedQuestion
    const explained = explainPlan(bare)
    expect(explained.missing).toEqual([
      expect.stringMatching(/^The record lacks the offers and the time/),
      'The figures are those on record.',
    ])
    expect(explained.chosen).toMatchObject({ costMicroUsd: plan!.placements[0]!.costMicroUsd })
    expect(explained.excluded).toEqual(plan!.rejections)
  })

  it('says when other rules made it, and keeps to the figures on record', () => {
    const question = recorded()
    const best = question.entry.data.plan!.placements[0]!
    best.costMicroUsd += 1
    const explained = explainPlan(question)
    expect(explained).toMatchObject({
      replay: 'different',
      arithmetic: [],
      chosen: { costMicroUsd: best.costMicroUsd },
    })
    expect(explained.missing).toEqual([
      expect.stringMatching(/^Another version's rules made this plan/),
      expect.any(String),
    ])
    expect(again(question, 'deadline=none')).toMatchObject({ replay: 'different' })
  })

  it('has no alternatives and names every reason when there is no place', () => {
    const explained = explainPlan(
      recordedPlan([{ ...FIXED, availability: 'unavailable' }], { spec: { ...LONG, resources: GPUS } }),
    )
    expect(explained).toMatchObject({ outcome: 'wait', chosen: null, alternatives: [], switchPoints: [] })
    expect(explained.excluded).toMatchObject([{ reason: 'out of stock', count: 1 }])
  })
})

describe('one offer of a plan', () => {
  const explain = (of: string, question = recorded()) => {
    const { inputs, facts } = question.entry.data
    const asked = requestFor(inputs, { ...facts!, answers: question.answers! })
    return explainOffer(of, makePlan(asked), asked)
  }

  it('has the rank, the figures and the arithmetic that sums to them', () => {
    const explained = explain('H100')!
    expect(explained).toMatchObject({
      offerKey: 'here/on-demand/p5/a',
      rank: 3,
      rowsTotal: 3,
      excludedBecause: null,
    })
    const total = explained.arithmetic.reduce((sum, { addedMicroUsd }) => sum + addedMicroUsd, 0)
    expect(total).toBe(explained.costMicroUsd)
    expect(explained.reasons[0]).toContain(formatUsd(total))
    const { arithmetic } = explainPlan(recorded())
    expect(explain('here/spot/p4')!.arithmetic).toEqual(arithmetic)
  })

  it('says why it is excluded, or finds no such offer', () => {
    const fixed = recorded({ spec: { isInterruptible: false } })
    expect(explain('spot', fixed)).toMatchObject({
      offerKey: 'here/spot/p4/a',
      rank: null,
      arithmetic: [],
      costMicroUsd: null,
      excludedBecause: expect.stringMatching(/interruptible/),
    })
    expect(explain('p9')).toBeUndefined()
    const both = recorded({ spec: { isInterruptible: false, resources: { gpus: { min: 2 } } } })
    expect(explain('p5', both)).toMatchObject({
      offerKey: 'here/on-demand/p5/a',
      reasons: [],
      risks: [],
      durationMs: null,
    })
  })
})

describe('each switch point', () => {
  const cases: [string, RecordedQuestion, string[]][] = [
    ['of the cheapest', recorded(), ['price', 'deadline']],
    [
      'of the fastest within a budget',
      recorded({
        spec: { optimize: 'time' },
        input: { budgetMicroUsd: microUsd(90) },
      }),
      ['budget'],
    ],
    [
      'with a deadline that the cheapest misses',
      recorded({
        input: { deadlineAtMs: NOW_MS + 9 * HOUR_MS },
      }),
      ['deadline'],
    ],
    [
      'of two accelerators',
      recordedPlan([SPOT, FAST], { spec: { ...LONG, resources: GPUS } }),
      ['price', 'speed'],
    ],
    [
      'whose job would be late if it took longer',
      recorded({ input: { deadlineAtMs: NOW_MS + 20 * HOUR_MS } }),
      ['duration', 'deadline'],
    ],
    [
      'without a place, because of its deadline',
      recorded({ input: { deadlineAtMs: NOW_MS + 2 * HOUR_MS } }),
      ['deadline', 'duration'],
    ],
    [
      'without a place, because of its budget',
      recorded({ input: { budgetMicroUsd: microUsd(4) } }),
      ['budget', 'duration'],
    ],
    [
      'of a job that may not be interrupted',
      recorded({ spec: { isInterruptible: false } }),
      ['interruptible', 'price'],
    ],
    [
      'of a job without a duration',
      recordedPlan(OFFERS, { spec: { resources: GPUS, isInterruptible: true } }),
      ['price'],
    ],
  ]

  it.each(cases)('is where the first place changes: a plan %s', (_, question, keys) => {
    const { switchPoints, chosen } = explainPlan(question)
    const present = chosen === null ? 'nowhere' : rowKey(chosen.offer)
    for (const { whatIf, staysAt, first } of switchPoints) {
      expect([whatIf, firstOf(question, whatIf)]).toEqual([whatIf, first])
      expect(first).not.toBe(present)
      if (whatIf.startsWith('price')) expect(firstOf(question, staysAt)).toBe(present)
      expect(firstOf(question, staysAt)).not.toBe(first)
    }
    const found = switchPoints.map(({ whatIf }) => whatIf.split(/[.=]/)[0])
    expect(found).toEqual(expect.arrayContaining(keys))
  })

  it('stays at the budget of the job, where one step less changes the first place', () => {
    const fastest = (budgetMicroUsd: number): RecordedQuestion =>
      recorded({ spec: { optimize: 'time' }, input: { budgetMicroUsd } })
    const budgetPoint = (question: RecordedQuestion) =>
      explainPlan(question).switchPoints.find(({ whatIf }) => whatIf.startsWith('budget='))!
    const enough = budgetPoint(fastest(microUsd(90))).staysAt
    const own = microUsd(Number(enough.slice('budget='.length)) + 0.005)
    expect(budgetPoint(fastest(own)).staysAt).toBe(
      formatWhatIf({ key: 'budget', adjustment: { by: 'set', value: own } }),
    )
  })

  it('names the price that the second one would need', () => {
    const { switchPoints } = explainPlan(recorded())
    expect(switchPoints[0]!.text).toMatch(
      /^here on-demand p4 would have been first at \$\d\.\d\d\/h or less, instead of \$3\.00\/h\.$/,
    )
  })
})

describe('a plan that is decided again', () => {
  it('says that nothing changes if nothing does, and replays the recorded one', () => {
    expect(again(recorded(), 'speed.H100=1')).toMatchObject({
      isUnchanged: true,
      replay: 'same',
      ruledIn: [],
      ruledOut: [],
    })
    expect(again(recorded(), 'price.H100=+10%')).toMatchObject({ isUnchanged: false })
  })

  it('costs half as much again on spot if spot does, and moves when it costs four times as much', () => {
    const { was, now } = again(recorded(), 'price.spot=+50%')
    expect(now.place!.costMicroUsd).toBeCloseTo(was.place!.costMicroUsd * 1.5, -3)
    expect(firstOf(recorded(), 'price.spot=+300%')).toBe('here/on-demand/p4')
    expect(firstOf(recorded(), 'price.here/spot/p4=4')).toBe('here/on-demand/p4')
    expect(firstOf(recorded(), 'price.A100=+900%')).toBe('here/on-demand/p5')
  })

  it('moves when a backend, or its spot capacity, is left out', () => {
    expect(again(recorded(), 'backend=-here:spot')).toMatchObject({
      now: { outcome: 'place' },
      ruledOut: [{ row: 'here/spot/p4', reason: 'left out' }],
    })
    expect(firstOf(recorded(), 'backend=here:on-demand')).toBe('here/on-demand/p4')
  })

  it('obeys another objective, another speed, another deadline and another budget', () => {
    expect(firstOf(recorded(), 'optimize=time')).toBe('here/on-demand/p5')
    expect(again(recorded(), 'speed.A100=0.5').now.place!.durationMs).toBeGreaterThan(20 * HOUR_MS)
    expect(firstOf(recorded(), 'deadline=9h')).toBe('here/on-demand/p5')
    const poor = again(recorded(), 'budget=20usd')
    expect(poor.ruledOut.map(({ row }) => row)).toEqual(['here/on-demand/p4', 'here/on-demand/p5'])
    expect(poor.ruledOut[0]!.reason).toMatch(/the budget is \$20/)
    const limited = recorded({ input: { budgetMicroUsd: microUsd(20) } })
    expect(again(limited, 'budget=+100usd').ruledIn.map(({ row }) => row)).toEqual([
      'here/on-demand/p4',
      'here/on-demand/p5',
    ])
  })

  it('finds no place when nothing fits', () => {
    expect(again(recorded(), 'duration=400h', 'deadline=10h')).toMatchObject({
      now: { outcome: 'never', place: null },
    })
  })

  it.each([
    ['price.p9=1', /no offer of the decision matches price\.p9/, /machine types: p4, p5/],
    ['speed.T4=2', /no offer of the decision matches speed\.T4/, /accelerators: A100, H100/],
    ['backend=-ec2', /no offer of ec2/, /here/],
    ['deadline=+6h', /no deadline to move/, /deadline=36h/],
    ['budget=+6usd', /no budget to change/, /budget=50usd/],
  ])('refuses %s, which changes nothing there', (text, problem, remedy) => {
    expect(answerWhatIf(recorded(), [parseWhatIf(text)])).toEqual({
      problem: expect.stringMatching(problem),
      remedy: expect.stringMatching(remedy),
    })
  })
})

describe('--what-if', () => {
  const texts = [
    'price=+50%',
    'price.spot=-20%',
    'price.p5.48xlarge=12.5',
    'price.ec2/spot/p5=+0.1',
    'speed.A100=0.8',
    'deadline=+6h',
    'deadline=-1h30m',
    'deadline=36h',
    'deadline=none',
    'deadline=2027-01-31T18:00:00.000Z',
    'budget=+20',
    'budget=50',
    'budget=none',
    'duration=12h',
    'duration=+20%',
    'duration=1h0.5s',
    'backend=-ec2:spot',
    'backend=ec2',
    'optimize=time',
    'interruptible=yes',
    'interruptible=no',
  ]

  it.each(texts)('reads and writes %s', (text) => {
    expect(formatWhatIf(parseWhatIf(text))).toBe(text)
  })

  it('takes amounts as people write them', () => {
    const read: WhatIf = { key: 'budget', adjustment: { by: 'add', value: microUsd(20) } }
    expect(parseWhatIf('budget=+20usd')).toEqual(read)
    expect(parseWhatIf('budget = +$20')).toEqual(read)
    expect(parseWhatIf('optimize=speed')).toEqual({ key: 'optimize', objective: 'time' })
    expect(parseWhatIf('speed.A100=-20%')).toEqual({ key: 'speed', of: 'A100', factor: 0.8 })
  })

  it.each([
    [
      'colour=red',
      /"colour" is not a key of --what-if \(price, speed, deadline/,
      /price\.spot=\+50%.*interruptible=yes/,
    ],
    ['dedline=+6h', /"dedline" is not a key/, /deadline=\+6h/],
    ['deadline', /not KEY=VALUE/, /price\.spot/],
    ['deadline=soon', /neither an instant nor a duration/, /deadline=\+6h/],
    ['budget=lots', /not an amount of US dollars/, /budget=\+20usd/],
    ['price.spot=-150%', /more than the whole/, /price\.spot/],
    ['speed=2', /speed needs an accelerator/, /speed\.A100/],
    ['speed.A100=0', /not a factor above 0/, /speed\.A100/],
    ['speed.A100=+2', /not a factor above 0/, /speed\.A100/],
    ['budget.spot=1', /applies to the whole job/, /budget=/],
    ['optimize=luck', /not something to optimize for/, /optimize=cost/],
    ['interruptible=maybe', /neither yes nor no/, /interruptible=yes/],
    ['backend=ec2:cheap', /not a capacity type/, /backend=-ec2:spot/],
  ])('refuses %s and says what to write', (text, message, remedy) => {
    let thrown: unknown
    try {
      parseWhatIf(text)
    } catch (error) {
      thrown = error
    }
    expect(thrown).toMatchObject({
      message: expect.stringMatching(message),
      remedy: expect.stringMatching(remedy),
    })
  })
})
