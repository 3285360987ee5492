/** The judge of worlds: it accepts a run that is as it should be, and refuses one for each invariant that it breaks. */
import { beforeEach, expect, it } from '@jest/globals'
import type { Checkpoint } from '../../core/job/checkpoint'
import type { Beat, LogLine, Phase, RunnerResult } from '../../core/documents'
import type { AttemptRecord } from '../../core/job/ledger'
import type { JobStatus } from '../../core/messages'
import { spend } from '../../core/money/meter'
import { putExplanations, putLog, recordOf } from '../kit/fabricated'
import { MemoryStore } from '../backends/scripted/memory-store'
import { saveCheckpoint, trained, UNTRAINED, weightsAfter } from '../backends/scripted/checkpoints'
import type { ScriptedMachine } from '../backends/scripted/scripted-machine'
import { WEIGHTS_ARTIFACT } from '../backends/scripted/scripted-runner'
import { layout } from '../../storage/layout'
import type { Deployment } from '../workflows/harness'
import { breaches } from './invariants'

const JOB = 'job-1'
const STEPS = 60
const WEIGHTS = `${layout.artifactsOf(JOB, 2)}${WEIGHTS_ARTIFACT}`
const PRICE = 3_600_000_000
const PHASES: Phase[] = [{ name: 'running', startedAtMs: 0, durationMs: 1_000 }]

/** A run of two attempts: the first was interrupted after it had saved, the second went on from there to the end. */
interface Run {
  store: MemoryStore
  status: JobStatus
  machines: ScriptedMachine[]
  saved: Checkpoint
}

let run: Run

const machineOf = (attempt: number, fromMs: number, toMs: number): ScriptedMachine =>
  ({
    order: { attempt, runner: {} },
    workedFromMs: fromMs,
    billedFromMs: fromMs,
    endedAtMs: toMs,
    state: 'gone',
    handle: {
      id: `m-${attempt}`,
      attemptId: `${JOB}-${attempt}`,
      launchedAtMs: fromMs,
      realised: { priceMicroUsdPerHour: PRICE },
    },
  }) as unknown as ScriptedMachine

const attemptOf = (number: number, more: Partial<AttemptRecord>): AttemptRecord =>
  ({
    number,
    attemptId: `${JOB}-${number}`,
    capacityType: 'spot',
    realised: { capacityType: 'spot' },
    launchedAtMs: 0,
    phases: PHASES,
    costMicroUsd: 0,
    ...more,
  }) as AttemptRecord

function costOf(machines: readonly ScriptedMachine[]): number {
  return machines.reduce((sum, { handle, endedAtMs }) => {
    const usage = { fromAtMs: handle.launchedAtMs, toAtMs: endedAtMs!, priceMicroUsdPerHour: PRICE }
    return sum + spend(usage, endedAtMs!)
  }, 0)
}

const put = (key: string, document: Partial<Beat> | Partial<RunnerResult>): Promise<unknown> =>
  run.store.put(key, JSON.stringify(document))

beforeEach(async () => {
  const store = new MemoryStore(Date.now)
  const machines = [machineOf(1, 0, 10_000), machineOf(2, 20_000, 40_000)]
  const saved = await saveCheckpoint(trained(UNTRAINED, 20), { store, jobId: JOB, attempt: 1, nowMs: 1 })
  const attempts = [
    attemptOf(1, { state: 'interrupted', reason: 'interrupted: taken back', checkpoint: saved, phases: [] }),
    attemptOf(2, { state: 'succeeded', reason: 'completed', restoredFrom: saved, checkpoint: saved }),
  ]
  const status = {
    id: JOB,
    state: 'succeeded',
    reason: 'completed',
    message: 'done',
    attempts,
    attemptsTotal: 2,
    budgetMicroUsd: 1e9,
    spentMicroUsd: costOf(machines),
  } as unknown as JobStatus
  run = { store, status, machines, saved }
  const progress = { step: 20 } as Beat['progress']
  await put(layout.beat(JOB, 1), { checkpoint: saved, restoredFrom: null, progress })
  await put(layout.result(JOB, 2), { checkpoint: null, restoredFrom: saved, progress, logLines: 3 })
  await putLog(store, { jobId: JOB, attempt: 1, from: 1, lines: [{}, {}] })
  await putLog(store, { jobId: JOB, attempt: 2, from: 1, lines: [{}, {}, {}] })
  await store.put(WEIGHTS, weightsAfter(STEPS))
  await putExplanations(store, JOB, [1, 2])
})

function judged(): Promise<string[]> {
  const { machines, store, status } = run
  const world = { machines, duplicates: 0, manners: {} }
  return breaches({ world, store } as unknown as Deployment, status, STEPS)
}

