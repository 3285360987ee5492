import { Dice } from '../kit/dice'

/** How a machine is taken away: at once, after the provider's notice, or after an order to drain. */
type Manner = 'kill' | 'notice' | 'drain'

/** One planned interruption: this long after the nth note of a kind. */
export interface Strike {
  after: 'started' | 'saving' | 'saved'
  nth: number
  delayMs: number
  manner: Manner
  /** From the notice to the end of the machine; 0 for a kill. */
  windowMs: number
}

/** What was done to an attempt, by the clock of the notes. */
export interface Struck {
  attempt: number
  manner: Manner
  atMs: number
  /** When the machine was gone at the latest. */
  untilMs: number
  /** How long before that a save must have been finished to have arrived: longer on a busy machine. */
  settleMs: number
}

const LATE_MS = 3_000
const WINDOW_MS = [2_500, 9_000] as const

type Moment = Pick<Strike, 'after' | 'nth' | 'delayMs'>

/**
 * The moments that hurt, taken in turn, so that a few lives have all of them: before the first save, in the first one, in a later one,
 * shortly after one, and when one must just have arrived.
 */
const MOMENTS: readonly ((dice: Dice, saveMs: number) => Moment)[] = [
  (dice, saveMs) => ({ after: 'saving', nth: 1, delayMs: dice.next() * saveMs * 1.1 }),
  (dice, saveMs) => ({ after: 'saving', nth: dice.between(2, 3), delayMs: dice.next() * saveMs * 1.1 }),
  (dice) => ({ after: 'saved', nth: dice.between(1, 2), delayMs: dice.next() * 700 }),
  (dice) => ({ after: 'started', nth: 1, delayMs: dice.next() * 2_500 }),
  (dice, saveMs) => ({ after: 'saving', nth: 2, delayMs: dice.next() * saveMs * 1.1 }),
  (dice) => ({ after: 'saved', nth: dice.between(1, 3), delayMs: 700 + dice.next() * (LATE_MS - 700) }),
]

const MANNERS: readonly Manner[] = ['kill', 'notice', 'kill', 'kill', 'drain']

/** A life's interruptions. */
export function strikesOf(seed: number, count: number, saveMs: number): Strike[] {
  const dice = new Dice(seed)
  return Array.from({ length: count }, (_, index) => {
    const turn = seed * count + index
    const manner = MANNERS[turn % MANNERS.length]!
    const windowMs = manner === 'kill' ? 0 : dice.between(...WINDOW_MS)
    return { ...MOMENTS[turn % MOMENTS.length]!(dice, saveMs), manner, windowMs }
  })
}
