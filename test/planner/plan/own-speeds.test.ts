import { describe, expect, it } from '@jest/globals'
import type { OwnSpeeds } from '../../../core/job/own-speeds'
import type { RecordEntry } from '../../../core/job/record'
import { ownRatios, ownSpeedsOf } from '../../../planner/plan/own-speeds'

interface Run {
  accelerator: string
  gpus?: number
  steps?: number
  seconds?: number
  firstStep?: number | null
}

/** What the record of a job says of its attempts: one reading of the offers would fill a page. */
function recordOf(...runs: Run[]): RecordEntry[] {
  const entries: object[] = [{ kind: 'resolved', data: { spec: { workFamily: 'transformer' } } }]
  runs.forEach(({ accelerator, gpus = 1, steps = 1_000, seconds = 1_000, firstStep = 10 }, index) => {
    const attempt = index + 1
    const type = `${accelerator} machine`
    const offers = [
      { type: 'another', shape: { accelerator: 'K80', gpus } },
      { type, shape: { accelerator, gpus } },
    ]
    entries.push({ kind: 'launched', attempt, data: { offers, runner: { beatMs: 5_000 } } })
    const times = { firstStepAtMs: 5_000, firstStep: firstStep !== null ? firstStep : undefined }
    const progress = { step: 10 + steps, stepsTotal: null, loss: null, atMs: 5_000 + seconds * 1_000 }
    entries.push({
      kind: 'settled',
      attempt,
      data: { progress, times, handle: { realised: { type } }, phases: [] },
    })
  })
  return entries as RecordEntry[]
}

describe('the speeds that a job measured', () => {
  it('are its paces on the types that it ran on, of all attempts of each', () => {
    const record = recordOf(
      { accelerator: 'V100', steps: 400 },
      { accelerator: 'Tesla V100', steps: 440, seconds: 1_100 },
      { accelerator: 'A100', steps: 1_000 },
    )
    expect(ownSpeedsOf('job-a', record)).toEqual({
      jobId: 'job-a',
      family: 'transformer',
      paces: [
        { accelerator: 'V100', steps: 840, ms: 2_100_000 },
        { accelerator: 'A100', steps: 1_000, ms: 1_000_000 },
      ],
    })
  })

  it('are those with as many GPUs as it had last', () => {
    const record = recordOf(
      { accelerator: 'A100', gpus: 2 },
      { accelerator: 'V100', gpus: 2 },
      { accelerator: 'V100', steps: 400 },
      { accelerator: 'H100', steps: 2_000 },
    )
    expect(ownSpeedsOf('job-a', record)?.paces).toEqual([
      { accelerator: 'V100', steps: 400, ms: 1_000_000 },
      { accelerator: 'H100', steps: 2_000, ms: 1_000_000 },
    ])
  })

  it.each<[string, Run]>([
    ['one type', { accelerator: 'V100' }],
    ['another number of GPUs', { accelerator: 'A100', gpus: 2 }],
    ['a few steps', { accelerator: 'A100', steps: 5 }],
    ['a few beats', { accelerator: 'A100', seconds: 30 }],
    ['a program whose first step is unknown', { accelerator: 'A100', firstStep: null }],
    ['an unknown type', { accelerator: 'X900' }],
  ])('are none of %s', (_, run) => {
    expect(ownSpeedsOf('job-a', recordOf(run, { accelerator: 'V100' }))).toBeUndefined()
  })

  it.each<[Partial<Run>, boolean]>([
    [{ steps: 20 }, true],
    [{ steps: 19 }, false],
    // Twenty beats of five seconds.
    [{ seconds: 100 }, true],
    [{ seconds: 99.999 }, false],
  ])('with %j are enough: %s', (run, isEnough) => {
    const speeds = ownSpeedsOf('job-a', recordOf({ accelerator: 'A100', ...run }, { accelerator: 'V100' }))
    expect(speeds?.paces.length).toBe(isEnough ? 2 : undefined)
  })

  it('are found by the launch of an attempt, whatever else is on its record', () => {
    const record = recordOf({ accelerator: 'A100' }, { accelerator: 'V100' })
    const more = [{ kind: 'planned', attempt: 1, data: {} }, ...record] as RecordEntry[]
    expect(ownSpeedsOf('job-a', more)).toEqual(ownSpeedsOf('job-a', record))
  })
})

describe('the ratios of a deployment', () => {
  const job = (jobId: string, v100: number, family: OwnSpeeds['family'] = 'transformer'): OwnSpeeds => ({
    jobId,
    family,
    paces: [
      { accelerator: 'V100', steps: v100, ms: 1_000 },
      { accelerator: 'A100', steps: 100, ms: 1_000 },
    ],
  })

  it('are geometric means over its jobs, with their number', () => {
    expect(ownRatios([job('a', 20), job('b', 80)], 'transformer')).toEqual([
      { accelerator: 'V100', than: 'A100', factor: 0.4, jobs: 2 },
    ])
  })

  it('are those of the family of the work, or of all for an unknown one', () => {
    const all = [job('a', 20), job('b', 50, null), job('c', 80, 'fp32')]
    const jobsOf = (family?: 'transformer' | 'recurrent') => ownRatios(all, family).map(({ jobs }) => jobs)
    expect([jobsOf('transformer'), jobsOf('recurrent'), jobsOf()]).toEqual([[1], [], [3]])
  })

  it('do not depend on the order in which they are read', () => {
    const all = [job('a', 20), job('b', 30, 'fp32'), job('c', 80)]
    expect(ownRatios([...all].reverse(), undefined)).toEqual(ownRatios(all, undefined))
  })

  it('compare each type with the first by name, in the order of names, whatever the order of a record', () => {
    const pace = (accelerator: string, steps: number) => ({ accelerator, steps, ms: 1_000 })
    const paces = [pace('V100', 20), pace('A100', 100), pace('H100', 200)]
    const expected = [
      { accelerator: 'H100', than: 'A100', factor: 2, jobs: 2 },
      { accelerator: 'T4', than: 'H100', factor: 0.1, jobs: 1 },
      { accelerator: 'V100', than: 'A100', factor: 0.2, jobs: 2 },
    ]
    for (const order of [
      [0, 1, 2],
      [1, 2, 0],
      [2, 1, 0],
      [1, 0, 2],
    ]) {
      const one: OwnSpeeds = { jobId: 'a', family: null, paces: order.map((index) => paces[index]!) }
      const other: OwnSpeeds = { jobId: 'b', family: null, paces: [pace('T4', 20), pace('H100', 200)] }
      expect(ownRatios([one, other, one], undefined)).toEqual(expected)
      expect(ownRatios([other, one, one], undefined)).toEqual(expected)
    }
  })
})
