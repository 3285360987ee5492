import { setTimeout as sleep } from 'node:timers/promises'
import { patient } from './patience'

/** A look may take a request to a server in this process: between two looks it gets time to answer others, too. */
const LOOK_EVERY_MS = { min: 20, max: 200, shareOfTime: 0.1 }

/** Waits until something is so; throws, saying what, when it is not within the limit, which is for an idle machine. */
export async function until(isSo: () => boolean | Promise<boolean>, limitMs = 20_000): Promise<void> {
  const patienceMs = patient(limitMs)
  const started = performance.now()
  for (;;) {
    const lookedAt = performance.now()
    if (await isSo()) return
    const now = performance.now()
    if (now - started > patienceMs) throw new Error(`not so within ${patienceMs} ms: ${isSo.toString()}`)
    const { min, max, shareOfTime } = LOOK_EVERY_MS
    await sleep(Math.min(Math.max(min, (now - lookedAt) / shareOfTime), max))
  }
}
