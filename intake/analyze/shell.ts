/** Shell texts: their simple commands, as words, with the variables that they set. */

export interface Command {
  words: string[]
  line: number
  text: string
}

/** The simple commands of a shell text, as words. */
export function commandsOf(text: string): Command[] {
  const commands: Command[] = []
  let words: string[] = []
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
    if (words.length > 0) commands.push({ words, line: started, text: rows[started - 1]!.trim() })
    words = []
  }
  for (let at = 0; at < text.length; at += 1) {
    const letter = text[at]!
    if (letter === '\n') line += 1
    if (quote !== '') {
      if (letter === quote) quote = ''
      else if (letter === '\\' && quote === '"' && at + 1 < text.length) word += text[(at += 1)]!
      else word += letter
    } else if (letter === "'" || letter === '"') {
      quote = letter
      hasWord = true
    } else if (letter === '\\') {
      at += 1
      if (text[at] === '\n') line += 1
      else word += text[at] ?? ''
    } else if (letter === '#' && !hasWord) {
      while (at + 1 < text.length && text[at + 1] !== '\n') at += 1
    } else if (letter === '\n' || letter === ';' || letter === '&' || letter === '|') endCommand()
    else if (letter === ' ' || letter === '\t' || letter === '\r') endWord()
    else {
      if (!hasWord && words.length === 0) started = line
      word += letter
      hasWord = true
    }
  }
  endCommand()
  return commands
}

export function expanded(
  words: readonly string[],
  { variables, args }: { variables: Map<string, string>; args: readonly string[] },
): string[] {
  return words.flatMap((word) => {
    if (word === '$@' || word === '$*') return [...args]
    return [substituted(word, variables, args)]
  })
}

/** `$NAME`, `${NAME}`, `${NAME:-default}` and `$1`, as far as they are known. */
function substituted(word: string, variables: Map<string, string>, args: readonly string[]): string {
  let result = ''
  for (let at = 0; at < word.length; at += 1) {
    if (word[at] !== '$') {
      result += word[at]!
      continue
    }
    const isBraced = word[at + 1] === '{'
    const from = at + (isBraced ? 2 : 1)
    let to = from
    while (to < word.length && (isBraced ? word[to] !== '}' : isNameLetter(word[to]!))) to += 1
    const [name = '', fallback] = word.slice(from, to).split(':-')
    const known = variables.get(name) ?? args[Number(name) - 1] ?? fallback
    result += known ?? word.slice(at, isBraced ? to + 1 : to)
    at = isBraced ? to : to - 1
  }
  return result
}

export function isNameLetter(letter: string): boolean {
  return letter === '_' || (letter >= '0' && letter <= '9') || letter.toLowerCase() !== letter.toUpperCase()
}
