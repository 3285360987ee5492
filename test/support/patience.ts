import { availableParallelism, loadavg } from 'node:os'

/** The name of the setting. It also holds for every process that a test starts. */
export const PATIENCE_SETTING = 'CRUCIBLE_TEST_PATIENCE'
/** A machine that is slower than this is not one to test on. */
const DERIVED_MAX = 4

/**
 * By how much everything may take longer than on an idle machine: what the setting says (at least 1), and without it the processes
 * that wanted each processor in the last minute, from 1 to 4.
 */
export function patienceOf(setting: string | undefined, processesPerCore: number): number {
  if (setting === undefined || setting === '') return Math.min(DERIVED_MAX, Math.max(1, processesPerCore))
  const factor = Number(setting)
  if (factor >= 1 && Number.isFinite(factor)) return factor
  throw new Error(
    `${PATIENCE_SETTING}=${setting}: must be a number of at least 1. Unset it, or set 1 or more.`,
  )
}

export function processesPerCore(): number {
  return loadavg()[0]! / availableParallelism()
}

/** Read once, when the test file or the program starts: all limits of a file grow by the same factor. */
const PATIENCE = patienceOf(process.env[PATIENCE_SETTING], processesPerCore())

/**
 * The longest that something may take here that takes at most this long on an idle machine. Only for upper limits of real time: the
 * least that a test must wait stays what it is. A whole number of milliseconds, as timers and documents want it.
 */
export function patient(limitMs: number): number {
  return Math.ceil(limitMs * PATIENCE)
}
