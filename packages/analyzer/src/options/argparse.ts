/** `argparse`, and parsers of the same interface. */
import type { Interpreter } from '../interpreter'
import { constant, constantOf, list, namespace, textOf, unknown, type CallEvent, type Value } from '../values'
import { addOption, readWord, valueOfOption } from './option'

export function argparseResult(run: Interpreter, event: CallEvent): Value | undefined {
  switch (event.method) {
    case 'add_argument':
      return addArgument(run, event)
    case 'set_defaults':
      return setDefaults(run, event)
    case 'parse_args':
      return isForeign(event) ? undefined : parsedOptions(run)
    case 'parse_known_args':
      return list([parsedOptions(run), unknown()])
    default:
      return undefined
  }
}

/** Dataclass parsers have their own rules. */
const isForeign = ({ name }: CallEvent): boolean =>
  name.includes('HfArgumentParser') || name.includes('TrlParser')

function addArgument(run: Interpreter, event: CallEvent): Value {
  const names = event.positional.map(textOf).filter((name) => name !== undefined)
  const { named } = event
  run.style = run.style === 'none' ? 'argparse' : run.style
  const action = textOf(named.get('action')) ?? nameOf(named.get('action'))
  const longest = names.find((name) => name.startsWith('--')) ?? names[0] ?? ''
  const key = textOf(named.get('dest')) ?? keyOf(longest)
  const isFlag = action?.startsWith('store_') === true || action === 'BooleanOptionalAction'
  const ordered = [longest, ...names.filter((name) => name !== longest)]
  if (action === 'BooleanOptionalAction') ordered.push(`--no-${longest.slice(2)}`)
  const value = addOption(run, {
    names: ordered,
    key,
    default:
      named.get('default') ??
      constant(action === 'store_true' ? false : action === 'store_false' ? true : null),
    type: action === 'store_const' ? undefined : typeName(named.get('type')),
    isFlag,
    standsAlone: textOf(named.get('nargs')) === '?' && constantOf(named.get('const')) === true,
    isRequired: constantOf(named.get('required')) === true || !longest.startsWith('-'),
    at: event,
  })
  const option = run.options.find((each) => each.key === key)
  // If the flag is given, its value is false.
  if (action === 'store_false' && option?.given !== undefined) option.given = constant(false)
  return value
}

const keyOf = (name: string): string => {
  const bare = name.startsWith('--') ? name.slice(2) : name.startsWith('-') ? name.slice(1) : name
  return bare.split('-').join('_')
}

function nameOf(value: Value | undefined): string | undefined {
  return value?.kind === 'extern' ? value.name.slice(value.name.lastIndexOf('.') + 1) : undefined
}

const typeName = (value: Value | undefined): string | undefined =>
  value?.kind === 'extern' ? value.name : undefined

function setDefaults(run: Interpreter, { named }: CallEvent): Value {
  for (const [key, value] of named) {
    const option = run.options.find((each) => each.key === key)
    if (option !== undefined) option.default = value
  }
  return constant(null)
}

function parsedOptions(run: Interpreter): Value {
  placePositional(run)
  return namespace(new Map(run.options.map((option) => [option.key, valueOfOption(option)])))
}

/** Words that belong to no option fill the positional arguments in order. */
function placePositional(run: Interpreter): void {
  const slots = run.options.filter(({ name, given }) => !name.startsWith('-') && given === undefined)
  const words: string[] = []
  run.args.forEach((arg, at) => {
    const before = run.args[at - 1]
    const owner =
      before === undefined || before.includes('=')
        ? undefined
        : run.options.find(({ name }) => name === before)
    const isOfOption = owner !== undefined && typeof constantOf(owner.default) !== 'boolean'
    if (!arg.startsWith('-') && !isOfOption) words.push(arg)
  })
  slots.forEach((option, at) => {
    const word = words[at]
    if (word !== undefined) option.given = readWord(word, option.type, option.default)
  })
}
