import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../../core/time/time'
import { DEFAULT_TIMING, type Timing } from '../../core/time/timing'
import type { CloudProvider } from '../clouds/provider'
import { Dice } from '../kit/dice'

/** What goes out. `server`: the Temporal server alone. `all`: Crucible too. `restarts`: the server, briefly and repeatedly. */
export const OUTAGES = ['server', 'all', 'restarts'] as const
export type Outage = (typeof OUTAGES)[number]

export interface BlackoutPlan {
  seed: number
  provider: CloudProvider
  outage: Outage
  /** How long nothing answers; of each restart where there are several. */
  downMs: number[]
  /** Stands for an hour. */
  hourMs: number
  jobs: JobPlan[]
}

export interface JobPlan {
  /** Missing for one that is at work when it strikes: how long before it is submitted. */
  submittedBeforeMs?: number
  /** So that some are done meanwhile, and most are at work afterwards. */
  stepsPerSecond: number
}

export const STEPS = 100
/** These are planned, launched or started when it strikes. */
const LATE_CHANCE = 0.3
export const LATE_MAX_MS = 4 * SECOND_MS
/** What a job that outlives the blackout still works after it. */
const AFTERWARDS_MS = [45 * SECOND_MS, 75 * SECOND_MS] as const
const SHORT_CHANCE = 0.2
/** Around the ten seconds after which the SDK gives up reporting. */
const RESTART_MS = [500, 15 * SECOND_MS] as const

/** The plan of a seed. Any row of seeds goes through the outages at one provider, and then at the next. */
export function blackoutOf(
  seed: number,
  { providers, jobs, hourMs }: { providers: readonly CloudProvider[]; jobs: number; hourMs: number },
): BlackoutPlan {
  const provider = providers[Math.floor(seed / OUTAGES.length) % providers.length]!
  const dice = new Dice(seed)
  const outage = OUTAGES[seed % OUTAGES.length]!
  const downMs =
    outage === 'restarts'
      ? Array.from({ length: dice.between(2, 4) }, () => dice.between(...RESTART_MS))
      : [hourMs]
  const outlastsMs = downMs.reduce((sum, each) => sum + each + PAUSE_MS, 0)
  return {
    seed,
    provider,
    outage,
    downMs,
    hourMs,
    jobs: Array.from({ length: jobs }, () => {
      const worksMs = dice.chance(SHORT_CHANCE)
        ? dice.between(SECOND_MS, outlastsMs)
        : outlastsMs + dice.between(...AFTERWARDS_MS)
      return {
        submittedBeforeMs: dice.chance(LATE_CHANCE) ? dice.between(0, LATE_MAX_MS) : undefined,
        stepsPerSecond: (STEPS * SECOND_MS) / worksMs,
      }
    }),
  }
}

/** Between two restarts. */
export const PAUSE_MS = 3 * SECOND_MS

/** The usual durations of an attempt on that scale; those of polls are what they are. */
export function timingFor(hourMs: number): Partial<Timing> {
  const scaled = (ms: number): number => Math.round((ms * hourMs) / HOUR_MS)
  const { leaseMs, silenceMs, drainMs, powerOffMs, startWithinMs } = DEFAULT_TIMING
  return {
    leaseMs: scaled(leaseMs),
    silenceMs: scaled(silenceMs),
    // One hour may be a minute here, but a drain takes its seconds.
    drainMs: Math.max(drainMs / 60, scaled(drainMs)),
    powerOffMs: Math.max(200, scaled(powerOffMs)),
    startWithinMs: Math.max(MINUTE_MS, scaled(startWithinMs)),
    beatMs: SECOND_MS,
    observeMs: SECOND_MS,
    goneConfirmMs: SECOND_MS,
  }
}
