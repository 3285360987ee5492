import type { Colors } from 'picocolors/types'
import type { AttemptView, JobSummary, ProgressView } from '../client/job-view'
import type { Checkpoint, CheckpointState } from '../core/checkpoint'
import type { JobState } from '../core/job'
import { formatUsd } from '../core/money'
import { formatDuration } from '../core/time'
export { formatBytes as bytes } from '../core/resources'

/** Stands where nothing is known. */
export const NOTHING = '-'

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

export function stateInColour(state: JobState, paint: Colors): string {
  return (paint[COLOURS[state]] as (text: string) => string)(state)
}

/** `480/1500 (32 %)`, `step 480`, or nothing. */
export function progressInWords(progress: ProgressView | null): string {
  if (progress === null || progress.step === null) return NOTHING
  const { step, stepsTotal, percent } = progress
  if (stepsTotal === null) return `step ${step}`
  return percent === null ? `${step}/${stepsTotal}` : `${step}/${stepsTotal} (${Math.floor(percent)} %)`
}

/** Where a job was asked to run, and where it does when that is something else. */
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

/** How long ago, in one unit: `5m`, `3d`. */
export function age(sinceMs: number, nowMs: number): string {
  return formatDuration(nowMs - sinceMs).split(' ')[0]!
}

/** How long an attempt has run, or ran. */
export function attemptTime({ launchedAtMs, endedAtMs }: AttemptView, nowMs: number): string {
  return launchedAtMs === null ? NOTHING : formatDuration((endedAtMs ?? nowMs) - launchedAtMs)
}

/** Why an attempt is in its state, without what the state says already. */
export function attemptReason({ state, reason }: Pick<AttemptView, 'state' | 'reason'>): string {
  return reason.startsWith(`${state}: `) ? reason.slice(state.length + 2) : reason
}

/** Cut to a width, so that one long sentence does not tear a table apart. */
export function clip(text: string, width: number): string {
  const line = text.replace(/\s+/g, ' ')
  return line.length > width ? `${line.slice(0, width - 1)}…` : line
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`
}

/** The state of a checkpoint for people, who need not tell the two kinds of provisional apart. */
export function checkpointState(state: CheckpointState): 'complete' | 'provisional' {
  return state === 'complete' ? state : 'provisional'
}

/** The step of a checkpoint; a running number is none. */
export function knownStep(checkpoint: Checkpoint | null): number | null {
  return checkpoint === null || checkpoint.isStepKnown === false ? null : checkpoint.step
}

export function stepInWords(checkpoint: Checkpoint): string {
  const step = knownStep(checkpoint)
  return step === null ? 'step unknown' : `step ${step}`
}
