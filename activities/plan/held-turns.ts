import type { PlanInput } from '../../core/activities'
import type { BackendAnswer } from '../../core/job/plan'
import { MINUTE_MS } from '../../core/time/time'
import { sha256 } from './asking'

/** The first in a line asks at least every 30 s. */
const FORGET_MS = MINUTE_MS
const DIGEST_LENGTH = 16

/**
 * Turns for places that are kept for an owner. They do not wait for older jobs of others, which may not use them: one of the owner's jobs
 * at a time may also ask, wherever it is in its line.
 */
export class HeldTurns {
  /** Owners for whom free places are kept, and when that was seen. */
  private readonly seenAtMs = new Map<string, number>()

  constructor(private readonly now: () => number) {}

  /** Remembers whose reservations have free places, from an answer to any job. */
  saw(answers: readonly BackendAnswer[]): void {
    for (const { reservation, availability } of answers.flatMap(({ offers }) => offers)) {
      const { hold, free = 0, namedByWaiting = 0 } = reservation ?? {}
      if (hold?.owner !== undefined && availability !== 'unavailable' && free > namedByWaiting)
        this.seenAtMs.set(hold.owner, this.now())
    }
  }

  /** Returns the requirements of the turn that a job may take. Jobs that name a reservation have a separate line. */
  turnOf({ resolved: { owner, spec } }: PlanInput, wish: string): string | undefined {
    if (owner === undefined || spec.reservation !== undefined) return undefined
    const seenAtMs = this.seenAtMs.get(owner) ?? -Infinity
    // The clock may have been set back.
    if (Math.abs(this.now() - seenAtMs) > FORGET_MS) return undefined
    return `${wish}+${sha256(owner).slice(0, DIGEST_LENGTH)}`
  }
}
