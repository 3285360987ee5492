import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { readArtifact } from '../../storage/artifacts'
import { CrucibleError } from '../../client/errors'
import { formatProblem, parseJobFile } from '../../client/job/file'
import type { JobView } from '../../client/job/job-view'
import { readAttempt } from '../../client/job/attempt-documents'
import { readView } from '../../client/job/read-view'
import { submit } from '../../client/job/submit'
import { watchJob } from '../../client/job/watch'
import { isFinal, type JobSpec } from '../../core/job/job'
import type { MachineHandle } from '../../core/handle'
import type { MicroUsd } from '../../core/money/money'
import { MINUTE_MS, SECOND_MS } from '../../core/time/time'
import type { Progress } from '../dev/temporal/progress'
import { lossInWords, progressInWords } from '../kit/words'
import type { LimitedProvider } from './scenery'
import type { Stage } from './stage'

/** How the job loses a machine: it is taken back after a fraction of the training, or its provider's run limit ends it. */
type Loss = { afterPart: number; noticeMs: number | null } | { limitOf: LimitedProvider }

/** The demo's variant of the example, and the events that befall it. */
export interface Plot {
  /** Changes of both jobs. */
  changes: Partial<JobSpec>
  /** Changes of the job that moves; `still` are those of the other one. */
  moved: Partial<JobSpec>
  undisturbed: Partial<JobSpec>
  /** Losses of the first machines, in order. */
  losses: readonly [Loss, ...Loss[]]
  /** Names of the two jobs' bills. */
  bills: readonly [string, string]
}

export const TWO_ZONES_PLOT: Plot = {
  changes: {},
  moved: {},
  undisturbed: { isInterruptible: false },
  losses: [
    { afterPart: 0.3, noticeMs: 10 * SECOND_MS },
    { afterPart: 0.65, noticeMs: null },
  ],
  bills: ['spot, two machines lost', 'on demand, undisturbed'],
}

/** Enough work to reach the limit of a run on any computer: a step takes at least its pause. */
const LONG_RUN = 'python3 train.py --steps 2400 --pause 0.04'

export const EVERYWHERE_PLOT: Plot = {
  changes: { run: LONG_RUN, resources: { gpuMemoryGb: { min: 20 } }, durationMs: MINUTE_MS },
  moved: {
    backends: [{ backend: 'ec2', capacityType: 'spot' }, { backend: 'modal' }, { backend: 'lambda' }],
  },
  undisturbed: {
    isInterruptible: false,
    backends: [{ backend: 'ec2', capacityType: 'on-demand' }],
  },
  losses: [{ afterPart: 0.1, noticeMs: 10 * SECOND_MS }, { limitOf: 'modal' }],
  bills: ['three providers', 'EC2 on demand, undisturbed'],
}

/** The file that must be identical. */
const WEIGHTS = 'weights.json'

export interface Story {
  moved: JobView
  undisturbed: JobView
  weights: { path: string; sizeBytes: number; sha256: string; isIdentical: boolean }
  spot: Bill
  onDemand: Bill
}

/** Duration and cost of a job. */
export interface Bill {
  /** Time from submission to end. */
  tookMs: number
  /** Run time of all its machines together. */
  machineMs: number
  /** Null if unknown. */
  costMicroUsd: MicroUsd | null
}

export interface StoryTelling {
  stage: Stage
  plot: Plot
  /** Folder of the example. */
  folder: string
  progress: Progress
  now: () => number
  signal: AbortSignal
}

/** The job that loses two machines, the same job undisturbed, and the comparison of their results. */
export async function playStory(telling: StoryTelling): Promise<Story> {
  const { plot, stage, progress } = telling
  const spec = { ...(await specOf(telling)), ...plot.changes }
  const moved = await start(telling, { ...spec, ...plot.moved })
  progress.note(`Submitted ${spec.name} as ${moved}: a language model in plain Python, on a spot machine.`)
  const { uiUrl } = await readView(stage.context, moved)
  if (uiUrl !== null) progress.note(`Its page in the Temporal Web UI, while the demo runs: ${uiUrl}`)
  const [first, ...others] = plot.losses
  let attempt = await nextAttempt(telling, moved, 1)
  await lose(telling, { id: moved, attempt }, first)
  attempt = await tellStart(telling, moved, attempt + 1)
  // Runs in parallel to save the viewer's time.
  const undisturbed = await start(telling, { ...spec, ...plot.undisturbed, name: `${spec.name}-calm` })
  progress.note(`In parallel, undisturbed on an on-demand machine, the same job as ${undisturbed}.`)
  for (const loss of others) {
    await lose(telling, { id: moved, attempt }, loss)
    attempt = await tellStart(telling, moved, attempt + 1)
  }
  const [one, other] = [await end(telling, moved), await end(telling, undisturbed)]
  progress.note('Both jobs are done.')
  const weights = await compare(telling, moved, undisturbed)
  return { moved: one, undisturbed: other, weights, spot: billOf(one), onDemand: billOf(other) }
}

function billOf({ submittedAtMs, endedAtMs, attempts, cost }: JobView): Bill {
  const times = attempts.map((attempt) => (attempt.endedAtMs ?? 0) - (attempt.launchedAtMs ?? 0))
  return {
    tookMs: (endedAtMs ?? submittedAtMs) - submittedAtMs,
    machineMs: times.reduce((sum, each) => sum + each, 0),
    costMicroUsd: cost.spentMicroUsd,
  }
}

async function specOf({ folder, now }: StoryTelling): Promise<JobSpec> {
  const file = join(folder, 'job.yaml')
  const read = parseJobFile(await readFile(file, 'utf8'), { fileName: file, nowMs: now() })
  if ('job' in read) return read.job.spec
  throw new CrucibleError('failed', read.problems.map(formatProblem).join('\n'))
}

