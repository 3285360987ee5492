/** The simple commands of a shell text. */

/** A simple command, and the operator after it. */
export interface ShellCommand {
  /** Words as they are written, with their quotes. `$(...)`, `NAME=(...)` and `name()` stay parts of their words; other parentheses are words. */
  words: string[]
  text: string
  /** The line of its first word, from 1. */
  line: number
  after: '' | '\n' | ';' | '&' | '&&' | '|' | '||'
}

/** Splits a shell text into its commands. Comments and the texts for programs (`<<`) are left out. */
export function shellCommands(text: string): ShellCommand[] {
  const commands: ShellCommand[] = []
  /** The words that end the texts for programs, which begin on the next line. */
  const ends: string[] = []
  let words: string[] = []
  let [word, quote] = ['', '']
  let [start, depth, line, first] = [0, 0, 1, 1]
  const endWord = (): void => {
    if (word !== '') words.push(word)
    word = ''
  }
  const endCommand = (at: number, after: ShellCommand['after']): void => {
    endWord()
    if (words.length > 0) commands.push({ text: text.slice(start, at), words, line: first, after })
    words = []
    start = at + Math.max(1, after.length)
  }
  const add = (letters: string): void => {
    if (word === '' && words.length === 0) first = line
    word += letters
  }
  for (let at = 0; at < text.length; at++) {
    const char = text[at]!
    if (char === '\n') line++
    if (char === '\\' && quote !== "'") {
      at++
      if (text[at] === '\n') line++
      else add(char + (text[at] ?? ''))
    } else if (quote !== '' || char === '"' || char === "'") {
      quote = quote === '' ? char : quote === char ? '' : quote
      add(char)
    } else if (char === '#' && (depth > 0 ? isSpace(text[at - 1]) : word === '')) {
      at = endOfLine(text, at) - 1
    } else if (char === '(' && (depth > 0 || word !== '')) {
      depth++
      add(char)
    } else if (depth > 0) {
      if (char === ')') depth--
      add(char)
    } else if (char === '(' || char === ')') {
      endWord()
      add(char)
      endWord()
    } else if (text.startsWith('<<', at) && text[at + 2] !== '<') {
      const end = /^<<-?[ \t]*(["']?)([\w.-]+)\1/.exec(text.slice(at, at + HEREDOC_MAX))
      ends.push(end?.[2] ?? '')
      add(end?.[0] ?? '<<')
      at += (end?.[0].length ?? 2) - 1
      endWord()
    } else if (char === '&' && (text[at - 1] === '>' || text[at + 1] === '>')) add(char)
    else if (char === '&' || char === '|') {
      const after = text[at + 1] === char ? (`${char}${char}` as '&&' | '||') : char
      endCommand(at, after)
      at += after.length - 1
    } else if (char === '\n') {
      endCommand(at, char)
      for (const end of ends.splice(0)) {
        const next = afterText(text, { at: at + 1, end })
        line += text.slice(at + 1, next).split('\n').length - 1
        at = next - 1
        start = next
      }
    } else if (char === ';') endCommand(at, char)
    else if (isSpace(char)) endWord()
    else add(char)
  }
  endCommand(text.length, '')
  return commands
}

/** A longer word does not end a text. */
const HEREDOC_MAX = 200

const isSpace = (char: string | undefined): boolean =>
  char === undefined || char === ' ' || char === '\t' || char === '\r' || char === '\n'

function endOfLine(text: string, at: number): number {
  const end = text.indexOf('\n', at)
  return end === -1 ? text.length : end
}

/** The place after the line that ends a text for a program. */
function afterText(text: string, { at, end }: { at: number; end: string }): number {
  for (let from = at; from < text.length;) {
    const to = endOfLine(text, from)
    if (text.slice(from, to).trim() === end) return to + 1
    from = to + 1
  }
  return text.length
}
