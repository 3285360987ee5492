import type { Colors } from 'picocolors/types'
import type { AttemptView, JobSummary, JobView, ProgressView } from '../../client/job/job-view'
import { isAttemptOver } from '../../client/job/view'
import type { UploadProgress } from '../../core/beat-parts'
import type { Checkpoint, CheckpointState } from '../../core/job/checkpoint'
import type { JobState } from '../../core/job/job'
import { formatUsd } from '../../core/money/money'
import { formatBytes } from '../../core/resources'
import { formatDuration } from '../../core/time/time'
export { plural } from '../../core/plural'
export { formatBytes as bytes } from '../../core/resources'

/** Shown for an unknown value. */
export const NOTHING = '-'

/** Shown for an unknown state. */
export const UNKNOWN = 'unknown'

export const NOT_LIVE = 'The workflow is not responding; showing the last recorded state.'

/** A line about a job, which says whether it is only the last recorded state. */
export function asKnown({ isLive }: Pick<JobView, 'isLive'>, line: string): string {
  return isLive ? line : `last recorded: ${line} The workflow is not responding.`
}

const COLOURS: Readonly<Record<JobState, keyof Colors>> = {
  pending: 'cyan',
  provisioning: 'cyan',
  running: 'green',
  recovering: 'yellow',
  stopping: 'yellow',
  succeeded: 'green',
  failed: 'red',
  cancelled: 'dim',
}

export function stateInColour(state: JobState | null, paint: Colors): string {
  return state === null ? UNKNOWN : (paint[COLOURS[state]] as (text: string) => string)(state)
}

/** `480/1,500 (32 %)`, `step 480`, `epoch 2/5 (28 %)`, `epoch 2, 40/100`, `40/100`, or nothing. */
export function progressInWords(progress: ProgressView | null): string {
  const counts = progress === null ? null : countsInWords(progress)
  if (progress === null || counts === null) return NOTHING
  return progress.percent === null ? counts : `${counts} (${percentInWords(progress.percent)})`
}

/** `artifacts: 3 of 7 files, 12 GB of 40 GB`, with the bytes read if those are more. */
export function savingInWords(saving: UploadProgress): string {
  const { what, filesDone, filesTotal, bytesDone, bytesTotal, bytesRead = 0 } = saving
  const files = `${count(filesDone)} of ${count(filesTotal)} ${filesTotal === 1 ? 'file' : 'files'}`
  const read = bytesRead > bytesDone ? ` (${formatBytes(bytesRead)} read)` : ''
  return `${what}: ${files}, ${formatBytes(bytesDone)} of ${formatBytes(bytesTotal)}${read}`
}

function countsInWords(progress: ProgressView): string | null {
  const { step, stepsTotal, epoch, epochsTotal, batch, batchesTotal } = progress
  if (step !== null) return stepsTotal === null ? `step ${count(step)}` : ofTotal(step, stepsTotal)
  const part = batch === null ? null : ofTotal(batch, batchesTotal)
  if (epoch === null) return part
  // A list has room for only one of the counts.
  if (epochsTotal !== null || part === null) return `epoch ${ofTotal(rounded(epoch), epochsTotal)}`
  return `epoch ${rounded(epoch)}, ${part}`
}

function ofTotal(done: number, total: number | null): string {
  return total === null ? count(done) : `${count(done)}/${count(total)}`
}

function rounded(epoch: number): number {
  return Number(epoch.toFixed(2))
}

/** Rounds a percentage down to a whole number, or to one decimal while it is small. */
function percentInWords(percent: number): string {
  return `${percent < 10 ? Math.floor(percent * 10) / 10 : Math.floor(percent)} %`
}

/** Formats a number with commas between thousands. */
export function count(whole: number): string {
  return whole.toLocaleString('en-US')
}

/** A loss, to four significant digits. */
export function lossInWords(loss: number): string {
  return String(Number(loss.toPrecision(4)))
}

/** Describes the requested placement, and the real one if it differs. */
export function placementInWords({ placement }: Pick<JobSummary, 'placement'>): string {
  if (placement === null) return NOTHING
  const { backend, capacityType, realised } = placement
  const asked = `${backend} ${capacityType}`
  return realised === null || realised.capacityType === capacityType
    ? asked
    : `${asked} > ${realised.capacityType}`
}

export function usd(amount: number | null): string {
  return amount === null ? NOTHING : formatUsd(amount)
}

/** Formats an age in one unit: `5m`, `3d`. */
export function age(sinceMs: number, nowMs: number): string {
  return formatDuration(nowMs - sinceMs).split(' ')[0]!
}

/** Returns the run time of an attempt so far, or in total. */
export function attemptTime(attempt: AttemptView, nowMs: number): string {
  const { launchedAtMs, endedAtMs } = attempt
  const untilMs = endedAtMs ?? (isAttemptOver(attempt) ? null : nowMs)
  return launchedAtMs === null || untilMs === null ? NOTHING : formatDuration(untilMs - launchedAtMs)
}

/** Why an attempt is in its state, without repeating the state. */
export function attemptReason({ state, reason }: Pick<AttemptView, 'state' | 'reason'>): string {
  if (reason === 'run-limit') return 'run limit: planned hand-over'
  return reason.startsWith(`${state}: `) ? reason.slice(state.length + 2) : reason
}

/** Cut to a width, so that one long sentence does not break a table. */
export function clip(text: string, width: number): string {
  const line = text.replace(/\s+/g, ' ')
  return line.length > width ? `${line.slice(0, width - 1)}…` : line
}

/** The state of a checkpoint for people, who need not know the two kinds of provisional. */
export function checkpointState(state: CheckpointState): 'complete' | 'provisional' {
  return state === 'complete' ? state : 'provisional'
}

/** The step of a checkpoint; a running number does not count. */
export function knownStep(checkpoint: Checkpoint | null): number | null {
  return checkpoint === null || checkpoint.isStepKnown === false ? null : checkpoint.step
}

export function stepInWords(checkpoint: Checkpoint): string {
  const step = knownStep(checkpoint)
  return step === null ? 'step unknown' : `step ${step}`
}
