import { MINUTE_MS, SECOND_MS } from '../core/time/time'
import {
  habitsOf,
  hasCome,
  mayGiveUp,
  mostTelling,
  noticeMs,
  patienceMs,
  strikeOf,
  trainingSinceMs,
  type Habits,
  type Situation,
} from './moments'
import {
  isDone,
  lastOf,
  type RehearsedLife,
  type OutsideFile,
  type RehearsalFacts,
  type Strike,
  type StrikeDone,
} from './seen'

import type { AttemptWatch } from './watch'
import { Life, type Attended, type RehearsalOptions } from './life'

/** Largest fraction of the time for the undisturbed stretch. */
const UNDISTURBED_PART = 0.4
/** Number of saves that are enough, unless the program is about to end. */
const SAVES_ENOUGH = 6
/** Evidence that a last attempt has resumed: saves, or this much time without any. */
const LAST_SAVES = 2
const LAST_WITHOUT_SAVES_MS = 5 * SECOND_MS
/** A draining machine is gone this long after its window at the latest; other backends need this long to confirm it. */
const DRAIN_SLACK_MS = { folder: 10 * SECOND_MS, store: MINUTE_MS } as const

/** Runs the program undisturbed for a while, then again with interruptions. */
export async function rehearse(options: RehearsalOptions): Promise<RehearsalFacts> {
  const { now, directory, say } = options
  const beganAtMs = now()
  say('Running undisturbed, to learn how the program saves.')
  const first = await new Undisturbed(options, beganAtMs).live()
  const { life: undisturbed, habits, outside } = first
  const [begun] = undisturbed.attempts
  const startMs = Math.max(0, (begun?.steps[0]?.atMs ?? begun?.saved[0]?.savedAtMs ?? beganAtMs) - beganAtMs)
  const hasFailed = lastOf(undisturbed)?.end?.outcome === 'failed'
  const interrupted: RehearsedLife = hasFailed
    ? { attempts: [], outputs: {} }
    : await new Interrupted(options, beganAtMs, { habits, startMs, isToEnd: isDone(undisturbed) }).live()
  return {
    directory,
    undisturbed,
    interrupted,
    outside,
    sight: options.host.sight,
    tookMs: now() - beganAtMs,
  }
}

interface Taught {
  life: RehearsedLife
  habits: Habits
  outside: OutsideFile[]
}

class Undisturbed extends Life {
  constructor(options: RehearsalOptions, beganAtMs: number) {
    super(options, 'undisturbed', beganAtMs)
  }

  live(): Promise<Taught> {
    return this.asJob(() => this.learn())
  }

  private async learn(): Promise<Taught> {
    const { now, forMs } = this.options
    const endAtMs = this.beganAtMs + forMs * UNDISTURBED_PART
    let isTaken = false
    const attended = await this.attempt(async (at, machine) => {
      const isLate = now() >= endAtMs
      const hasTaught = at.savedCount >= SAVES_ENOUGH && !this.isEndNear(at, endAtMs)
      if (isTaken || !(isLate || hasTaught)) return
      isTaken = true
      await this.stop(machine)
    })
    if (attended === undefined) {
      const habits = habitsOf([], { firstStepAtMs: null, runningSinceMs: null })
      return { life: { attempts: [], outputs: {} }, habits, outside: [] }
    }
    const { watch } = attended
    const life = { attempts: this.attempts, outputs: watch.outputs, kept: watch.kept }
    return { life, habits: habitsOf(watch.savedSoFar, watch), outside: watch.outside }
  }

  /** Whether the program, at its pace, ends within the time of this stretch. */
  private isEndNear(watch: AttemptWatch, endAtMs: number): boolean {
    const { part, firstStepAtMs } = watch
    if (part === null || part <= 0 || firstStepAtMs === null) return false
    const soFarMs = this.options.now() - firstStepAtMs
    return firstStepAtMs + soFarMs / part <= endAtMs
  }
}

class Interrupted extends Life {
  private struck = 0

  constructor(
    options: RehearsalOptions,
    beganAtMs: number,
    private readonly known: { habits: Habits; isToEnd: boolean; startMs: number },
  ) {
    super(options, 'interrupted', beganAtMs)
    const endAtMs = options.now() + this.proofNeedsMs()
    const mostMs = Math.max(options.forMs, options.mostMs ?? 0)
    this.endAtMs = Math.max(this.endAtMs, Math.min(endAtMs, beganAtMs + mostMs))
  }

  /** Time that the program needs to show a resume from one checkpoint; 0 if no save was seen. */
  private proofNeedsMs(): number {
    const { habits } = this.known
    if (habits.firstSaveMs === null) return 0
    return (
      patienceMs('during-save', habits, this.options.host.sight) + this.lastNeedsMs() + 2 * this.known.startMs
    )
  }

  live(): Promise<RehearsedLife> {
    return this.asJob(() => this.bear())
  }

