import { MINUTE_MS, SECOND_MS } from '../core/time/time'
import type { Sight } from './host'
import type { RehearsedCheckpoint, Moment, Strike } from './seen'

/** The program's saves, as an undisturbed stretch shows them. */
export interface Habits {
  /** Time between saves; null if fewer than two were seen. */
  intervalMs: number | null
  /** Duration of a save. */
  saveMs: number
  /** Time from the start of the training to the first save; null if none was seen. */
  firstSaveMs: number | null
  /** Time from the start of the command to the start of its training; null if a step shows the start before the first save. */
  loadMs: number | null
  /** Whether a checkpoint was seen complete. */
  isProven: boolean
}

/** Facts about an attempt that show when its training starts. */
interface Start {
  firstStepAtMs: number | null
  /** Time at which the command was first seen running. */
  runningSinceMs: number | null
}

/** Facts about the attempt to interrupt. */
export interface Situation extends Start {
  nowMs: number
  savedAtMs: readonly number[]
  /** Times of observed changes in the checkpoint directory. */
  changes: readonly number[]
  habits: Habits
  sight: Sight
}

/** Strikes in turn, the rarest last. Enough interruptions cover all of them. */
const HERE: readonly Strike[] = [
  { moment: 'before-first-save', manner: 'kill' },
  { moment: 'during-save', manner: 'kill' },
  { moment: 'before-first-save', manner: 'kill' },
  { moment: 'after-save', manner: 'kill' },
  { moment: 'between-saves', manner: 'notice' },
]

/** Strikes on another machine, where the start of a save is invisible, and each interruption costs another machine start. */
const ELSEWHERE: readonly Strike[] = [
  { moment: 'after-save', manner: 'kill' },
  { moment: 'before-first-save', manner: 'kill' },
  { moment: 'between-saves', manner: 'notice' },
]

export function strikeOf(index: number, sight: Sight): Strike {
  const strikes = sight === 'folder' ? HERE : ELSEWHERE
  return strikes[index % strikes.length]!
}

/** Returns the most informative strike for a single interruption: the program has a checkpoint to resume from. */
export function mostTelling(sight: Sight): Strike {
  return sight === 'folder' ? HERE[1]! : ELSEWHERE[0]!
}

export const INTERRUPTIONS_DEFAULT = HERE.length
export const INTERRUPTIONS_DEFAULT_ELSEWHERE = ELSEWHERE.length

/** Fractions of the time between two saves, or until the first one. */
const LATE_IN_INTERVAL = 0.6
const MIDDLE = 0.5
/** A program without any visible save is interrupted this long after its first step. */
const BLIND_MS = 3 * SECOND_MS
/** Time after which an instantaneous save is over. */
const SEEN_OVER_MS = 30
const WRITTEN_APART_MS = 20
/**
 * Least training time before an interruption on another machine, where steps are seen with each beat, once per second: afterwards, a
 * program that ignores its checkpoint is seen again at earlier steps.
 */
const TRAINED_LEAST_MS = 5 * SECOND_MS
/** A program that loads its first checkpoint differs from one that loads its newest only after a second save. */
const SAVES_BEFORE = 2

/**
 * Returns the time at which an attempt began to train: a program may take longer to load than to save several times. Null while it
 * loads.
 */
export function trainingSinceMs(at: Start & Pick<Situation, 'savedAtMs' | 'habits'>): number | null {
  const { firstStepAtMs, runningSinceMs, savedAtMs, habits } = at
  const shownAtMs = Math.min(firstStepAtMs ?? Infinity, savedAtMs[0] ?? Infinity)
  if (shownAtMs < Infinity) return shownAtMs
  return runningSinceMs === null || habits.loadMs === null ? null : runningSinceMs + habits.loadMs
}

