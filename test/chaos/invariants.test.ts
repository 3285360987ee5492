/** The judge of chaos: it accepts a story that is as it should be, and refuses one for each invariant that it breaks. */
import { beforeEach, expect, it } from '@jest/globals'
import type { Settlement } from '../../core/activities'
import type { Checkpoint } from '../../core/job/checkpoint'
import type { AttemptEnd } from '../../core/job/ledger'
import type { JobResult } from '../../core/messages'
import type { RecordKind } from '../../core/job/record'
import { layout } from '../../storage/layout'
import { saveCheckpoint, trained, UNTRAINED } from '../backends/scripted/checkpoints'
import { MemoryStore } from '../backends/scripted/memory-store'
import { explanations, putLog } from '../kit/fabricated'
import { breachesOf, type JobStory, type RunFacts } from './invariants'
import type { JournalLine, Sight } from './sight'
import type { Struck } from './strikes'
import type { Watchman } from './watchman'

const JOB = 'chaos-1'
const WEIGHTS = layout.artifactsOf(JOB, 2) + 'weights.bin'
const START_MS = 1_795_000_000_000
/** Long enough that most lines are older than those that a hard kill may take. */
const STEP_MS = 60_000

let store: MemoryStore
let job: JobStory
let facts: RunFacts
/** What is on record. */
let records: ReturnType<typeof explanations>
let saved: Checkpoint

const STRUCK: Struck = {
  fault: 'kill-machine',
  job: 0,
  attempt: 1,
  atMs: START_MS,
  untilMs: START_MS,
  hasLanded: true,
  words: 'kill-machine',
}

/** The lines of one life, which continues from a step. */
const lived = (attempt: number, fromStep: number, toStep: number): JournalLine[] =>
  Array.from({ length: toStep - fromStep + 1 }, (_, index) => {
    const step = fromStep + index
    const ms = (attempt - 1) * 1e9 + index * STEP_MS
    const event = index === 0 ? 'start' : 'step'
    return { event, step, pid: 100 + attempt, attempt, monoMs: ms, wallMs: START_MS + ms }
  })

const settled = (end: AttemptEnd, more: Partial<Settlement> = {}): Settlement =>
  ({
    end,
    costMicroUsd: 0,
    artifacts: [],
    phases: [],
    checkpoint: saved,
    handle: { launchedAtMs: START_MS, realised: { priceMicroUsdPerHour: 3_600_000 } },
    ...more,
  }) as unknown as Settlement

const INTERRUPTED: AttemptEnd = {
  kind: 'failed',
  isLaunched: true,
  failure: { class: 'interrupted', message: 'taken back' },
}

const stepLines = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, index) => ({ m: `step ${from + index + 1}/6` }))

/** A job of two attempts: the first was killed after it had saved step 3, the second went on from there to the end. */
beforeEach(async () => {
  store = new MemoryStore(Date.now)
  saved = await saveCheckpoint(trained(UNTRAINED, 3), { store, jobId: JOB, attempt: 1, nowMs: 1 })
  await store.put(WEIGHTS, 'weights')
  await putLog(store, { jobId: JOB, attempt: 1, from: 1, lines: stepLines(0, 3) })
  await putLog(store, { jobId: JOB, attempt: 2, from: 1, lines: stepLines(3, 6) })
  records = explanations([1, 2])
  job = {
    index: 0,
    plan: { style: 'folders', saveEvery: 3, retries: { failures: 0, interruptions: 3 }, budget: 10 },
    sight: {
      jobId: JOB,
      records: (kind: RecordKind) => records.filter((entry) => entry.kind === kind),
    } as unknown as Sight,
    // The last line was too young to be certainly kept.
    journal: [...lived(1, 0, 4), ...lived(2, 3, 6)],
    result: { state: 'succeeded', reason: 'completed', message: 'done' } as JobResult,
    attempts: [
      { number: 1, settlement: settled(INTERRUPTED) },
      { number: 2, settlement: settled({ kind: 'succeeded' }) },
    ],
  }
  const lastSeenAtMs = new Map([1, 2].map((number) => [`${JOB}-${number}`, START_MS + 1_000]))
  facts = {
    store,
    isLeaseShort: false,
    struck: [STRUCK],
    weights: Buffer.from('weights'),
    watchman: { lastSeenAtMs } as unknown as Watchman,
  }
})

it('accepts a story that is as it should be', async () => {
  expect(await breachesOf(job, facts)).toEqual([])
})

const end = (attempt: number, how: AttemptEnd): unknown =>
  (job.attempts[attempt - 1]!.settlement = settled(how))
