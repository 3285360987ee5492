/** The variables that a round of the loop leaves to the next one, and to what follows the loop. */
import type { Facts } from '../facts'
import { childAt, nodesOf, type SyntaxNode } from '../syntax'
import { alternatives, type Value } from '../values'
import { Flow, flowOf, freeNames } from './flow'
import { isInside, type TrainingLoop } from './loop'
import { roleOfObject } from './objects'
import { refuse, refuseCall } from './refusal'
import { changedParts, rootName, type ProjectFunction } from './region'

export interface Carried {
  /** `best`, `self.best` */
  path: string
  /** How it is restored: by assigning the name, or by filling the list or dictionary that others may share. */
  kind: 'value' | 'list' | 'dict'
}

interface CarriedState {
  variables: Carried[]
  /** Whether the loop's counter is read after the loop. */
  isCounterRead: boolean
}

export function carriedState(
  facts: Facts,
  { training, region }: { training: TrainingLoop; region: readonly ProjectFunction[] },
): CarriedState {
  const names = carriedNames(training, region)
  const variables = [...names]
    .filter(([name]) => name !== training.counter?.variable)
    .flatMap(([name, place]) => carriedName(training, name, place))
  const attributes = carriedAttributes(facts, { training, region })
  const filled = filledContainers(facts, { training, region })
  const paths = new Set<string>()
  const all = [...filled, ...variables, ...attributes].filter(
    ({ path }) => !paths.has(path) && paths.add(path),
  )
  return { variables: all, isCounterRead: names.has(training.counter?.variable ?? '') }
}

/** Names that have another value after a round, and that something reads later. */
function carriedNames(training: TrainingLoop, region: readonly ProjectFunction[]): Map<string, SyntaxNode> {
  const { loop, body, source, owner } = training
  const isTop = owner === source.root
  const inside = new Flow(loop.before)
  const bound = new Set<string>()
  if (training.counter !== undefined) bound.add(training.counter.variable)
  const condition = childAt(loop.node, 'condition')
  if (condition !== undefined) inside.read(condition, bound)
  inside.block(body.children, bound)
  const read = new Set(inside.exposed.keys())
  const changed = new Map(inside.assigned)
  if (training.counter !== undefined) changed.set(training.counter.variable, loop.node)
  for (const name of readAfter(training)) read.add(name)
  for (const { node, source: of } of region) {
    if (isTop && of === source)
      for (const name of freeNames(node).keys()) if (!bound.has(name)) read.add(name)
    for (const name of assignedGlobals(node)) {
      if (of !== source || !isTop)
        refuse(of.path, node, `assigns the global ${name}, which the loop cannot reach by a name of its own`)
      changed.set(name, node)
      read.add(name)
    }
  }
  const result = new Map([...changed].filter(([name]) => read.has(name)))
  for (const [name, place] of result)
    if (!bound.has(name) && !loop.before.has(name))
      refuse(source.path, place, `gives ${name} a value in some rounds only, and it is read in later ones`)
  return result
}

/** Names of other scopes that a function assigns. */
export function assignedGlobals(node: SyntaxNode): string[] {
  const { flow } = flowOf(node)
  return [...flow.elsewhere].filter((name) => flow.assigned.has(name))
}

/** Names whose value from the last round is read after the loop. */
function readAfter({ loop, blocks, source, owner }: TrainingLoop): string[] {
  const after = new Flow()
  const bound = new Set<string>()
  let inner: SyntaxNode = loop.node
  const otherwise = childAt(loop.node, 'alternative')
  if (otherwise !== undefined) after.block(childAt(otherwise, 'body')!.children, bound)
  for (const block of blocks) {
    const rest = block.children.filter(({ start }) => start >= inner.end)
    // A branch that leaves early does not prevent later reads.
    after.block(rest, bound)
    inner = block
  }
  // A function that is called after the loop may read names of the file.
  const functions = owner === source.root ? source.root.children.filter(isFunction) : []
  return [...after.exposed.keys(), ...functions.flatMap((node) => [...freeNames(node).keys()])]
}

const isFunction = ({ type }: SyntaxNode): boolean => type === 'function_definition'

function carriedName(training: TrainingLoop, name: string, place: SyntaxNode): Carried[] {
  const value = training.loop.before.get(name)
  const all = value === undefined ? [] : alternatives(value)
  const { path } = training.source
  for (const each of all) {
    if (roleOfObject(each) !== undefined || each.kind === 'instance' || each.kind === 'function')
      refuse(path, place, `gives ${name} another object in the loop`)
  }
  const foreign = all.find(
    (each) => each.kind === 'made' && NO_PICKLE.some((maker) => each.call.name.startsWith(maker)),
  )
  if (foreign !== undefined)
    refuse(path, place, `keeps in ${name} an object of a library that this analysis does not save`)
  // The clock of the earlier run says nothing about this one.
  if (all.length > 0 && all.every(isTime)) return []
  return [{ path: name, kind: 'value' }]
}