it('accepts a run that is as it should be', async () => {
  expect(await judged()).toEqual([])
})

it('accepts a machine whose end was requested, and comes a moment later', async () => {
  Object.assign(run.machines[1]!, { state: 'running', isShownGone: true })
  expect(await judged()).toEqual([])
})

const first = (): AttemptRecord => run.status.attempts[0]!
const second = (): AttemptRecord => run.status.attempts[1]!
const logOf = (attempt: number, from: number, lines: Partial<LogLine>[]): Promise<unknown> =>
  putLog(run.store, { jobId: JOB, attempt, from, lines })
/** The second attempt ran without a restore, and the job knows, or does not. */
const restoredNothing = (): Promise<unknown> =>
  put(layout.result(JOB, 2), { checkpoint: null, restoredFrom: null, progress: null, logLines: 3 })

it.each<[string, RegExp, () => unknown]>([
  ['a job that is not over', /^the job is running$/, () => (run.status.state = 'running')],
  [
    'a job that failed for nothing of its own',
    /^the job ended as failed \(interrupted\): done$/,
    () => Object.assign(run.status, { state: 'failed', reason: 'interrupted' }),
  ],
  [
    'a job that failed (unclassified)',
    /^the job failed \(unclassified\): done$/,
    () => Object.assign(run.status, { state: 'failed', reason: 'unclassified' }),
  ],
  [
    'an attempt that failed (unclassified)',
    /^attempt 1 failed \(unclassified: boom\)$/,
    () => Object.assign(first(), { state: 'failed', reason: 'unclassified: boom' }),
  ],
  [
    'two workloads at once',
    /^attempts 1 and 2 ran at once for 5000 ms$/,
    () => (run.machines[0]!.endedAtMs = 25_000),
  ],
  [
    'a second machine of an attempt',
    /^1 more machines than the 2 attempts/,
    () => run.machines.push({ ...machineOf(2, 50_000, 50_001) } as ScriptedMachine),
  ],
  [
    'a machine that is left',
    /^job-1-2 is left: m-2$/,
    () => Object.assign(run.machines[1]!, { state: 'running' }),
  ],
  ['a budget that was exceeded', /^spent \d+ of a budget of 5$/, () => (run.status.budgetMicroUsd = 5)],
  [
    'a job that knows too little of its cost',
    /^the job says it spent 1,/,
    () => (run.status.spentMicroUsd = 1),
  ],
  [
    'a job that counts too much cost',
    /^the job says it spent 900000000, it was only/,
    () => (run.status.spentMicroUsd = 900_000_000),
  ],
  [
    'a restore of nothing although something was saved',
    /^attempt 2 began at 0 though 20 was saved$/,
    async () => {
      await restoredNothing()
      delete second().restoredFrom
    },
  ],
  [
    'a restore of nothing that is on record as one',
    /^attempt 2 began at nothing, and on record is 0*20-/,
    restoredNothing,
  ],
  [
    'a restore of nothing by a machine that was lost',
    /^attempt 2 began at 0 though 20 was saved$/,
    async () => {
      const progress = { step: 5 } as Beat['progress']
      await run.store.delete(layout.result(JOB, 2))
      await put(layout.beat(JOB, 2), { checkpoint: null, restoredFrom: null, progress })
      Object.assign(second(), { phases: [], restoredFrom: undefined })
    },
  ],
  [
    'a restore of what is no checkpoint',
    /^nonsense is no checkpoint$/,
    () => (second().restoredFrom = { ...run.saved, id: 'nonsense' }),
  ],
  [
    'another type than was asked for',
    /^attempt 2 asked for spot and got on-demand$/,
    () => Object.assign(second(), { realised: { capacityType: 'on-demand' } }),
  ],
  [
    'weights that are not those of an undisturbed run',
    /^the weights are not those/,
    () => run.store.put(WEIGHTS, weightsAfter(7)),
  ],
  ['a gap in a log', /^attempt 1: 97 lines lost after line 2$/, () => logOf(1, 100, [{}])],
  [
    'a log that ends too soon',
    /^attempt 2: the log ends at line 3 of 900$/,
    () =>
      put(layout.result(JOB, 2), {
        checkpoint: null,
        restoredFrom: run.saved,
        progress: null,
        logLines: 900,
      }),
  ],
  [
    'an attempt with a step that is not on record',
    /^attempt 2: nothing on record of how it was settled$/,
    () => run.store.delete(recordOf(JOB, 2, 'settled')),
  ],
])('refuses %s', async (_, words, spoil) => {
  await spoil()
  expect(await judged()).toContainEqual(expect.stringMatching(words))
})
