/** Training steps, as far as the syntax shows them before interpretation. */
import { memberOfClass } from './members'
import { childAt, nodesOf, type SyntaxNode } from './syntax'
import type { Scope, Value } from './values'

/** Calls that only a training step makes. */
export const STEP_METHODS: ReadonlySet<string> = new Set([
  'backward',
  'manual_backward',
  'apply_gradients',
  'train_on_batch',
  'minimize',
  'optimizer_step',
  'value_and_grad',
  'apply_updates',
  'filter_value_and_grad',
  'trainingModel',
])

/** Functions that only a training step calls, by their own name. */
const STEP_FUNCTIONS = new Set([...STEP_METHODS, 'grad'])
/** Methods of a training step, those that train a whole model, and those that turn a mode of training on or off. */
const TRAINING_METHODS = new Set([
  ...STEP_FUNCTIONS,
  'step',
  'train',
  'eval',
  'fit',
  'fit_generator',
  'partial_fit',
  'learn',
])

type ProjectFunction = Extract<Value, { kind: 'function' }>

/** Names by which a block reaches values: those of its scope, and `self` in a method. */
interface Names {
  scope: Scope
  self: Value | undefined
}

/** Whether a block trains, directly or in the functions of the project that it names. Runs nothing. */
export function trains(block: SyntaxNode, names: Names, seen = new Set<SyntaxNode>()): boolean {
  return [...nodesOf(block)].some((node) => {
    if (node.type !== 'call') return false
    const called = childAt(node, 'function')!
    const method = childAt(called, 'attribute')?.text
    if (method === undefined ? STEP_FUNCTIONS.has(called.text) : TRAINING_METHODS.has(method)) return true
    const target = functionBehind(valueAt(called, names))
    if (target === undefined || seen.has(target.definition.node)) return false
    seen.add(target.definition.node)
    return trains(target.definition.node, { scope: target.definition.scope, self: target.self }, seen)
  })
}

function valueAt(node: SyntaxNode, names: Names): Value | undefined {
  if (node.type === 'identifier')
    return node.text === 'self' && names.self !== undefined ? names.self : names.scope.find(node.text)
  const owner = node.type === 'attribute' ? valueAt(childAt(node, 'object')!, names) : undefined
  const name = childAt(node, 'attribute')?.text ?? ''
  if (owner?.kind === 'module') return owner.scope.names.get(name)
  return owner?.kind === 'instance' ? (owner.attributes.get(name) ?? methodOf(owner, [name])) : undefined
}

/** Returns the function that a call of a value runs. */
function functionBehind(value: Value | undefined): ProjectFunction | undefined {
  if (value?.kind === 'function') return value
  return value?.kind === 'instance' ? methodOf(value, ['__call__', 'forward']) : undefined
}

function methodOf(
  owner: Extract<Value, { kind: 'instance' }>,
  names: readonly string[],
): ProjectFunction | undefined {
  for (const name of names) {
    const member = memberOfClass(owner.definition, name)
    if (member?.kind === 'function') return { ...member, self: owner }
  }
  return undefined
}
