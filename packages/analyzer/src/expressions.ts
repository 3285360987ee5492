/** Expressions: as much of their value as can be known without running them. */
import { assignment, augmented } from './assignments'
import { isSet } from './builtins'
import { callNode } from './calls'
import { comprehension } from './comprehensions'
import { entryOf, memberOfValue, sliceOf } from './members'
import { firstLine, type Frame, type Interpreter } from './interpreter'
import { compare, calculate, templateOf } from './operators'
import { childAt, isToken, parts, type SyntaxNode } from './syntax'
import type { Guard } from './flow'
import {
  constant,
  constantOf,
  dict,
  either,
  extern,
  list,
  numberOf,
  seenUnder,
  taintOf,
  textOf,
  truthOf,
  unknown,
  withTaint,
  type Value,
} from './values'

export function evaluate(run: Interpreter, node: SyntaxNode, frame: Frame): Value {
  if (!run.step()) return unknown()
  const literal = literalOf(node)
  if (literal !== undefined) return literal
  const of = (child: SyntaxNode | undefined): Value =>
    child === undefined ? unknown() : evaluate(run, child, frame)
  switch (node.type) {
    case 'identifier':
      return nameValue(node.text, frame)
    case 'attribute':
      return memberOfValue(
        run,
        { value: of(childAt(node, 'object')), name: childAt(node, 'attribute')!.text },
        frame,
      )
    case 'call':
      return callNode(run, node, frame)
    case 'string':
      return stringValue(run, node, frame)
    case 'concatenated_string':
      return parts(node)
        .map(of)
        .reduce((left, right) => calculate('+', left, right))
    case 'list':
    case 'tuple':
    case 'set':
    case 'expression_list':
      return { ...list(parts(node).flatMap((part) => itemsOf(run, part, frame))) }
    case 'dictionary':
      return dictionary(run, node, frame)
    case 'list_comprehension':
    case 'set_comprehension':
    case 'generator_expression':
    case 'dictionary_comprehension':
      return comprehension(run, node, frame)
    case 'parenthesized_expression':
    case 'await':
    case 'list_splat':
    case 'type':
      return of(parts(node)[0])
    case 'lambda':
      return lambda(node, frame)
    default:
      return operation(run, node, frame)
  }
}

function literalOf(node: SyntaxNode): Value | undefined {
  switch (node.type) {
    case 'integer':
    case 'float':
      return numberLiteral(node.text)
    case 'true':
      return constant(true)
    case 'false':
      return constant(false)
    case 'none':
      return constant(null)
    default:
      return undefined
  }
}

function numberLiteral(text: string): Value {
  const number = Number(text.split('_').join(''))
  return Number.isNaN(number) ? unknown() : constant(number)
}

function nameValue(name: string, frame: Frame): Value {
  const value = frame.scope.find(name)
  if (value !== undefined) return seenUnder(value, frame.guards)
  for (let scope: Frame['scope'] | undefined = frame.scope; scope !== undefined; scope = scope.parent)
    if (scope.stars.length > 0) return extern(`${scope.stars.at(-1)}.${name}`)
  return extern(name)
}

function stringValue(run: Interpreter, node: SyntaxNode, frame: Frame): Value {
  const holes = node.children.filter(({ type }) => type === 'interpolation')
  const start = node.children.find(({ type }) => type === 'string_start')
  const end = node.children.find(({ type }) => type === 'string_end')
  const [from, to] = [start?.end ?? node.start, end?.start ?? node.end]
  const written = (first: number, last: number): string =>
    node.text.slice(first - node.start, last - node.start)
  if (holes.length === 0) return constant(written(from, to))
  let text = ''
  let at = from
  const values = holes.map((hole) => evaluate(run, childAt(hole, 'expression') ?? hole, frame))
  let isKnown = true
  holes.forEach((hole, index) => {
    const value = values[index]!
    const known = hole.children.some(({ type }) => type === 'format_specifier')
      ? undefined
      : constantOf(value)
    const isPlain = typeof known === 'string' || typeof known === 'number'
    isKnown &&= isPlain
    text += written(at, hole.start) + (isPlain ? String(known) : (templateOf(value) ?? '{}'))
    at = hole.end
  })
  text += written(at, to)
  return isKnown ? constant(text, taintOf(...values)) : unknown(taintOf(...values), text)
}

function subscript(
  run: Interpreter,
  { value, key: node }: { value: Value; key: SyntaxNode },
  frame: Frame,
): Value {
  const part = sliceOf(value, node)
  if (part !== undefined) return part
  const key = evaluate(run, node, frame)
  if (value.kind === 'extern' && value.name === 'os.environ') run.variables.add(textOf(key) ?? '')
  return entryOf(value, key)
}

function itemsOf(run: Interpreter, node: SyntaxNode, frame: Frame): readonly Value[] {
  const value = evaluate(run, node, frame)
  return node.type === 'list_splat' && value.kind === 'list' ? value.items : [value]
}

function dictionary(run: Interpreter, node: SyntaxNode, frame: Frame): Value {
  const entries = new Map<string, Value>()
  for (const part of parts(node)) {
    if (part.type === 'pair') {
      const key = textOf(evaluate(run, childAt(part, 'key')!, frame)) ?? childAt(part, 'key')!.text
      entries.set(key, evaluate(run, childAt(part, 'value')!, frame))
    } else if (part.type === 'dictionary_splat') {
      const splat = evaluate(run, parts(part)[0]!, frame)
      if (splat.kind === 'dict') for (const [key, value] of splat.entries) entries.set(key, value)
    }
  }
  return { ...dict(entries), ...taintOf(...entries.values()) }
}