/** Whether the moment of the interruption has come. */
export function hasCome(moment: Moment, at: Situation): boolean {
  const { nowMs, habits, savedAtMs } = at
  const began = trainingSinceMs(at)
  if (began === null || nowMs < began) return false
  if (at.sight === 'store' && nowMs - began < TRAINED_LEAST_MS) return false
  const interval = habits.intervalMs ?? habits.firstSaveMs
  if (interval === null) return nowMs - began >= BLIND_MS
  switch (moment) {
    case 'before-first-save':
      return nowMs - began >= interval * LATE_IN_INTERVAL || savedAtMs.length > 0
    case 'during-save': {
      const start = saveBegun(at)
      return (
        savedAtMs.length >= SAVES_BEFORE && start !== undefined && nowMs - start >= habits.saveMs * MIDDLE
      )
    }
    case 'after-save': {
      if (at.sight === 'store') return savedAtMs.length >= SAVES_BEFORE
      // A program may also write into the directory while it loads.
      const start = at.changes.find((atMs) => atMs >= began)
      return start !== undefined && nowMs - start >= habits.saveMs + SEEN_OVER_MS
    }
    case 'between-saves':
      return savedAtMs.length > 0 && nowMs - savedAtMs.at(-1)! >= interval * MIDDLE
  }
}

/** Start of the save after the last complete one. */
function saveBegun({ savedAtMs, changes }: Situation): number | undefined {
  const last = savedAtMs.at(-1)
  return last === undefined
    ? undefined
    : changes.find((atMs) => atMs > last + WRITTEN_APART_MS + LOOK_SLACK_MS)
}

/** Delay until a change is seen. */
const LOOK_SLACK_MS = 150

/** Number of save intervals that may pass until a moment comes. */
const ROUNDS: Readonly<Record<Moment, number>> = {
  'before-first-save': 2.5,
  'during-save': 4.5,
  'after-save': 2.5,
  'between-saves': 3.5,
}

/** Returns how long to wait for a moment, once the program trains, before another one is used. */
export function patienceMs(moment: Moment, habits: Habits, sight: Sight): number {
  const { intervalMs, firstSaveMs, saveMs } = habits
  const interval = intervalMs ?? firstSaveMs ?? BLIND_MS
  // On another machine both moments wait for a second save.
  const rounds = ROUNDS[sight === 'store' && moment === 'after-save' ? 'during-save' : moment]
  const leastMs = sight === 'store' ? 2 * TRAINED_LEAST_MS : 2 * SECOND_MS
  return Math.max(leastMs, rounds * interval + 2 * saveMs)
}

/**
 * Whether patience may end: an attempt without a checkpoint leaves nothing to resume from, unless its moment is before the first one or
 * the program saves nothing.
 */
export function mayGiveUp(
  moment: Moment,
  { firstSaveMs, isProven }: Habits,
  saved: readonly Pick<RehearsedCheckpoint, 'state'>[],
): boolean {
  if (moment === 'before-first-save' || firstSaveMs === null) return true
  return saved.some(({ state }) => state === 'complete' || !isProven)
}

const NOTICE_LEAST_MS = 10 * SECOND_MS
/** Notices of providers. */
const NOTICE_MOST_MS = 2 * MINUTE_MS

/** A notice long enough for a save, and at most a provider's. */
export function noticeMs({ intervalMs, saveMs }: Habits): number {
  return Math.min(NOTICE_MOST_MS, Math.max(NOTICE_LEAST_MS, 2 * (intervalMs ?? 0) + 4 * saveMs))
}

export function habitsOf(saved: readonly RehearsedCheckpoint[], start: Start): Habits {
  const times = saved.map(({ savedAtMs }) => savedAtMs)
  const gaps = times.slice(1).map((atMs, index) => atMs - times[index]!)
  const [first] = times
  const intervalMs = median(gaps.filter((gap) => gap > 0))
  const { firstStepAtMs } = start
  const isStepFirst = firstStepAtMs !== null && (first === undefined || firstStepAtMs <= first)
  const runningSinceMs = start.runningSinceMs ?? firstStepAtMs ?? first ?? 0
  // Without a step, the training began one interval before the first save at the latest; without an interval, with the command.
  const quietMs = first === undefined ? 0 : first - runningSinceMs
  const loadMs = isStepFirst ? null : intervalMs === null ? 0 : Math.max(0, quietMs - intervalMs)
  return {
    intervalMs,
    loadMs,
    isProven: saved.some(({ state }) => state === 'complete'),
    saveMs: median(saved.flatMap(({ saveMs }) => (saveMs === undefined ? [] : [saveMs]))) ?? 0,
    firstSaveMs:
      first === undefined
        ? null
        : loadMs === null
          ? Math.max(0, first - firstStepAtMs!)
          : Math.max(0, quietMs - loadMs),
  }
}

export function median(values: readonly number[]): number | null {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? null
}