const failed = (failureClass: 'unclassified' | 'interrupted', message: string): AttemptEnd => ({
  kind: 'failed',
  isLaunched: true,
  failure: { class: failureClass, message },
})
/** The second attempt began before the first step. */
const beganAnew = (): unknown => (job.journal = [...lived(1, 0, 4), ...lived(2, 0, 6)])
const logLost = async (attempt: number, upTo: number): Promise<void> => {
  for await (const { key } of store.list(layout.logs(JOB, attempt))) await store.delete(key)
  const [from, to] = attempt === 1 ? [0, 3] : [3, 6]
  const lines = stepLines(from, to).slice(upTo)
  if (lines.length > 0) await putLog(store, { jobId: JOB, attempt, from: upTo + 1, lines })
}

it.each<[string, RegExp, () => unknown]>([
  ['a job that is not over', /it is not over$/, () => (job.result = undefined)],
  [
    'a job that failed (unclassified)',
    /it ended as unclassified and should have as completed/,
    () => Object.assign(job.result!, { state: 'failed', reason: 'unclassified' }),
  ],
  [
    'an attempt that failed (unclassified)',
    /attempt 1 ended without a cause: .*unclassified/,
    () => end(1, failed('unclassified', 'boom')),
  ],
  [
    'an interruption by nothing that struck',
    /attempt 1 ended without a cause: .*interrupted/,
    () => (facts.struck = [{ ...STRUCK, hasLanded: false }]),
  ],
  [
    'a fault of the control plane that cost an attempt',
    /attempt 1 ended without a cause/,
    () => (facts.struck = [{ ...STRUCK, fault: 'kill-server' }]),
  ],
  [
    'two workloads at once',
    /attempts 1 and 2 ran at once for/,
    () => (job.journal = [...lived(1, 0, 4), ...lived(2, 3, 6).map((one) => ({ ...one, monoMs: 5 }))]),
  ],
  [
    'a workload of an attempt that was over',
    /attempt 1 ran a workload after one of attempt 2 had/,
    () => job.journal.push(...lived(1, 3, 4).map((one) => ({ ...one, pid: 103, monoMs: one.monoMs + 1e10 }))),
  ],
  [
    'a restore of nothing although something was saved',
    /attempt 2 began after step 0, saved was step 3$/,
    beganAnew,
  ],
  [
    'a restore of nothing where the settlement has forgotten what was saved',
    /attempt 2 began after step 0, kept is 0*3-1$/,
    () => {
      for (const each of job.attempts) delete each.settlement.checkpoint
      beganAnew()
    },
  ],
  [
    'a restore of nothing after an attempt between has forgotten what was saved',
    /attempt 3 began after step 0, saved was step 3$/,
    async () => {
      const [first, second] = job.attempts
      const between = settled(INTERRUPTED)
      delete between.checkpoint
      job.attempts = [first!, { number: 2, settlement: between }, { ...second!, number: 3 }]
      job.journal = [...lived(1, 0, 4), ...lived(3, 0, 6)]
    },
  ],
  [
    'a budget that was exceeded, by when machines were seen to live',
    /it cost \d+ micro-dollars of a budget of 10000000$/,
    () => facts.watchman.lastSeenAtMs.set(`${JOB}-2`, START_MS + 10 * 3_600_000),
  ],
  [
    'weights that are not those of an undisturbed run',
    /the weights are not those/,
    () => store.put(WEIGHTS, 'others'),
  ],
  ['a success without weights', /left no weights$/, () => store.delete(WEIGHTS)],
  [
    'an attempt whose whole log is lost',
    /attempt 1: 3 old lines are lost, step 1 first$/,
    () => logLost(1, 3),
  ],
  ['old lines that are lost', /attempt 1: 1 old lines are lost, step 1 first$/, () => logLost(1, 1)],
  [
    'any line that is lost of a program that succeeded',
    /attempt 2: 1 old lines are lost, step 6 first$/,
    async () => {
      await logLost(2, 3)
      await putLog(store, { jobId: JOB, attempt: 2, from: 1, lines: stepLines(3, 5) })
    },
  ],
  [
    'old lines that are lost long after a disk was full',
    /attempt 1: 3 old lines are lost, step 1 first$/,
    async () => {
      const fullAtMs = START_MS + 1e8
      facts.struck = [STRUCK, { ...STRUCK, fault: 'full-store', atMs: fullAtMs, untilMs: fullAtMs + 2_000 }]
      await logLost(1, 3)
    },
  ],
  [
    'an attempt with a step that is not on record',
    /attempt 2: nothing on record of how it was settled$/,
    () => (records = records.filter(({ kind, attempt }) => kind !== 'settled' || attempt !== 2)),
  ],
])('refuses %s', async (_, words, spoil) => {
  await spoil()
  expect(await breachesOf(job, facts)).toContainEqual(expect.stringMatching(words))
})

it('accepts that lines are lost which were printed while a disk was full', async () => {
  const [first] = lived(1, 0, 4)
  facts.struck = [
    STRUCK,
    { ...STRUCK, fault: 'full-store', atMs: first!.wallMs, untilMs: first!.wallMs + STEP_MS },
  ]
  await logLost(1, 1)
  expect(await breachesOf(job, facts)).toEqual([])
})
