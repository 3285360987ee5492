import { setTimeout as sleep } from 'node:timers/promises'
import { patient } from './patience'

const LOOK_EVERY_MS = 20

/** Waits until something is so; throws, saying what, when it is not within the limit, which is for an idle machine. */
export async function until(isSo: () => boolean | Promise<boolean>, limitMs = 20_000): Promise<void> {
  const patienceMs = patient(limitMs)
  const started = performance.now()
  while (!(await isSo())) {
    if (performance.now() - started > patienceMs)
      throw new Error(`not so within ${patienceMs} ms: ${isSo.toString()}`)
    await sleep(LOOK_EVERY_MS)
  }
}
