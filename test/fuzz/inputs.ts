/** Texts of strangers, drawn from seeds: samples that a reader knows, changed, and its tokens repeated and nested. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Dice } from '../kit/dice'

/** A text in short: parts that are repeated. */
type Form = readonly (readonly [text: string, times: number])[]

interface Source {
  /** Where the reader runs: the runner's code in Python, all other code in Node. */
  in: 'node' | 'python'
  /** Whether the product reads each text in a thread with limits, which is lost when the stack is exhausted. */
  isInThread?: boolean
  /** Valid texts. */
  samples: readonly string[]
  /** Pieces that mean something to the reader. */
  tokens: readonly string[]
  /** Texts that once took too long, or failed. */
  kept: readonly Form[]
}

export const SOURCES = JSON.parse(readFileSync(join(__dirname, 'corpus.json'), 'utf8')) as Readonly<
  Record<string, Source>
>

const CHARS_MAX = 30_000
/** What any reader may stumble over. */
const ODD = [
  '',
  ' ',
  '\n',
  '\t',
  '\r',
  '\0',
  '\\',
  '"',
  "'",
  '\uFFFD',
  '\uD800',
  'é',
  '😀',
  '\u2028',
  '-1',
  '1e999',
  '9'.repeat(400),
  'NaN',
]

/** The texts that are kept. */
export function keptOf(reader: string): string[] {
  return SOURCES[reader]!.kept.map((form) => form.map(([text, times]) => text.repeat(times)).join(''))
}

/** The text of a seed; the same on every machine. */
export function textOf(reader: string, seed: number): string {
  const dice = new Dice(seed)
  const source = SOURCES[reader]!
  const piece = (): string => dice.oneOf(dice.chance(0.85) ? source.tokens : ODD)
  const repeated = (): string => {
    const unit = Array.from({ length: dice.between(1, 3) }, piece).join('')
    return unit.repeat(dice.oneOf([1, 2, 17, 200, 2_000])).slice(0, CHARS_MAX)
  }
  let text = dice.chance(0.5) ? dice.oneOf(source.samples) : ''
  for (let change = dice.between(1, 6); change > 0; change -= 1) {
    const at = dice.between(0, text.length)
    const end = dice.chance(0.3) ? Math.min(text.length, at + dice.between(1, 40)) : at
    const added = dice.chance(0.2) ? text.slice(at, at + 200).repeat(dice.between(1, 50)) : repeated()
    text = (text.slice(0, at) + added + text.slice(end)).slice(0, CHARS_MAX)
  }
  return text
}