async function start({ stage, folder, progress }: StoryTelling, spec: JobSpec): Promise<string> {
  progress.update('Submitting ...')
  return (await submit(stage.context, { spec, directory: folder })).id
}

interface At {
  id: string
  attempt: number
}

async function lose(telling: StoryTelling, at: At, loss: Loss): Promise<void> {
  const { stage, progress, signal } = telling
  if ('limitOf' in loss) {
    stage.fill?.(loss.limitOf)
    return progress.note(
      `Machine ${at.attempt} will reach the limit of a run on ${loss.limitOf}, which has no other free machine.`,
    )
  }
  const { afterPart, noticeMs } = loss
  const step = await untilStep(telling, { ...at, afterPart })
  const { machine } = await readAttempt(stage.context.store, at.id, at.attempt)
  if (machine === undefined)
    throw new CrucibleError('failed', `The machine of attempt ${at.attempt} is unknown.`)
  await stage.interrupt(machine, noticeMs, signal)
  progress.note(
    noticeMs === null
      ? `Machine ${at.attempt}${where(machine)} was killed without notice at step ${step}.`
      : `Machine ${at.attempt}${where(machine)} received an interruption notice at step ${step}: it ends in ${noticeMs / SECOND_MS} s.`,
  )
}

/** The first attempt from a number on whose workload has reported a step: others may have ended before in a provider's queue. */
async function nextAttempt(telling: StoryTelling, id: string, from: number): Promise<number> {
  for await (const view of changesOf(telling, id)) {
    const { attempts, attemptsTotal } = runningStill(view)
    const begun = attempts.find(({ number, progress: done }) => number >= from && done !== null)
    if (begun !== undefined) return begun.number
    telling.progress.update(`machine ${Math.max(from, attemptsTotal)}: starting`)
  }
  throw stopped(telling, id)
}

/** Reports the step from which the next attempt resumes; returns the number of that attempt. */
async function tellStart(telling: StoryTelling, id: string, from: number): Promise<number> {
  const attempt = await nextAttempt(telling, id, from)
  const { beat, machine } = await readAttempt(telling.stage.context.store, id, attempt)
  const step = beat?.restoredFrom?.isStepKnown === false ? undefined : beat?.restoredFrom?.step
  telling.progress.note(
    `Machine ${attempt}${where(machine)} resumes from ${step === undefined ? 'the start' : `step ${step}`}.`,
  )
  return attempt
}

/** ` in us-east-1a`, ` on modal`. */
function where(machine: MachineHandle | undefined): string {
  if (machine === undefined) return ''
  const { place } = machine.realised
  return place === '' ? ` on ${machine.backend}` : ` in ${place}`
}

/** The runner reports every second. */
const LOOK_EVERY_MS = SECOND_MS / 2
/** Checks between two reads of the job's state, which are rarer because they ask its workflow. */
const LOOKS_PER_CHECK = 4

function changesOf({ stage, signal }: StoryTelling, id: string): AsyncGenerator<JobView> {
  return watchJob(stage.context, id, { everyMs: LOOK_EVERY_MS, signal })
}

function stopped({ signal }: StoryTelling, id: string): Error {
  signal.throwIfAborted()
  return new CrucibleError('failed', `${id} was watched to its end.`)
}

/** Waits until an attempt has done a fraction of the training; returns the step. */
async function untilStep(
  { stage, progress, signal }: StoryTelling,
  { id, attempt, afterPart }: At & { afterPart: number },
): Promise<number> {
  for (let looks = 0; ; looks++) {
    signal.throwIfAborted()
    const { beat } = await readAttempt(stage.context.store, id, attempt)
    const { step, stepsTotal, loss } = beat?.progress ?? { step: null, stepsTotal: null, loss: null }
    if (step !== null && stepsTotal !== null) {
      progress.update(
        `machine ${attempt}: step ${step}/${stepsTotal}${loss === null ? '' : `, loss ${lossInWords(loss)}`}`,
      )
      if (step >= stepsTotal * afterPart) return step
    }
    if (looks % LOOKS_PER_CHECK === 0) runningStill(await readView(stage.context, id))
    await sleep(LOOK_EVERY_MS, undefined, { signal })
  }
}

function runningStill(view: JobView): JobView {
  const { id, state, message, attemptsTotal } = view
  if (!isFinal(state)) return view
  throw new CrucibleError('failed', `${id} ended too soon (${state}, ${attemptsTotal} attempts): ${message}`)
}

async function end(telling: StoryTelling, id: string): Promise<JobView> {
  for await (const view of changesOf(telling, id)) {
    if (view.state === 'succeeded') return view
    if (isFinal(view.state)) throw new CrucibleError('failed', `${id} has ${view.state}: ${view.message}`)
    telling.progress.update(`${view.name}: ${progressInWords(view.progress)}`)
  }
  throw stopped(telling, id)
}

async function compare(
  { stage }: StoryTelling,
  moved: string,
  undisturbed: string,
): Promise<Story['weights']> {
  const [first, second] = await Promise.all([readWeights(stage, moved), readWeights(stage, undisturbed)])
  return {
    path: WEIGHTS,
    sizeBytes: first.length,
    sha256: createHash('sha256').update(first).digest('hex'),
    isIdentical: first.equals(second),
  }
}

async function readWeights({ context }: Stage, id: string): Promise<Buffer> {
  const body = await readArtifact(context.store, id, WEIGHTS)
  if (body !== undefined) return body
  throw new CrucibleError('failed', `${id} has no artifact ${WEIGHTS}.`)
}
