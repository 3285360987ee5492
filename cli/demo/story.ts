import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { readArtifact } from '../../storage/artifacts'
import { CrucibleError } from '../../client/errors'
import { formatProblem, parseJobFile } from '../../client/job-file'
import type { JobView } from '../../client/job-view'
import { readView, readAttempt } from '../../client/read-view'
import { submit } from '../../client/submit'
import { isFinal, type JobSpec } from '../../core/job'
import type { MachineHandle } from '../../core/handle'
import type { MicroUsd } from '../../core/money'
import { SECOND_MS } from '../../core/time'
import type { Progress } from '../dev/temporal/progress'
import { lossInWords, progressInWords } from '../words'
import type { Stage } from './stage'

/** Fractions of the training after which a machine is lost, and how. */
const FIRST_LOSS = { afterPart: 0.3, noticeMs: 10 * SECOND_MS }
const SECOND_LOSS = { afterPart: 0.65, noticeMs: null }

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
  /** From submission to end. */
  tookMs: number
  /** Of all its machines together. */
  machineMs: number
  costMicroUsd: MicroUsd
}

export interface StoryTelling {
  stage: Stage
  /** Folder of the example. */
  folder: string
  progress: Progress
  now: () => number
  signal: AbortSignal
}

/** The job that loses two machines, the same job undisturbed, and the comparison of their results. */
export async function playStory(telling: StoryTelling): Promise<Story> {
  const { stage, progress } = telling
  const spec = await specOf(telling)
  const moved = await start(telling, spec)
  progress.note(`Submitted ${spec.name} as ${moved}: a language model in plain Python, on a spot machine.`)
  const { uiUrl } = await readView(stage.context, moved)
  if (uiUrl !== null) progress.note(`Its page in the Temporal Web UI, while the demo runs: ${uiUrl}`)
  await lose(telling, { id: moved, attempt: 1, ...FIRST_LOSS })
  await tellStart(telling, moved, 2)
  // Runs in parallel to save the viewer's time.
  const undisturbed = await start(telling, { ...spec, name: `${spec.name}-calm`, isInterruptible: false })
  progress.note(`In parallel, undisturbed on an on-demand machine, the same job as ${undisturbed}.`)
  await lose(telling, { id: moved, attempt: 2, ...SECOND_LOSS })
  await tellStart(telling, moved, 3)
  const [first, second] = [await end(telling, moved), await end(telling, undisturbed)]
  progress.note('Both jobs are done.')
  const weights = await compare(telling, moved, undisturbed)
  return { moved: first, undisturbed: second, weights, spot: billOf(first), onDemand: billOf(second) }
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

interface Loss {
  id: string
  attempt: number
  afterPart: number
  noticeMs: number | null
}

async function lose(telling: StoryTelling, { noticeMs, ...at }: Loss): Promise<void> {
  const { stage, progress, signal } = telling
  const step = await untilStep(telling, at)
  const { machine } = await readAttempt(stage.context.store, at.id, at.attempt)
  if (machine === undefined)
    throw new CrucibleError('failed', `The machine of attempt ${at.attempt} is unknown.`)
  await stage.interrupt(machine, noticeMs, signal)
  progress.note(
    noticeMs === null
      ? `Machine ${at.attempt}${where(machine)} was killed without notice at step ${step}.`
      : `Machine ${at.attempt}${where(machine)} got notice at step ${step}: it is taken back in ${noticeMs / SECOND_MS} s.`,
  )
}

/** The step from which an attempt resumes, once its workload has reported one. */
async function tellStart(telling: StoryTelling, id: string, attempt: number): Promise<void> {
  await untilStep(telling, { id, attempt, afterPart: 0 })
  const { beat, machine } = await readAttempt(telling.stage.context.store, id, attempt)
  const step = beat?.restoredFrom?.isStepKnown === false ? undefined : beat?.restoredFrom?.step
  telling.progress.note(
    `Machine ${attempt}${where(machine)} resumes from ${step === undefined ? 'the start' : `step ${step}`}.`,
  )
}

/** ` in us-east-1a`; empty if there is only one place. */
function where(machine: MachineHandle | undefined): string {
  const place = machine?.realised.place ?? ''
  return place === '' ? '' : ` in ${place}`
}

const LOOK_EVERY_MS = 100

/** Waits until an attempt has done a fraction of the training; returns the step. */
async function untilStep(
  { stage, progress, signal }: StoryTelling,
  { id, attempt, afterPart }: { id: string; attempt: number; afterPart: number },
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
    // Checked only occasionally, because it queries the workflow.
    if (looks % 20 === 0) await checkOn(stage, id)
    await sleep(LOOK_EVERY_MS, undefined, { signal })
  }
}

async function checkOn({ context }: Stage, id: string): Promise<void> {
  const { state, message, attemptsTotal } = await readView(context, id)
  if (isFinal(state)) {
    throw new CrucibleError(
      'failed',
      `${id} was over too soon (${state}, ${attemptsTotal} attempts): ${message}`,
    )
  }
}

async function end({ stage, progress, signal }: StoryTelling, id: string): Promise<JobView> {
  for (;;) {
    signal.throwIfAborted()
    const view = await readView(stage.context, id)
    if (view.state === 'succeeded') return view
    if (isFinal(view.state)) throw new CrucibleError('failed', `${id} has ${view.state}: ${view.message}`)
    progress.update(`${view.name}: ${progressInWords(view.progress)}`)
    await sleep(LOOK_EVERY_MS, undefined, { signal })
  }
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
