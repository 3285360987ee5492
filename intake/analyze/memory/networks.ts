/** Models that a program builds of PyTorch's layers. */
import { isContainer, membersOf } from '../containers'
import { isCalled, type Facts } from '../facts'
import { endOf } from '../rounds'
import type { Frame, Interpreter } from '../interpreter'
import { externalBase, memberOfClass } from '../members'
import type { Loop } from '../flow'
import { alternatives, constructionOf, Scope, unknown, type CallEvent, type Value } from '../values'
import { WEIGHT_NORM } from '../builtins'
import { COPIES_ARGUMENT, layerName, normsOf, parametersOf } from './layers'

type Instance = Extract<Value, { kind: 'instance' }>

export interface Network {
  root: Value
  layers: readonly CallEvent[]
  /** `undefined` if the size of a layer is not known. */
  parameters: number | undefined
  /** How many of the layers have a known size, and their parameters. */
  known: number
  knownParameters: number
}

/** Models of the program's own, largest parts first; none for models that a library defines. */
export function networksOf(facts: Facts): Network[] {
  const modules = [...facts.run.instances].filter(isModule)
  const inside = new Set<unknown>()
  for (const each of modules)
    for (const part of partsOf(each)) if (part !== each) inside.add(identityOf(part))
  const patterns = new Set(facts.events.flatMap(patternOf))
  const bare = facts.events
    .filter(isCalled)
    .flatMap((event): Value[] =>
      layerName(event) !== undefined && !patterns.has(event) ? [valueOf(event)] : [],
    )
  const roots = [...modules, ...bare].filter((each) => !inside.has(identityOf(each)))
  const tops = roots.filter((each) => !roots.some((other) => other !== each && holds(other, each)))
  const networks = tops.map((root) => networkOf(root, facts)).filter(({ parameters }) => parameters !== 0)
  return networks.filter((each) => each === bestOf(each, networks))
}

/** Of several objects of one class, such as a new model and a restored one, the one that is known best. */
function bestOf(network: Network, networks: readonly Network[]): Network {
  const { root } = network
  if (root.kind !== 'instance') return network
  return networks
    .filter((other) => other.root.kind === 'instance' && other.root.definition === root.definition)
    .reduce((best, other) => (other.known > best.known ? other : best))
}

/** The layer that a stack of layers copies, and does not keep. */
function patternOf(event: CallEvent): CallEvent[] {
  if (!COPIES_ARGUMENT.has(layerName(event) ?? '')) return []
  return [...event.positional, ...event.named.values()].flatMap((value) =>
    value.kind === 'made' ? [value.call] : [],
  )
}

const isModule = (each: Instance): boolean => externalBase(each.definition)?.endsWith('Module') === true

/** Stands for the result of a call, for calls whose result nothing keeps. */
const valueOf = (call: CallEvent): Value => ({
  ...unknown(),
  kind: 'made',
  name: `${call.name}()`,
  call,
  attributes: new Map(),
})

const identityOf = (value: Value): unknown =>
  value.kind === 'made' ? value.call : value.kind === 'instance' ? value.attributes : value

const holds = (outer: Value, inner: Value): boolean =>
  [...partsOf(outer)].some((part) => identityOf(part) === identityOf(inner))

/** A value and what it keeps: layers, instances of the project's classes, and containers of them. */
function partsOf(value: Value, seen = new Set<unknown>()): Set<Value> {
  const parts = new Set<Value>()
  const visit = (each: Value): void => {
    const identity = identityOf(each)
    if (seen.has(identity)) return
    seen.add(identity)
    parts.add(each)
    for (const child of childrenOf(each)) visit(child)
  }
  visit(value)
  return parts
}

function childrenOf(value: Value): readonly Value[] {
  switch (value.kind) {
    case 'instance':
      return isModule(value) ? [...value.attributes.values()] : []
    case 'list':
      return value.items
    case 'dict':
      return [...value.entries.values()]
    case 'either':
      return alternatives(value)
    case 'unknown':
      return value.each === undefined ? [] : [value.each]
    case 'made':
      return isContainer(value)
        ? membersOf(value)
        : isWrapper(value.call)
          ? value.call.positional.slice(0, 1)
          : []
    case 'constant':
    case 'extern':
    case 'function':
    case 'class':
    case 'module':
      return []
  }
}

const WRAPPERS = new Set([
  'weight_norm',
  'spectral_norm',
  'DataParallel',
  'DistributedDataParallel',
  'compile',
])
const isWrapper = ({ method }: CallEvent): boolean => WRAPPERS.has(method)

function networkOf(root: Value, facts: Facts): Network {
  const layers = [...partsOf(root)].flatMap((part) =>
    part.kind === 'made' && layerName(part.call) !== undefined ? [part] : [],
  )
  const counts = layers.map(({ call, attributes }) => {
    // `head.weight = embedding.weight`: two layers share their parameters.
    const isTied = attributes.get('weight')?.kind === 'extern'
    const count = parametersOf(call)
    if (count === undefined) return undefined
    const norms = attributes.has(WEIGHT_NORM) ? (normsOf(call) ?? 0) : 0
    return isTied ? 0 : (count + norms) * repeatsOf(call.loops, facts.loops)
  })
  const known = counts.filter((count) => count !== undefined)
  const knownParameters = known.reduce((sum, count) => sum + count, 0)
  return {
    root,
    layers: layers.map(({ call }) => call),
    parameters: known.length === counts.length ? knownParameters : undefined,
    known: known.length,
    knownParameters,
  }
}

/** How often a body runs, by the loops around it that do not train; loops of unknown length count once. */
export function repeatsOf(loops: readonly Loop[], training: ReadonlySet<Loop>): number {
  return loops.reduce((repeats, loop) => {
    const rounds = training.has(loop) ? 1 : (endOf(loop) ?? 1)
    return repeats * (rounds >= 1 ? rounds : 1)
  }, 1)
}

/** The calls of one forward pass, in order; what the interpreter has seen so far is left as it was. */
export function forwardCalls(run: Interpreter, root: Value, input: Value): CallEvent[] {
  const before = run.events.length
  const calls = new Map(run.calls)
  const { isCut } = run
  run.calls.clear()
  run.keepsProducts = true
  runForward(run, root, input)
  run.keepsProducts = false
  run.calls.clear()
  for (const [definition, count] of calls) run.calls.set(definition, count)
  run.isCut = isCut
  return run.events.splice(before)
}

function runForward(run: Interpreter, root: Value, input: Value): void {
  const [call] = root.kind === 'made' ? [root.call] : [constructionOf(root)]
  if (call === undefined) return
  const frame: Frame = {
    ...{ scope: new Scope(call.file, undefined), loops: [], guards: [], within: [], stack: [] },
    ...{ self: undefined, returns: [], isRare: false },
  }
  const given = { positional: [input], named: new Map<string, Value>() }
  if (root.kind !== 'instance') {
    run.dispatch({ callee: root, node: call.node, given }, frame)
    return
  }
  const name = ['forward', 'training_step', '__call__'].find(
    (each) => memberOfClass(root.definition, each) !== undefined,
  )
  const member = name === undefined ? undefined : memberOfClass(root.definition, name)
  if (member?.kind === 'function') run.callFunction({ ...member, self: root }, { ...given, frame })
}
