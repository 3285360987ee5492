/** Shell texts: their simple commands, as words, with the variables that they set. */
import { shellCommands } from '../../../core/shell'

export interface Command {
  /** Words without their quotes, with `$` marked by them. */
  words: string[]
  /** The array that the words are assigned to: `ARGS=(--lr 0.1)`. */
  array: string | undefined
  line: number
  text: string
}

/** Variables of a shell; an array has several words. */
export type Variables = Map<string, string | readonly string[]>

/** Markers for a `$` between double quotes, whose value stays one word, and for a literal `$`. */
const QUOTED = '\u0001'
const LITERAL = '\u0002'

/** The simple commands of a shell text, without redirections. */
export function commandsOf(text: string): Command[] {
  const rows = text.split('\n')
  return shellCommands(text).map(({ words: written, line }) => {
    const [first = ''] = written
    const array = written.length === 1 ? /^(\w+\+?)=\(([^]*)\)$/.exec(first) : null
    const words = array === null ? written : shellCommands(array[2]!).flatMap((inner) => inner.words)
    const plain = words.filter(
      (word, at) => !REDIRECTION.test(word) && !OPEN_REDIRECTION.test(words[at - 1] ?? ''),
    )
    return { words: plain.map(unquoted), array: array?.[1], line, text: rows[line - 1]!.trim() }
  })
}

/** `2>&1`, `>log`, and `>` before a name. */
const REDIRECTION = /^(?:\d*|&)[<>](?!<)/
const OPEN_REDIRECTION = /^(?:\d*|&)(?:>>?|<)$/

/** A word without its quotes. */
function unquoted(written: string): string {
  let word = ''
  let quote = ''
  for (let at = 0; at < written.length; at += 1) {
    const letter = written[at]!
    if (letter === '\\' && quote !== "'" && at + 1 < written.length) {
      at += 1
      word += written[at] === '$' ? LITERAL : written[at]!
    } else if (letter === quote) quote = ''
    else if (quote === '' && (letter === '"' || letter === "'")) quote = letter
    else word += letter !== '$' ? letter : quote === '"' ? QUOTED : quote === "'" ? LITERAL : '$'
  }
  return word
}

interface Shell {
  variables: Variables
  args: readonly string[]
}

/** The words of a command with the values of its variables. */
export function expanded(words: readonly string[], shell: Shell): string[] {
  const isAssigned = isAssignment(words[0] ?? '') || words[0] === 'export'
  return words.flatMap((word) =>
    // The value of an assignment stays one word.
    isAssigned && isAssignment(word)
      ? [substituted(word.split('$').join(QUOTED), shell).join(' ')]
      : substituted(word, shell),
  )
}

/** Keeps `NAME=value`, `NAME+=value` and `NAME=(value value)`. */
export function assign(variables: Variables, name: string, value: string | readonly string[]): void {
  if (lengthOf(value) > LENGTH_MAX) return void variables.delete(name)
  if (!name.endsWith('+')) return void variables.set(name, value)
  const before = variables.get(name.slice(0, -1)) ?? []
  const sum =
    typeof before === 'string' && typeof value === 'string' ? before + value : [before, value].flat()
  variables.set(name.slice(0, -1), sum)
}

/** A longer value is not known, and neither is a word in which it would stand: doubled often enough, it would exhaust the memory. */
const LENGTH_MAX = 100_000

const lengthOf = (value: string | readonly string[]): number =>
  typeof value === 'string' ? value.length : value.reduce((sum, { length }) => sum + length + 1, 0)

/** Whether a word is `NAME=...`. */
export function isAssignment(word: string): boolean {
  const at = word.indexOf('=')
  const name = word.slice(0, word[at - 1] === '+' ? at - 1 : at)
  return at > 0 && name !== '' && [...name].every(isNameLetter)
}

/**
 * Returns the words of one word after substitution: `$NAME`, `${NAME}`, `${NAME:-default}`, `${NAME[@]}`, `$1` and `$@`, as far as they are
 * known.
 */
function substituted(word: string, shell: Shell): string[] {
  const words: string[] = []
  // An unquoted word whose variables are all empty is dropped.
  let current = word === '' ? '' : undefined
  let substitutedLength = 0
  for (let at = 0; at < word.length; at += 1) {
    const letter = word[at]!
    if (letter !== '$' && letter !== QUOTED) {
      current = (current ?? '') + (letter === LITERAL ? '$' : letter)
      continue
    }
    const isBraced = word[at + 1] === '{'
    const from = at + (isBraced ? 2 : 1)
    let to = from
    if (word[from] === '@' || word[from] === '*') to += 1
    else while (to < word.length && (isBraced ? word[to] !== '}' : isNameLetter(word[to]!))) to += 1
    const end = isBraced ? to : to - 1
    const known = valueOf(word.slice(from, to), shell)
    substitutedLength += known === undefined ? 0 : lengthOf(known)
    const isKnown = known !== undefined && substitutedLength <= LENGTH_MAX
    const value = isKnown ? known : `$${word.slice(at + 1, end + 1)}`
    at = end
    const parts = typeof value !== 'string' ? value : letter === QUOTED ? [value] : fieldsOf(value)
    parts.forEach((part, index) => {
      if (index > 0) words.push(current ?? '')
      current = (index > 0 ? '' : (current ?? '')) + part
    })
  }
  return current === undefined ? words : [...words, current]
}

const fieldsOf = (text: string): string[] => text.split(/\s+/).filter((field) => field !== '')

/** Returns the value of the expression between braces; `undefined` if it is unknown. */
function valueOf(expression: string, { variables, args }: Shell): string | readonly string[] | undefined {
  if (expression === '@' || expression === '*') return args
  const at = expression.search(/:?[-=]/)
  const name = (at === -1 ? expression : expression.slice(0, at)).replace(/\[[@*]\]$/, '')
  const known = variables.get(name) ?? args[Number(name) - 1]
  if (at === -1 || (known !== undefined && known.length > 0)) return known
  const operator = expression[at] === ':' ? expression.slice(at, at + 2) : expression[at]!
  const fallback = expression.slice(at + operator.length)
  if (operator.endsWith('=')) variables.set(name, fallback)
  return fallback
}

function isNameLetter(letter: string): boolean {
  return letter === '_' || (letter >= '0' && letter <= '9') || letter.toLowerCase() !== letter.toUpperCase()
}