/** Their objects hold functions, or keys of a type of their own. */
const NO_PICKLE = ['flax.', 'equinox.', 'haiku.', 'jax.random.key']
const isTime = (value: Value): boolean => value.kind === 'made' && value.call.name.startsWith('time.')

/** `self.best = loss` in a method that the loop calls, or in the loop. */
function carriedAttributes(
  { run }: Facts,
  { training, region }: { training: TrainingLoop; region: readonly ProjectFunction[] },
): Carried[] {
  const { source, body, owner } = training
  const found: Carried[] = []
  const own = ownClass(training)
  const places = [
    ...changedParts(body).map((part) => ({ part, node: owner, source, owner: own })),
    ...region.flatMap((each) => changedParts(each.node).map((part) => ({ part, ...each }))),
  ]
  for (const { part, node, source: of, owner: methodOf } of places) {
    const root = rootName(part)
    const isLoop = isInside(part, body) && of === source
    const isSelf = root === 'self' && methodOf !== undefined
    if (isSelf) {
      if (childAt(node, 'name')?.text === '__init__') continue
      const held = part.type === 'attribute' && childAt(part, 'object')?.type === 'identifier'
      if (methodOf === own && held) {
        found.push({ path: part.text, kind: 'value' })
        continue
      }
      if (isLearningRate(part) || !livesLonger(run, methodOf, training)) continue
      refuse(of.path, part, `keeps ${part.text} in an object that the loop cannot save`)
    }
    if (isLearningRate(part) || isGradient(part)) continue
    const isLocal = isLoop ? !training.loop.before.has(root ?? '') : localsOf(node).has(root ?? '')
    if (!isLocal) refuse(of.path, part, `changes ${part.text}, which is created outside the loop`)
  }
  return found
}

/** The class whose method holds the loop. */
function ownClass({ source, owner }: TrainingLoop): SyntaxNode | undefined {
  return [...nodesOf(source.root)].find(
    (node) => node.type === 'class_definition' && owner !== source.root && isInside(owner, node),
  )
}

/** Whether an object of a class is made outside the loop. */
function livesLonger(run: Facts['run'], owner: SyntaxNode, { loop }: TrainingLoop): boolean {
  const own = [...run.instances].filter(({ definition }) => definition.node === owner)
  return own.length === 0 || own.some(({ attributes }) => run.births.get(attributes)?.includes(loop) !== true)
}

/** `group["lr"] = lr`: part of the optimizer's state. */
export const isLearningRate = (part: SyntaxNode): boolean =>
  part.text.includes('param_groups') ||
  (part.type === 'subscript' && childAt(part, 'subscript')?.text.slice(1, -1) === 'lr')
/** `parameter.grad = None` */
export const isGradient = (part: SyntaxNode): boolean =>
  part.type === 'attribute' && ['grad', 'data'].includes(childAt(part, 'attribute')!.text)

/** Names that a function itself assigns, without its parameters. */
function localsOf(node: SyntaxNode): Set<string> {
  return new Set(flowOf(node).flow.assigned.keys())
}

/** Methods that change a list, a dictionary or the like. */
export const CHANGING = new Set([
  'append',
  'extend',
  'insert',
  'remove',
  'pop',
  'clear',
  'sort',
  'reverse',
  'update',
  'setdefault',
  'add',
  'discard',
  'popleft',
  'appendleft',
  'popitem',
  'put',
  'push',
  'extendleft',
  'write',
  'writerow',
  'fill',
])

/** Lists and dictionaries from before the loop that the loop itself fills. */
function filledContainers(
  { events }: Facts,
  { training, region }: { training: TrainingLoop; region: readonly ProjectFunction[] },
): Carried[] {
  const { loop, body, source } = training
  return events.flatMap((event): Carried[] => {
    const { receiver, receiverText, method, node, file } = event
    if (!event.loops.includes(loop) || !CHANGING.has(method)) return []
    if (receiver?.kind !== 'list' && receiver?.kind !== 'dict') return []
    const root = receiverText.split('.')[0]!.split('[')[0]!
    if (file === source && isInside(node, body)) {
      if (!loop.before.has(root)) return []
      if (!receiverText.includes('[')) return [{ path: receiverText, kind: receiver.kind }]
    } else if (isLocal(node, root, region)) return []
    refuseCall(event, `changes ${receiverText}, which the loop cannot save by a name of its own`)
  })
}

/** Whether a name belongs to the function around a node, and is made there. */
export function isLocal(node: SyntaxNode, name: string, region: readonly ProjectFunction[]): boolean {
  const around = region.filter((each) => isInside(node, each.node))
  return around.some((each) => localsOf(each.node).has(name))
}
