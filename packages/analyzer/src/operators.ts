/** Arithmetic and comparison of values. */
import {
  constant,
  constantOf,
  either,
  list,
  numberOf,
  taintOf,
  textOf,
  unknown,
  type Taint,
  type Value,
} from './values'

export function calculate(operator: string, left: Value, right: Value): Value {
  const taint = taintOf(left, right)
  // Only every n-th step depends on a remainder in a training script; remainders of two constants do not matter.
  if (operator === '%' && textOf(left) === undefined)
    return { ...unknown(taint), kind: 'unknown', every: { count: right, unitText: '' } }
  const template = operator === '%' ? textOf(left) : undefined
  if (template !== undefined)
    return filled(template, PERCENT, { items: right.kind === 'list' ? right.items : [right], taint })
  const [a, b] = [numberOf(left), numberOf(right)]
  if (a !== undefined && b !== undefined) {
    const result = arithmetic(operator, a, b)
    return result === undefined ? unknown(taint) : constant(result, taint)
  }
  // `start + 1`, where `start` is 0 or comes from a checkpoint.
  if ((operator === '+' || operator === '-') && left.kind === 'either' && b !== undefined)
    return left.values.map((each) => calculate(operator, each, right)).reduce(either)
  if (operator === '+' && left.kind === 'list' && right.kind === 'list')
    return list([...left.items, ...right.items])
  const texts = [textOf(left) ?? templateOf(left), textOf(right) ?? templateOf(right)]
  if (operator === '+' && texts[0] !== undefined && texts[1] !== undefined) {
    const isKnown = left.kind === 'constant' && right.kind === 'constant'
    return isKnown ? constant(texts[0] + texts[1], taint) : unknown(taint, texts[0] + texts[1])
  }
  // `folder + '/' + name`: the parts that only a run knows are holes of the text.
  if (operator === '+' && texts.some((text) => text !== undefined))
    return unknown(taint, `${texts[0] ?? '{}'}${texts[1] ?? '{}'}`)
  // The share of one device, or of one process.
  if (operator.startsWith('/') && right.kind === 'made' && COUNTS.has(right.call.method) && a !== undefined)
    return constant(a, taint)
  if (operator === '/' && texts.some((text) => text !== undefined)) return joinedPath([left, right])
  return { ...unknown(taint), kind: 'unknown', like: left.kind === 'constant' ? right : left }
}

/** Functions that give the number of devices or processes. */
const COUNTS = new Set(['device_count', 'get_world_size', 'local_device_count'])

/** `%s`, `%03d` and `%(name)s`. */
const PERCENT = /%(?:\([^()]*\))?[-+ #0-9.]*[a-z]/gi
/** `{}`, `{0}` and `{name}`, with or without a format. */
export const BRACES = /\{[^{}]*\}/g

/** A template with its values; what only a run knows, and what has a format of its own, stays a hole. */
export function filled(
  template: string,
  holes: RegExp,
  { items, taint }: { items: readonly Value[]; taint: Taint },
): Value {
  let isKnown = true
  let at = 0
  const text = template.replaceAll(holes, (hole) => {
    const value = constantOf(items[at])
    at += 1
    if (typeof value === 'string' && ['{}', '%s'].includes(hole)) return value
    if (typeof value === 'number' && ['{}', '%s', '%d'].includes(hole)) return String(value)
    isKnown = false
    return templateOf(items[at - 1]) ?? '{}'
  })
  return isKnown ? constant(text, taint) : unknown(taint, text)
}

/** `os.path.join(folder, name)`, with a hole for each part that only a run knows. */
export function joinedPath(values: readonly Value[]): Value {
  const texts = values.map((value) => textOf(value) ?? templateOf(value) ?? '{}')
  // An absolute part replaces what is before it, and an empty one adds nothing.
  const path = texts.reduce((before, text) => {
    if (before === '' || text.startsWith('/')) return text
    return before.endsWith('/') ? before + text : `${before}/${text}`
  }, '')
  const taint = taintOf(...values)
  return values.every((value) => value.kind === 'constant') ? constant(path, taint) : unknown(taint, path)
}

/** A text with holes for what only a run knows. */
export const templateOf = (value: Value | undefined): string | undefined =>
  value?.kind === 'unknown' ? value.text : undefined

function arithmetic(operator: string, a: number, b: number): number | undefined {
  switch (operator) {
    case '+':
      return a + b
    case '-':
      return a - b
    case '*':
      return a * b
    case '/':
      return b === 0 ? undefined : a / b
    case '//':
      return b === 0 ? undefined : Math.floor(a / b)
    case '**':
      return a ** b
    case '<<':
      return b < 31 ? a << b : undefined
    default:
      return undefined
  }
}

export function compare(operator: string, left: Value, right: Value): Value {
  const taint = taintOf(left, right)
  const every = [left, right].find((value) => value.kind === 'unknown' && value.every !== undefined)
  if (every !== undefined) return { ...every, ...taint }
  if (operator === 'is' || operator === 'is not') {
    const isNone = sameAsNone(left, right)
    if (isNone !== undefined) return constant(operator === 'is' ? isNone : !isNone, taint)
    const [a, b] = [constantOf(left), constantOf(right)]
    if (typeof b === 'boolean' && a !== undefined) return constant((a === b) === (operator === 'is'), taint)
  }
  if ((operator === 'in' || operator === 'not in') && right.kind === 'list') {
    const items = right.items.map(constantOf)
    const wanted = constantOf(left)
    if (wanted !== undefined && items.every((item) => item !== undefined))
      return constant(items.includes(wanted) === (operator === 'in'), taint)
  }
  // The environment is usually empty.
  if (operator === '==' && isOfEnvironment(left) && constantOf(right) !== undefined)
    return constant(false, taint)
  const [a, b] = [constantOf(left), constantOf(right)]
  if (a === undefined || b === undefined) {
    const isOrder = ['<', '<=', '>', '>=', '=='].includes(operator)
    return isOrder
      ? { ...unknown(taint), kind: 'unknown', of: [left, right], bound: a === undefined ? right : left }
      : { ...unknown(taint), kind: 'unknown', of: [left, right] }
  }
  const result = ordered(operator, a, b)
  return result === undefined ? unknown(taint) : constant(result, taint)
}

/** A variable of the environment that neither a launcher nor Crucible sets. */
const isOfEnvironment = (value: Value): boolean =>
  /^os\.environ\[(?!CRUCIBLE_|RANK|LOCAL_|WORLD_|SLURM_)/.test(templateOf(value) ?? '')

function sameAsNone(left: Value, right: Value): boolean | undefined {
  if (constantOf(right) !== null) return undefined
  if (left.kind === 'constant') return left.value === null
  return left.kind === 'unknown' || left.kind === 'either' || left.kind === 'made' ? undefined : false
}

type ConstantValue = NonNullable<ReturnType<typeof constantOf>> | null

function ordered(operator: string, a: ConstantValue, b: ConstantValue): boolean | undefined {
  if (operator === '==') return a === b
  if (operator === '!=' || operator === '<>') return a !== b
  if (operator === 'in' && typeof a === 'string' && typeof b === 'string') return b.includes(a)
  if (operator === 'not in' && typeof a === 'string' && typeof b === 'string') return !b.includes(a)
  if (typeof a !== 'number' || typeof b !== 'number') return undefined
  if (operator === '<') return a < b
  if (operator === '<=') return a <= b
  if (operator === '>') return a > b
  if (operator === '>=') return a >= b
  return undefined
}
