/** An option: its spellings, its default and its value on the command line. */
import type { Interpreter } from '../interpreter'
import { constant, list, numberOf, textOf, unknown, type CallEvent, type Option, type Value } from '../values'

export interface NewOption {
  /** Spellings: `--batch-size`, `-b`. */
  names: readonly string[]
  key: string
  default: Value
  /** The type of the values, as the library names it. */
  type?: string | undefined
  isFlag?: boolean
  /** Whether its value may be left out, which turns it on. */
  standsAlone?: boolean
  isRequired?: boolean
  /** Place of the option's definition. */
  at: Pick<CallEvent, 'file' | 'node'>
}

/** Adds an option, and returns the value that the program reads. */
export function addOption(run: Interpreter, { names, key, at, ...rest }: NewOption): Value {
  const words = given(run.args, names)
  const isFlag = rest.isFlag ?? false
  const option: Option = {
    name: names[0] ?? key,
    key,
    default: rest.default,
    given: words === undefined ? undefined : readWords(words, { ...rest, isFlag, name: names[0] ?? key }),
    isRequired: rest.isRequired ?? false,
    isFlag,
    standsAlone: rest.standsAlone ?? false,
    type: rest.type,
    file: at.file.path,
    line: at.node.line,
  }
  const before = run.options.findIndex((each) => each.key === key && each.name === option.name)
  if (before === -1) run.options.push(option)
  else run.options[before] = option
  return valueOfOption(option)
}

export function valueOfOption(option: Option): Value {
  return { ...(option.given ?? option.default), options: new Set([option]) }
}

/** Returns the words after an option on the command line; `undefined` if it is absent. The last occurrence counts. */
function given(args: readonly string[], names: readonly string[]): string[] | undefined {
  let found: string[] | undefined
  args.forEach((arg, at) => {
    const name = names.find((each) => arg === each || arg.startsWith(`${each}=`))
    if (name === undefined) return
    if (arg !== name) found = [arg.slice(name.length + 1)]
    else {
      const rest = args.slice(at + 1)
      const end = rest.findIndex((word) => word.startsWith('-') && Number.isNaN(Number(word)))
      found = end === -1 ? rest : rest.slice(0, end)
    }
  })
  return found
}

function readWords(
  words: readonly string[],
  {
    name,
    isFlag,
    type,
    default: fallback,
  }: { name: string; isFlag: boolean; type?: string | undefined; default: Value },
): Value {
  if (isFlag) return readFlag(words, name)
  const values = words.map((word) => readWord(word, type, fallback))
  if (fallback.kind === 'list' || words.length > 1) return list(values)
  // An option with an optional value, given without one.
  return values[0] ?? constant(true)
}

function readFlag(words: readonly string[], name: string): Value {
  const [word] = words
  if (word === 'false' || word === 'False' || word === '0') return constant(false)
  return constant(!name.startsWith('--no-') && !name.startsWith('--no_'))
}

export function readWord(word: string, type: string | undefined, fallback: Value): Value {
  if (word.startsWith('$')) return unknown(undefined, word)
  if (type === 'str') return constant(word)
  if (word === 'True' || word === 'true') return constant(true)
  if (word === 'False' || word === 'false') return constant(false)
  const number = Number(word.split('_').join(''))
  const isNumber = word !== '' && !Number.isNaN(number)
  if (isNumber && (type !== undefined || numberOf(fallback) !== undefined || textOf(fallback) === undefined))
    return constant(number)
  return word === 'None' || word === 'null' ? constant(null) : constant(word)
}