function lambda(node: SyntaxNode, frame: Frame): Value {
  const definition = {
    name: 'lambda',
    file: frame.scope.file,
    node,
    scope: frame.scope,
    owner: undefined,
    decorators: [],
  }
  return { ...taintOf(), kind: 'function', definition, self: undefined, wrappers: [] }
}

function operation(run: Interpreter, node: SyntaxNode, frame: Frame): Value {
  const of = (child: SyntaxNode | undefined): Value =>
    child === undefined ? unknown() : evaluate(run, child, frame)
  const operator = node.children.find(isToken)?.type ?? ''
  switch (node.type) {
    case 'binary_operator':
      return remainder(node, calculate(operator, of(childAt(node, 'left')), of(childAt(node, 'right'))))
    case 'boolean_operator':
      return logical(operator, of(childAt(node, 'left')), of(childAt(node, 'right')))
    case 'not_operator': {
      const value = of(childAt(node, 'argument'))
      const truth = truthOf(value)
      if (value.kind === 'unknown' && value.every !== undefined) return value
      return truth === undefined
        ? { ...unknown(value), kind: 'unknown', of: [value] }
        : constant(!truth, value)
    }
    case 'unary_operator': {
      const value = of(childAt(node, 'argument'))
      const number = numberOf(value)
      return number !== undefined && node.text.startsWith('-') ? constant(-number, value) : unknown(value)
    }
    case 'comparison_operator': {
      const operators = node.children.filter(isToken)
      const values = parts(node).map(of)
      const variable = textOf(values[0])
      if (variable !== undefined && values[1]?.kind === 'extern' && values[1].name === 'os.environ') {
        const isGiven = isSet(run, variable)
        return isGiven === undefined ? unknown() : constant(isGiven === (operator === 'in'))
      }
      if (values.length <= 2) return compare(operator, values[0] ?? unknown(), values[1] ?? unknown())
      // `0 < n < 5` is true if each of its comparisons is.
      return operators
        .map(({ type }, at) => compare(type, values[at] ?? unknown(), values[at + 1] ?? unknown()))
        .reduce((left, right) => logical('and', left, right))
    }
    case 'conditional_expression': {
      const [first, condition, second] = parts(node)
      const guard = guardOf(run, condition!, frame)
      const guarded = (branch: SyntaxNode, under: Guard): Value =>
        evaluate(run, branch, { ...frame, guards: [...frame.guards, under] })
      const [yes, no] = [guarded(first!, guard), guarded(second!, opposite(guard))]
      if (guard.truth === undefined)
        return withTaint(either(yes, no), { options: guard.condition.options, origins: [] })
      const [taken, other] = guard.truth ? [yes, no] : [no, yes]
      return withTaint(taken, taintOf(guard.condition, other))
    }
    case 'subscript':
      return subscript(run, { value: of(childAt(node, 'value')), key: childAt(node, 'subscript')! }, frame)
    case 'assignment':
      return assignment(run, node, frame)
    case 'augmented_assignment':
      return augmented(run, node, frame)
    case 'named_expression': {
      const value = of(childAt(node, 'value'))
      frame.scope.put(childAt(node, 'name')!.text, value)
      return value
    }
    default:
      for (const part of parts(node)) evaluate(run, part, frame)
      return unknown()
  }
}

/** Adds the dividend of a remainder, as it is written. */
function remainder(node: SyntaxNode, value: Value): Value {
  if (value.kind !== 'unknown' || value.every === undefined) return value
  return { ...value, every: { ...value.every, unitText: childAt(node, 'left')!.text } }
}

export function opposite(guard: Guard): Guard {
  const truth = guard.truth === undefined ? undefined : !guard.truth
  return { ...guard, truth, text: `not (${guard.text})`, wants: undefined }
}

function logical(operator: string, left: Value, right: Value): Value {
  const truth = truthOf(left)
  const taint = taintOf(left, right)
  if (truth !== undefined) {
    const isLeft = operator === 'or' ? truth : !truth
    return withTaint(isLeft ? left : right, taint)
  }
  const rightTruth = truthOf(right)
  if (operator === 'and' && rightTruth === false) return constant(false, taint)
  const every = [left, right].find((value) => value.kind === 'unknown' && value.every !== undefined)
  if (every !== undefined) return withTaint(every, taint)
  if (operator === 'or' && left.kind !== 'unknown') return withTaint(either(left, right), taint)
  return { ...unknown(taint), kind: 'unknown', of: [left, right] }
}

export function guardOf(run: Interpreter, node: SyntaxNode, frame: Frame): Guard {
  const condition = evaluate(run, node, frame)
  const truth = truthOf(condition)
  const about = { condition, text: firstLine(node.text), file: frame.scope.file.path, line: node.line }
  const [option] = condition.options
  if (option === undefined) return { ...about, truth, wants: undefined }
  const isEvery = condition.kind === 'unknown' && condition.every !== undefined
  return { ...about, truth, wants: { option, value: isEvery ? undefined : wantedValue(run, node, frame) } }
}

/** The constant of `option == constant`, on the way to a true condition. */
function wantedValue(run: Interpreter, node: SyntaxNode, frame: Frame): Value | undefined {
  if (node.type === 'parenthesized_expression') return wantedValue(run, parts(node)[0]!, frame)
  if (node.type === 'boolean_operator') return wantedValue(run, childAt(node, 'left')!, frame)
  if (node.type !== 'comparison_operator' || node.children.find(isToken)?.type !== '==') return undefined
  const value = evaluate(run, parts(node)[1]!, frame)
  return value.kind === 'constant' ? value : undefined
}
