import { Dice } from '../worlds/dice'

/** How a machine is taken away: at once, after the provider's notice, or after an order to drain. */
export type Manner = 'kill' | 'notice' | 'drain'

/** One interruption that is planned: so long after the nth note of a kind. */
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
}

const LATE_MS = 3_000
const WINDOW_MS = [2_500, 9_000] as const

/** A life's interruptions. Their moments are chosen to hurt: mostly in the middle of a save or shortly after it. */
export function strikesOf(dice: Dice, count: number, saveMs: number): Strike[] {
  return Array.from({ length: count }, () => ({ ...momentOf(dice, saveMs), ...mannerOf(dice) }))
}

function momentOf(dice: Dice, saveMs: number): Pick<Strike, 'after' | 'nth' | 'delayMs'> {
  const throwOf = dice.next()
  const nth = dice.oneOf([1, 1, 2, 2, 3])
  if (throwOf < 0.45) return { after: 'saving', nth, delayMs: dice.next() * saveMs * 1.1 }
  if (throwOf < 0.7) return { after: 'saved', nth, delayMs: dice.next() * 700 }
  if (throwOf < 0.9) return { after: 'saved', nth, delayMs: 700 + dice.next() * (LATE_MS - 700) }
  return { after: 'started', nth: 1, delayMs: dice.next() * 1_500 }
}

function mannerOf(dice: Dice): Pick<Strike, 'manner' | 'windowMs'> {
  const throwOf = dice.next()
  if (throwOf < 0.65) return { manner: 'kill', windowMs: 0 }
  return { manner: throwOf < 0.85 ? 'notice' : 'drain', windowMs: dice.between(...WINDOW_MS) }
}
