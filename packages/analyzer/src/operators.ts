/** Arithmetic and comparison of values. */
import { constant, constantOf, either, list, numberOf, taintOf, textOf, unknown, type Value } from './values'

export function calculate(operator: string, left: Value, right: Value): Value {
  const taint = taintOf(left, right)
  // Only every n-th step depends on a remainder in a training script; remainders of two constants do not matter.
  if (operator === '%' && textOf(left) === undefined)
    return { ...unknown(taint), kind: 'unknown', every: { count: right, unitText: '' } }
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
  const texts = [textOf(left) ?? knownText(left), textOf(right) ?? knownText(right)]
  if (operator === '+' && texts[0] !== undefined && texts[1] !== undefined) {
    const isKnown = left.kind === 'constant' && right.kind === 'constant'
    return isKnown ? constant(texts[0] + texts[1], taint) : unknown(taint, texts[0] + texts[1])
  }
  if (operator === '/' && texts[1] !== undefined) return unknown(taint, `${texts[0] ?? '{}'}/${texts[1]}`)
  return { ...unknown(taint), kind: 'unknown', like: left.kind === 'constant' ? right : left }
}

const knownText = (value: Value): string | undefined => (value.kind === 'unknown' ? value.text : undefined)

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
  }
  if ((operator === 'in' || operator === 'not in') && right.kind === 'list') {
    const items = right.items.map(constantOf)
    const wanted = constantOf(left)
    if (wanted !== undefined && items.every((item) => item !== undefined))
      return constant(items.includes(wanted) === (operator === 'in'), taint)
  }
  const [a, b] = [constantOf(left), constantOf(right)]
  if (a === undefined || b === undefined) {
    const isOrder = ['<', '<=', '>', '>=', '=='].includes(operator)
    return isOrder
      ? { ...unknown(taint), kind: 'unknown', bound: a === undefined ? right : left }
      : unknown(taint)
  }
  const result = ordered(operator, a, b)
  return result === undefined ? unknown(taint) : constant(result, taint)
}

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