  /** Makes the interruptions, and watches the attempt after the last one. */
  private async bear(): Promise<RehearsedLife> {
    let outputs: RehearsedLife['outputs'] = {}
    let kept: RehearsedLife['kept']
    for (;;) {
      const strike = this.nextStrike()
      const attended = await (strike === undefined ? this.last() : this.struckAttempt(strike))
      if (attended === undefined) return { attempts: this.attempts, outputs, kept }
      const { seen, watch } = attended
      outputs = watch.outputs
      kept = watch.kept
      const isInterrupted = seen.strike !== null && (seen.end === null || seen.end.outcome === 'stopped')
      if (!isInterrupted) return { attempts: this.attempts, outputs, kept }
    }
  }

  /** Returns the next strike; none after enough of them, or if the remaining time is needed to see a resume. */
  private nextStrike(): Strike | undefined {
    const { interruptions, now } = this.options
    if (this.struck >= interruptions) return undefined
    const { sight } = this.options.host
    const isOnly = this.struck === 0 && this.isTimeForOneOnly()
    const strike = isOnly ? mostTelling(sight) : strikeOf(this.struck, sight)
    const needsMs =
      patienceMs(strike.moment, this.known.habits, sight) + this.lastNeedsMs() + 2 * this.known.startMs
    // At least one interruption is required.
    return this.struck > 0 && now() + needsMs > this.endAtMs ? undefined : strike
  }

  /** Whether only one more interruption fits, which needs a checkpoint to resume from. */
  private isTimeForOneOnly(): boolean {
    const { interruptions, now, host } = this.options
    const [first, second] = [strikeOf(0, host.sight), strikeOf(1, host.sight)].map(({ moment }) =>
      patienceMs(moment, this.known.habits, host.sight),
    )
    const needsMs = first! + second! + this.lastNeedsMs() + 3 * this.known.startMs
    return interruptions === 1 || now() + needsMs > this.endAtMs
  }

  private lastNeedsMs(): number {
    const { intervalMs, firstSaveMs } = this.known.habits
    return Math.max(LAST_WITHOUT_SAVES_MS, 1.5 * (intervalMs ?? firstSaveMs ?? 0))
  }

  private async struckAttempt(strike: Strike): Promise<Attended | undefined> {
    const { host, now, say } = this.options
    const { habits } = this.known
    let goneByMs = Infinity
    let isKilled = false
    return this.attempt(async (watch, machine) => {
      const nowMs = now()
      if (watch.seen.strike !== null) {
        if (nowMs < goneByMs || isKilled) return
        isKilled = true
        return host.strike(machine, null)
      }
      const situation = this.situationOf(watch)
      const isAtMoment = watch.isRunning && hasCome(strike.moment, situation)
      const beganAtMs = trainingSinceMs(situation)
      const patientUntilMs =
        beganAtMs !== null && mayGiveUp(strike.moment, habits, watch.savedSoFar)
          ? beganAtMs + patienceMs(strike.moment, habits, host.sight)
          : Infinity
      const limitMs = Math.min(patientUntilMs, this.endAtMs - this.lastNeedsMs() - this.known.startMs)
      if (!isAtMoment && nowMs < limitMs) return
      if (host.sight === 'store' && !watch.isRunning) {
        // Interrupting a remote machine before its program runs shows nothing.
        if (nowMs >= this.endAtMs) await this.stop(machine)
        return
      }
      const given = strike.manner === 'notice' ? noticeMs(habits) : 0
      const done: StrikeDone = { ...strike, isAtMoment, atMs: nowMs, noticeMs: given }
      watch.seen.strike = done
      goneByMs = nowMs + given + DRAIN_SLACK_MS[host.sight]
      this.struck += 1
      await host.strike(machine, strike.manner === 'notice' ? given : null)
      say(`Interruption ${this.struck}: ${inWords(done)}.`)
    })
  }

  private situationOf({ firstStepAtMs, runningSinceMs, changes, savedSoFar }: AttemptWatch): Situation {
    const { host, now } = this.options
    return {
      nowMs: now(),
      firstStepAtMs,
      runningSinceMs,
      changes,
      habits: this.known.habits,
      savedAtMs: savedSoFar.map(({ savedAtMs }) => savedAtMs),
      sight: host.sight,
    }
  }

  /** Watches the attempt that shows whether the program resumes: until it ends if that is near, otherwise until it has saved again. */
  private async last(): Promise<Attended | undefined> {
    const { now } = this.options
    let isTaken = false
    return this.attempt(async (watch, machine) => {
      if (isTaken) return
      const began = trainingSinceMs(this.situationOf(watch))
      const hasShown =
        watch.savedCount >= LAST_SAVES ||
        (watch.savedCount === 0 &&
          this.known.habits.intervalMs === null &&
          began !== null &&
          now() - began >= LAST_WITHOUT_SAVES_MS)
      if (now() < this.endAtMs && (this.known.isToEnd || !hasShown)) return
      isTaken = true
      await this.stop(machine)
    })
  }
}

const MOMENT_WORDS = {
  'before-first-save': 'before the first save',
  'during-save': 'in the middle of a save',
  'after-save': 'just after a save',
  'between-saves': 'between two saves',
} as const

/** An interruption, as a clause. */
function inWords({ moment, manner, isAtMoment }: StrikeDone): string {
  const when = isAtMoment ? MOMENT_WORDS[moment] : 'at some moment'
  return `${when}, ${manner === 'kill' ? 'without notice' : 'with notice'}`
}
