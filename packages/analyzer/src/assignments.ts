/** Assignments to names, attributes, entries, and several of them at once. */
import { truthOfGuards, type Frame, type Interpreter } from './interpreter'
import { calculate, templateOf } from './operators'
import { constantsAsOptions } from './options/configurator'
import { childAt, childrenAt, isToken, parts, type SyntaxNode } from './syntax'
import {
  alternatives,
  constantOf,
  either,
  taintOf,
  textOf,
  unknown,
  withTaint,
  type Option,
  type Value,
} from './values'

export function assignment(run: Interpreter, node: SyntaxNode, frame: Frame): Value {
  const target = childAt(node, 'left')!
  const right = childAt(node, 'right')
  if (right === undefined) return unknown()
  const value = run.evaluate(right, frame)
  assign(run, { target, value }, frame)
  return value
}

export function augmented(run: Interpreter, node: SyntaxNode, frame: Frame): Value {
  const target = childAt(node, 'left')!
  const [left, right] = [run.evaluate(target, frame), run.evaluate(childAt(node, 'right')!, frame)]
  const operator = node.children.find(isToken)?.type ?? '+='
  const isCount = frame.loops.length > 0 || target.type === 'attribute'
  const isText = textOf(left) !== undefined || templateOf(left) !== undefined
  const result =
    left.kind === 'list' || isText || !isCount
      ? calculate(operator.slice(0, -1), left, right)
      : unknown(taintOf(left, right))
  assign(run, { target, value: result }, frame)
  return result
}

/** Gives the variable of a loop its next value, whatever the conditions around the loop. */
export function assignNext(
  run: Interpreter,
  { target, value }: { target: SyntaxNode; value: Value },
  frame: Frame,
): void {
  assign(run, { target, value }, { ...frame, guards: [] })
}

/** Assigns to a name, an attribute, an entry or several of them. */
export function assign(
  run: Interpreter,
  { target, value }: { target: SyntaxNode; value: Value },
  frame: Frame,
): void {
  switch (target.type) {
    case 'identifier': {
      const before = frame.scope.names.get(target.text)
      const isOwn = !frame.scope.elsewhere.has(target.text)
      const guards = isOwn ? frame.guards.slice(frame.guardsOfCaller) : frame.guards
      frame.scope.put(target.text, settled(before, value, { ...frame, guards }))
      return
    }
    case 'attribute': {
      const owner = run.evaluate(childAt(target, 'object')!, frame)
      const name = childAt(target, 'attribute')!.text
      if (name === 'requires_grad') noteFrozen(run, value, frame)
      for (const each of alternatives(owner)) {
        if (each.kind === 'instance')
          each.attributes.set(name, settled(each.attributes.get(name), value, frame))
        // A library may have given the attribute any value before.
        if (each.kind === 'made')
          each.attributes.set(name, settled(each.attributes.get(name) ?? unknown(each), value, frame))
        if (each.kind === 'dict') each.entries.set(name, settled(each.entries.get(name), value, frame))
      }
      return
    }
    case 'subscript': {
      const owner = run.evaluate(childAt(target, 'value')!, frame)
      const key = textOf(run.evaluate(childAt(target, 'subscript')!, frame))
      if (owner.kind === 'made' && owner.call.name === 'globals')
        return constantsAsOptions(run, frame.scope.module, owner.call)
      if (owner.kind === 'dict' && key !== undefined)
        owner.entries.set(key, settled(owner.entries.get(key), value, frame))
      // A key that only the run knows may be any of them.
      else if (owner.kind === 'dict') {
        for (const [each, before] of owner.entries) owner.entries.set(each, either(before, value))
        if (owner.entries.size === 0) owner.entries.set('{}', unknown(value))
      }
      return
    }
    case 'pattern_list':
    case 'tuple_pattern':
    case 'list_pattern':
    case 'tuple':
      parts(target).forEach((part, index) => {
        const item = value.kind === 'list' ? (value.items[index] ?? unknown(value)) : unpacked(value, index)
        assign(run, { target: part, value: item }, frame)
      })
      return
    default:
      for (const part of childrenAt(target, 'argument')) assign(run, { target: part, value }, frame)
  }
}

/** `for parameter in model.parameters(): parameter.requires_grad = False` */
function noteFrozen(run: Interpreter, value: Value, { loops }: Frame): void {
  const iterated = loops.at(-1)?.iterated
  const isParameters = iterated?.kind === 'made' && iterated.call.method === 'parameters'
  if (constantOf(value) === false && isParameters && iterated.call.receiver !== undefined)
    run.frozen.push(iterated.call.receiver)
}

/** `model, optimizer = accelerator.prepare(model, optimizer)` gives back its arguments. */
function unpacked(value: Value, index: number): Value {
  if (value.kind === 'either') {
    const items = value.values.flatMap((each) => (each.kind === 'list' ? (each.items[index] ?? []) : []))
    return items.length === 0 ? unknown(value) : items.reduce(either)
  }
  if (value.kind !== 'made') return unknown(value)
  const target = value.call.positional[1]
  if (value.call.method === 'restore_checkpoint' && target?.kind === 'list')
    return either(withTaint(target.items[index] ?? unknown(), value), unknown(value))
  const isPassedThrough = ['prepare', 'setup', 'initialize'].includes(value.call.method)
  return (isPassedThrough ? value.call.positional[index] : undefined) ?? unknown(value)
}

const optionsAsked = ({ guards }: Frame): Set<Option> =>
  new Set(
    guards.flatMap(({ truth, wants }) => (truth === false && wants !== undefined ? [wants.option] : [])),
  )

/** An assignment under a condition: the earlier value stays possible. */
function settled(before: Value | undefined, value: Value, frame: Frame): Value {
  if (before === undefined) return value
  const truth = truthOfGuards(frame.guards)
  if (truth === true) return value
  // The value stays what it was, unless an option leads here.
  if (truth === false) return withTaint(before, { options: optionsAsked(frame), origins: value.origins })
  if (frame.isRare) return withTaint(before, value)
  const result = either(value, before)
  const guard = frame.guards.at(-1)
  // Inside the branch it is the new one.
  return result.kind === 'either' && guard !== undefined ? { ...result, under: { guard, value } } : result
}
