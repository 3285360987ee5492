/** Shell texts: their simple commands, as words, with the variables that they set. */

export interface Command {
  /** Words as they are written, with `$` marked by its quotes. */
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

/** The simple commands of a shell text, as words. */
export function commandsOf(text: string): Command[] {
  const commands: Command[] = []
  let words: string[] = []
  let array: string | undefined
  let word = ''
  let quote = ''
  let hasWord = false
  let line = 1
  let started = 1
  const rows = text.split('\n')
  const endWord = (): void => {
    if (hasWord) words.push(word)
    word = ''
    hasWord = false
  }
  const endCommand = (): void => {
    endWord()
    if (words.length > 0 || array !== undefined)
      commands.push({ words, array, line: started, text: rows[started - 1]!.trim() })
    words = []
    array = undefined
  }
  const add = (letters: string): void => {
    if (!hasWord && words.length === 0) started = line
    word += letters
    hasWord = true
  }
  for (let at = 0; at < text.length; at += 1) {
    const letter = text[at]!
    if (letter === '\n') line += 1
    if (quote !== '') {
      if (letter === quote) quote = ''
      else if (letter === '\\' && quote === '"' && at + 1 < text.length) word += literal(text[(at += 1)]!)
      else word += letter !== '$' ? letter : quote === '"' ? QUOTED : LITERAL
    } else if (letter === "'" || letter === '"') {
      add('')
      quote = letter
    } else if (letter === '\\') {
      at += 1
      if (text[at] === '\n') line += 1
      else add(literal(text[at] ?? ''))
    } else if (letter === '#' && !hasWord) {
      while (at + 1 < text.length && text[at + 1] !== '\n') at += 1
    } else if (letter === '(' && word.endsWith('=') && array === undefined && words.length === 0) {
      array = word.slice(0, -1)
      word = ''
      hasWord = false
    } else if (letter === ')' && array !== undefined) endCommand()
    else if (letter === '\n' && array !== undefined) endWord()
    else if (letter === '\n' || letter === ';' || letter === '&' || letter === '|') endCommand()
    else if (letter === ' ' || letter === '\t' || letter === '\r') endWord()
    else add(letter)
  }
  endCommand()
  return commands
}

const literal = (letter: string): string => (letter === '$' ? LITERAL : letter)

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
