import { describe, expect, it } from '@jest/globals'
import type { RealisedOffer } from '../../core/handle'
import type { AttemptRecord } from '../../core/job/ledger'
import type { JobStatus } from '../../core/messages'
import { microUsd } from '../../core/money/money'
import { jobDetails } from '../../workflows/job/details'

const STATUS: JobStatus = {
  id: 'job-a',
  name: 'train',
  owner: 'me',
  submittedAtMs: 0,
  attempts: [],
  attemptsTotal: 0,
  state: 'running',
  reason: 'training',
  message: 'Training.',
  spentMicroUsd: 0,
  placementReasons: [],
}

function attemptOf(number: number, over: Partial<AttemptRecord> = {}): AttemptRecord {
  return {
    number,
    attemptId: `job-a-${number}`,
    workflowId: `job/job-a/${number}`,
    backend: 'scripted',
    capacityType: 'spot',
    offerKey: 'scripted/spot/v100/a',
    costMicroUsd: 0,
    state: 'provisioning',
    reason: 'launching',
    ...over,
  }
}

const REALISED: RealisedOffer = {
  capacityType: 'spot',
  type: 'v100',
  place: 'a',
  priceMicroUsdPerHour: microUsd(0.36),
}
const ENDED = { realised: REALISED, launchedAtMs: 0, endedAtMs: 90_000, costMicroUsd: microUsd(0.01) }

const EXPECTED: AttemptRecord['expected'] = {
  durationMs: 3_600_000,
  costMicroUsd: microUsd(2),
  forecast: {
    cost: { lowMicroUsd: microUsd(1), highMicroUsd: microUsd(3) },
    finish: { lowMs: 1_800_000, highMs: 7_200_000 },
  } as never,
}

const linesOf = (status: Partial<JobStatus>): string[] => jobDetails({ ...STATUS, ...status }).split('\n')

