import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../../../core/time/time'
import type { Parts } from '../../../planner/forecast/parts'
import { exactly, type Range } from '../../../planner/forecast/range'

export const sure = (value: number): Range => exactly(value, 'a test')

/** A start of 4 minutes (225 s and 15 s of restoring), 10 hours of work, 10 s of stop: nothing is uncertain, and nothing is lost. */
export function exactParts(changes: Partial<Parts> = {}): Parts {
  const rate = sure(0)
  return {
    wait: sure(20 * SECOND_MS),
    waitAgain: sure(50 * SECOND_MS),
    boot: sure(MINUTE_MS),
    image: sure(2 * MINUTE_MS),
    setup: sure(30 * SECOND_MS),
    fetch: sure(15 * SECOND_MS),
    restore: sure(15 * SECOND_MS),
    isResumed: false,
    work: { ms: 10 * HOUR_MS, fastMs: 10 * HOUR_MS, slowMs: 10 * HOUR_MS },
    workMs: 10 * HOUR_MS,
    duration: sure(1),
    speed: sure(1),
    saving: sure(0),
    everyMs: HOUR_MS,
    rate,
    shakyRate: rate,
    stop: sure(10 * SECOND_MS),
    price: sure(1),
    store: sure(1),
    ...changes,
  }
}
