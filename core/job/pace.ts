import type { Beat } from '../documents'

/** The part of a beat that shows the pace of its training. */
export type Paced = Partial<
  Pick<Beat, 'progress' | 'restoredFrom' | 'firstStep' | 'firstStepAtMs' | 'phases'>
>

/** Steps of the training that an attempt did, and the time that it took. */
export interface Pace {
  steps: number
  ms: number
}

/** Returns the pace; null if it is unknown: the program reports no steps, or none has followed the first one. */
export function paceOf(told: Paced): Pace | null {
  const { step = null, atMs = 0 } = told.progress ?? {}
  const from = firstStepOf(told)
  if (step === null || from === null || step <= from.step || atMs <= from.atMs) return null
  return { steps: step - from.step, ms: atMs - from.atMs }
}

/** Returns the step and the time at which the measurement of the pace begins. */
function firstStepOf({ firstStep, firstStepAtMs }: Paced): { step: number; atMs: number } | null {
  return firstStep == null || firstStepAtMs == null ? null : { step: firstStep, atMs: firstStepAtMs }
}

/** Start of the program by the runner's clock. */
export function runningSince({ phases = [] }: Paced): number | null {
  return phases.findLast(({ name }) => name === 'running')?.startedAtMs ?? null
}
