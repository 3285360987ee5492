import { execFileSync } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { TemporalExecutable } from '../../cli/dev/temporal/resolve'
import { submit } from '../../client/job/submit'
import { makeJobId } from '../../core/ids'
import type { JobSpec } from '../../core/job/job'
import { microUsd } from '../../core/money/money'
import { jobWorkflowId } from '../../core/queues'
import type { Report } from '../kit/harness'
import { breachesOf, storyOf, type RunFacts } from './invariants'
import { processesOf } from './machines'
import { inWords, STEPS, type Fault, type JobPlan, type Plan } from './plan'
import { Sight, type JournalLine } from './sight'
import { clear, setStage, startAll, stopAll, type DiskName, type Product, type Stage } from './stage'
import { Striker } from './strikes'
import { Watchman } from './watchman'
import { patient } from '../support/patience'

/** No run takes this long unless something hangs: the longest honest one waits three minutes for a machine it could not have. */
const RUN_LIMIT_MS = patient(6 * 60_000)
/** How long a workflow whose record says that it is over may take to close. */
const CLOSE_LIMIT_MS = patient(60_000)
const LOOK_EVERY_MS = 50
const WORKLOAD = join(__dirname, 'workload')

export interface ChaosOptions {
  product: Product
  executable: TemporalExecutable
  isKept?: boolean
  /** Ends a run before its time. */
  signal?: AbortSignal
}

export interface ChaosReport extends Report {
  plan: Plan
  /** Of each job: how it ended after how many attempts. */
  ends: string[]
  /** The faults that found something to strike. */
  landed: Fault[]
  /** The faults that this user may not bring about here. */
  leftOut: Fault[]
}

/** Lives through one run with real processes, and checks every invariant when it is over. */
export async function runChaos(plan: Plan, options: ChaosOptions): Promise<ChaosReport> {
  const { seed } = plan
  const disks = disksOf(plan)
  const stage = await setStage({ ...options, seed, isLeaseShort: plan.isLeaseShort, disks })
  const breaches: string[] = []
  const ends: string[] = []
  const landed: Fault[] = []
  const story = plan.strikes.map((strike) => `planned: ${inWords(strike)}`)
  const leftOut = disks.filter((name) => !stage.disks.has(name)).map((name) => `full-${name}` as const)
  story.push(...leftOut.map((fault) => `left out: ${fault}, for which this user would have to mount a disk`))
  try {
    const lived = await live(stage, plan, options.signal)
    ends.push(...lived.ends)
    landed.push(...lived.landed)
    story.push(...lived.story)
    breaches.push(...lived.breaches)
  } catch (error) {
    breaches.push(error instanceof Error ? (error.stack ?? error.message) : String(error))
  }
  const left = await stopAll(stage)
  breaches.push(...stage.failures, ...left.map((process) => `a process is left: ${process}`))
  const isGivenUp = options.signal?.aborted === true
  const isKept = options.isKept === true || (breaches.length > 0 && !isGivenUp)
  clear(stage, { isKept })
  if (isKept) story.unshift(`kept: ${stage.home} (logs/, store/, journals/)`)
  const state = ends.map((end) => end.split(' ')[0]!).join(', ')
  return { plan, state, ends, landed, leftOut, breaches, story }
}

function disksOf({ strikes }: Plan): DiskName[] {
  const isFilled = (fault: Fault): boolean => strikes.some((strike) => strike.fault === fault)
  return [
    ...(isFilled('full-store') ? (['store'] as const) : []),
    ...(isFilled('full-machines') ? (['machines'] as const) : []),
  ]
}

interface Lived {
  ends: string[]
  landed: Fault[]
  breaches: string[]
  story: string[]
}

async function live(stage: Stage, plan: Plan, stopped?: AbortSignal): Promise<Lived> {
  await startAll(stage)
  stage.failed.throwIfAborted()
  const over = new AbortController()
  const timer = setTimeout(() => over.abort(), RUN_LIMIT_MS)
  const limit = AbortSignal.any([over.signal, stage.failed, ...(stopped === undefined ? [] : [stopped])])
  const jobs = plan.jobs.map((job) => ({ job, id: makeJobId('chaos', randomInt) }))
  const sights = jobs.map(
    ({ id }) =>
      new Sight(id, { store: join(stage.home, 'store'), journal: journalOf(stage, id), seam: stage.seam }),
  )
  const watchman = new Watchman(jobs.map(({ id }) => id))
  const watching = watchman.watch(over.signal)
  const striker = new Striker(stage, sights, limit)
  const breaches: string[] = []
  try {
    const submitting = Promise.all(
      jobs.map(({ job, id }) =>
        submitUntilAccepted(stage, specOf(stage, plan, { job, id }), { id, signal: limit }),
      ),
    )
    await Promise.all([submitting, striker.strikeAll(plan.strikes)])
    for (const sight of sights) await untilClosed(stage, sight, limit)
  } catch (error) {
    if (over.signal.aborted) breaches.push(`not over within ${RUN_LIMIT_MS / 60_000} minutes`)
    else if (!stage.failed.aborted) breaches.push(wordsOf(error))
  } finally {
    // Before the workers are stopped, who would tidy up: nothing is left when a job is over.
    breaches.push(...leftovers(stage), ...watchman.meetings)
    clearTimeout(timer)
    over.abort()
    await watching
  }
  const facts: RunFacts = {
    store: stage.context.store,
    isLeaseShort: plan.isLeaseShort,
    struck: striker.struck,
    watchman,
    weights: undisturbedWeights(),
  }
  const stories = plan.jobs.map((job, index) => storyOf(index, job, sights[index]!))
  for (const story of stories) breaches.push(...(await breachesOf(story, facts)))
  return {
    breaches,
    landed: striker.struck.filter(({ hasLanded }) => hasLanded).map(({ fault }) => fault),
    ends: stories.map(({ result, attempts }) => `${result?.reason ?? 'not over'} after ${attempts.length}`),
    story: [
      ...striker.struck.map(({ atMs, attempt, words }) => `${timeOf(atMs)} attempt ${attempt}: ${words}`),
      ...stories.flatMap(({ index, sight }) => sight.journal().flatMap((line) => outline(index, line))),
    ],
  }
}

function wordsOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}

function journalOf({ home }: Stage, jobId: string): string {
  return join(home, 'journals', `${jobId}.ndjson`)
}

function outline(job: number, { event, attempt, step, pid, wallMs }: JournalLine): string[] {
  return event === 'step'
    ? []
    : [`${timeOf(wallMs)} job ${job} attempt ${attempt} (${pid}): ${event} at ${step}`]
}

function timeOf(atMs: number): string {
  return new Date(atMs).toISOString().slice(11, 23)
}

/** A submission is repeatable with its id: it is sent again until somebody takes it. */
async function submitUntilAccepted(
  { context }: Stage,
  spec: JobSpec,
  { id, signal }: { id: string; signal: AbortSignal },
): Promise<void> {
  for (;;) {
    try {
      await submit(context, { id, spec, directory: WORKLOAD })
      return
    } catch (error) {
      const { kind } = error as { kind?: string }
      if (kind === 'usage' || kind === 'permission') throw error
    }
    await sleep(LOOK_EVERY_MS, undefined, { signal })
  }
}

function specOf(stage: Stage, { stepSeconds }: Plan, { job, id }: { job: JobPlan; id: string }): JobSpec {
  return {
    name: 'chaos',
    run: `python3 train.py ${STEPS} ${stepSeconds} ${job.saveEvery} ${job.style}`,
    inputs: [],
    resources: {},
    isInterruptible: true,
    checkpoint: {},
    budgetMicroUsd: job.budget === undefined ? undefined : microUsd(job.budget),
    backends: [],
    optimize: 'cost',
    retries: job.retries,
    env: { CHAOS_JOURNAL: journalOf(stage, id) },
    secrets: [],
    outputs: [],
  }
}

/** The record's last entry, and then the workflow's own end. */
async function untilClosed(stage: Stage, sight: Sight, signal: AbortSignal): Promise<void> {
  while (!sight.isOver) await sleep(LOOK_EVERY_MS, undefined, { signal })
  const untilMs = performance.now() + CLOSE_LIMIT_MS
  while (!(await isClosed(stage, sight.jobId))) {
    if (performance.now() > untilMs) throw new Error(`the workflow of ${sight.jobId} does not close`)
    await sleep(LOOK_EVERY_MS, undefined, { signal })
  }
}

async function isClosed({ context }: Stage, jobId: string): Promise<boolean> {
  try {
    const client = await context.temporal()
    const { status } = await client.workflow.getHandle(jobWorkflowId(jobId)).describe()
    return status.name !== 'RUNNING'
  } catch {
    return false
  }
}

/** Processes and folders of machines that are there although all jobs are over. */
function leftovers({ home }: Stage): string[] {
  const processes = processesOf(home).filter(({ machine }) => machine !== undefined)
  const folders = ['machines', 'staging'].flatMap((kind) =>
    readdirSync(join(home, 'machines', kind)).map((name) => `${kind}/${name}`),
  )
  return [
    ...processes.map(({ pid, command }) => `a process of a machine is left: ${pid} ${command}`),
    ...folders.map((folder) => `a folder of a machine is left: ${folder}`),
  ]
}

let weights: Buffer | undefined

/** What the same training leaves that nothing befalls, and that Crucible has never seen. */
function undisturbedWeights(): Buffer {
  if (weights !== undefined) return weights
  const folder = mkdtempSync(join(tmpdir(), 'crucible-chaos-undisturbed-'))
  try {
    execFileSync('python3', [join(WORKLOAD, 'train.py'), String(STEPS), '0', String(STEPS), 'folders'], {
      env: { PATH: process.env['PATH'], CRUCIBLE_CHECKPOINT_DIR: folder, CRUCIBLE_OUTPUT_DIR: folder },
      stdio: 'ignore',
    })
    weights = readFileSync(join(folder, 'weights.bin'))
    return weights
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