describe("a job's page in the Temporal UI", () => {
  it('has the command that continues where a job stopped, once it is over and not done', () => {
    const checkpoint = { id: '000000000040-2', step: 40, attempt: 2 }
    const wanted = 'Resume from step 40: `crucible submit --from job-a`'
    const ended = { state: 'failed', reason: 'deadline-reached', checkpoint } as const
    expect(linesOf(ended)).toContain(wanted)
    expect(linesOf({ ...ended, state: 'cancelled', reason: 'cancelled' })).toContain(wanted)
    expect(linesOf({ state: 'failed', reason: 'workload-failed' })).toContain(
      'Start over: `crucible submit --from job-a --fresh`',
    )
    expect(linesOf({ ...ended, reason: 'budget-reached', budgetMicroUsd: microUsd(20) })).toContain(
      "Resume from step 40: `crucible submit --from job-a --budget '$20.00'`",
    )
    for (const state of ['running', 'succeeded'] as const)
      expect(jobDetails({ ...STATUS, state, checkpoint })).not.toContain('--from')
  })

  it('has every amount as code: what stands between two dollar signs would be a formula', () => {
    const page = jobDetails({
      ...STATUS,
      message: 'The budget $2.00 is not more than the $2.50 already spent.',
      placementReasons: ['$0.12/h, about $0.000734 in 21s'],
      budgetMicroUsd: microUsd(2),
      spentMicroUsd: microUsd(2.5),
      attempts: [attemptOf(1, { ...ENDED, state: 'failed', reason: 'quota: at most $5.00.' })],
    })
    expect(page.match(/`[^`]*`/g)).toEqual([
      '`$2.00`',
      '`$2.50`',
      '`$2.50`',
      '`$2.00`',
      '`$0.12`',
      '`$0.000734`',
      '`$0.01`',
      '`$5.00`',
      '`crucible show job-a`',
      '`crucible logs -f job-a`',
    ])
    expect(page.replace(/`[^`]*`/g, '')).not.toContain('$')
  })

  it('tells what the newest attempt warned of, and no running number as a step', () => {
    const warning = { kind: 'no-checkpoint', text: 'Nothing was saved for 20 min.', sinceMs: 1 }
    const checkpoint = { id: '000000000003-1', step: 3, attempt: 1, isStepKnown: false }
    const attempts = [attemptOf(1), attemptOf(2), attemptOf(3, { warning })]
    const lines = linesOf({ attempts, checkpoint })
    expect(lines).toContain('**Warning (attempt 3):** Nothing was saved for 20 min.')
    expect(lines).toContain('- newest checkpoint: 000000000003-1 (attempt 1)')
    expect(linesOf({ checkpoint: { id: '000000000003-1', step: 3, attempt: 1 } })).toContain(
      '- newest checkpoint: step 3 (attempt 1)',
    )
    const later = linesOf({ attempts: [attemptOf(1, { warning }), attemptOf(2)] })
    expect(later.join()).not.toContain('Warning')
  })

  it('lists the attempts by their numbers, since the UI knows no tables', () => {
    const lost = { state: 'interrupted', reason: 'interrupted: The machine was interrupted.' } as const
    const lines = linesOf({
      attempts: [
        attemptOf(1, { ...ENDED, ...lost, stepsLost: 5 }),
        attemptOf(2, { ...ENDED, state: 'stopped', reason: 'migrated', stepsLost: 0 }),
        attemptOf(3, { ...ENDED, capacityType: 'on-demand', state: 'succeeded', reason: 'completed' }),
        attemptOf(4),
      ],
    })
    expect(lines.filter((line) => /^\d+\. /.test(line))).toEqual([
      '1. **interrupted** on scripted spot v100, 1m 30s, `$0.01`, 5 steps lost: The machine was interrupted.',
      '2. **stopped** on scripted spot v100, 1m 30s, `$0.01`: migrated',
      '3. **succeeded** on scripted spot v100, requested on-demand, 1m 30s, `$0.01`',
      '4. **in progress** on scripted spot',
    ])
    expect(lines.join('\n')).not.toContain('|')
  })

  it('has exactly these lines for a job that waits, and for one that has everything', () => {
    const links = ['', 'Progress and logs: `crucible show job-a`, `crucible logs -f job-a`']
    const waits = { state: 'pending', reason: 'planning', message: 'Looking for an offer.' } as const
    expect(linesOf(waits)).toEqual([
      '**pending** (planning): Looking for an offer.',
      '',
      '- spent on ended attempts: `$0.00`',
      ...links,
    ])
    expect(
      linesOf({
        trouble: 'no store',
        deadlineAtMs: Date.UTC(2026, 10, 21),
        budgetMicroUsd: microUsd(9),
        placementReasons: ['cheapest'],
        attempts: [attemptOf(1, { expected: EXPECTED })],
      }),
    ).toEqual([
      '**running**: Training.',
      '',
      '**Trouble, retrying:** no store',
      '',
      '- spent on ended attempts: `$0.00`',
      '- expected of attempt 1: `$2.00` (`$1.00` to `$3.00`) in 1h (30m to 2h)',
      '- deadline: 2026-11-21T00:00:00Z',
      '- budget: `$9.00`',
      '',
      '**Chosen because:** cheapest',
      '',
      '**Attempts**',
      '',
      '1. **in progress** on scripted spot',
      ...links,
    ])
  })

  it('says what to expect only of an attempt in progress', () => {
    const shown = (over: Partial<AttemptRecord>): boolean =>
      jobDetails({ ...STATUS, attempts: [attemptOf(1, { expected: EXPECTED, ...over })] }).includes(
        'expected of',
      )
    expect(shown({})).toBe(true)
    expect(shown({ endedAtMs: 5 })).toBe(false)
    expect(shown({ state: 'failed', reason: 'invalid' })).toBe(false)
  })

  it('says what an attempt that is held back waits for, and how long one that ended has run', () => {
    const lines = linesOf({
      attempts: [
        attemptOf(1, { ...ENDED, launchedAtMs: 60_000, state: 'stopped', reason: 'migrated' }),
        attemptOf(2, { reason: 'waits until 2026-11-21T12:01:00Z' }),
      ],
    })
    expect(lines).toContain('1. **stopped** on scripted spot v100, 30s, `$0.01`: migrated')
    expect(lines).toContain('2. **in progress** on scripted spot: waits until 2026-11-21T12:01:00Z')
  })

  it('begins the list with the first that it has room for', () => {
    const attempts = Array.from({ length: 20 }, (_, index) => attemptOf(index + 1))
    const numbers = linesOf({ attempts }).flatMap((line) => /^(\d+)\. /.exec(line)?.[1] ?? [])
    expect(numbers).toEqual(['9', '10', '11', '12', '13', '14', '15', '16', '17', '18', '19', '20'])
  })

  it('says why it is where it is, for as long as it has a place', () => {
    const placementReasons = ['costs nothing', '8 cpus']
    const why = '**Chosen because:** costs nothing; 8 cpus'
    expect(linesOf({ placementReasons })).toContain(why)
    expect(linesOf({ placementReasons, state: 'succeeded', reason: 'completed' })).not.toContain(why)
  })

  it('says why only where that is more than the state itself', () => {
    expect(linesOf({})[0]).toBe('**running**: Training.')
    const waits = { state: 'provisioning', reason: 'workload-failed', message: 'Exit code 3.' } as const
    expect(linesOf(waits)[0]).toBe('**provisioning** (workload-failed): Exit code 3.')
    const message = 'Cancelled by its owner.'
    expect(linesOf({ state: 'cancelled', reason: 'cancelled', message })[0]).toBe(`**cancelled**: ${message}`)
  })
})
