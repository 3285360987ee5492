/** Finds state that a program keeps in functions that a library calls during training, which no checkpoint of the library contains. */
import { externalBase } from '../members'
import type { Facts } from '../facts'
import { childAt, nodesOf, parts, type SourceFile, type SyntaxNode } from '../syntax'
import { alternatives, type Value } from '../values'
import { assignedGlobals, CHANGING, isGradient, isLearningRate } from './carried'
import { flowOf, freeNames, identifiersIn } from './flow'
import { roleOfObject } from './objects'
import { isModule, originsOf } from './origins'
import { isRandom } from './random'
import { refuse } from './refusal'
import { changedParts, functionsOf, rootName, type ProjectFunction } from './region'

/** Refuses a program whose hooks keep something from one round to the next, or draw from a generator of their own. */
export function checkHooks(facts: Facts, library: string): void {
  const attributes = attributesOf(facts)
  for (const hook of hooksOf(facts)) {
    const program: Program = { hook, attributes, library }
    for (const name of assignedGlobals(hook.node))
      refuse(hook.source.path, hook.node, `assigns the global ${name}, which ${library} does not save`)
    for (const part of changedParts(hook.node)) checkPart(program, part)
    for (const call of callsIn(hook.node)) checkCall(program, call)
  }
  checkGenerators(facts, hooksOf(facts))
  checkMetrics(hooksOf(facts), attributes)
}

interface Program {
  hook: ProjectFunction
  /** The values of each attribute, by class and name. */
  attributes: ReadonlyMap<SyntaxNode, ReadonlyMap<string, readonly Value[]>>
  library: string
}

function attributesOf({ run }: Facts): Program['attributes'] {
  const found = new Map<SyntaxNode, Map<string, Value[]>>()
  for (const { definition, attributes } of run.instances) {
    const own = found.get(definition.node) ?? new Map<string, Value[]>()
    found.set(definition.node, own)
    for (const [name, value] of attributes) own.set(name, [...(own.get(name) ?? []), ...alternatives(value)])
  }
  return found
}

/** Methods in which a library prepares or ends a run, or tests: a resumed run goes through them again. */
const OUTSIDE = new Set([
  '__init__',
  '__post_init__',
  'build',
  'setup',
  'teardown',
  'prepare_data',
  'compile',
  'set_model',
  'configure_optimizers',
  'configure_model',
  'configure_callbacks',
  'train_dataloader',
  'val_dataloader',
  'on_fit_start',
  'on_fit_end',
  'on_train_start',
  'on_train_begin',
  'on_train_end',
  'before_training',
  'after_training',
  'state_dict',
  'load_state_dict',
])
const isOutside = (name: string): boolean =>
  OUTSIDE.has(name) || ['test', 'predict', 'on_test', 'on_predict'].some((word) => name.startsWith(word))

const nameOf = ({ node }: ProjectFunction): string => childAt(node, 'name')?.text ?? 'lambda'

/** Methods of objects that a library has, functions that it is given, and what these call, found by their names. */
function hooksOf({ run, events }: Facts): ProjectFunction[] {
  const all = run.project.sources.flatMap(({ root, path }) => functionsOf(root, run.project.source(path)!))
  const made = new Set([...run.instances].map(({ definition }) => definition.node))
  const ofLibrary = new Set(
    [...run.instances]
      .filter(({ definition }) => externalBase(definition) !== undefined)
      .map(({ definition }) => definition.node),
  )
  const given = new Set(
    events.flatMap(({ positional, named }) =>
      [...positional, ...named.values()]
        .flatMap((value) => (value.kind === 'list' ? value.items : [value]))
        .flatMap(alternatives)
        .flatMap((value) => (value.kind === 'function' ? [value.definition.node] : [])),
    ),
  )
  const reached = new Set<ProjectFunction>(run.project.sources.flatMap(lambdasOf))
  const names = new Set([...reached].flatMap(({ node }) => identifiersIn(node)).map(({ text }) => text))
  const isReached = (each: ProjectFunction): boolean => {
    const { node, owner } = each
    if (isOutside(nameOf(each))) return false
    if (owner === undefined) return given.has(node) || names.has(nameOf(each))
    if (!made.has(owner)) return false
    return ofLibrary.has(owner) || names.has(nameOf(each)) || nameOf(each).startsWith('__')
  }
  for (let size = -1; size < reached.size;) {
    size = reached.size
    for (const each of all) {
      if (reached.has(each) || !isReached(each)) continue
      reached.add(each)
      for (const { text } of identifiersIn(each.node)) names.add(text)
    }
  }
  return [...reached]
}

function lambdasOf(source: SourceFile): ProjectFunction[] {
  return [...nodesOf(source.root)]
    .filter(({ type }) => type === 'lambda')
    .map((node) => ({ node, source, owner: undefined }))
}

function checkPart(program: Program, part: SyntaxNode): void {
  const { hook, library } = program
  const { path } = hook.source
  if (part.text.endsWith('.requires_grad') || part.text.endsWith('.trainable'))
    refuse(path, part, `changes what is trained (${part.text}), which no checkpoint holds`)
  if (isLearningRate(part) || isGradient(part) || STOPS.has(part.text)) return
  const root = rootName(part)
  if (root === 'self' && hook.owner !== undefined) {
    const name = attributeOf(part)
    if (name !== undefined && !isAnew(hook, name))
      refuse(path, part, `keeps self.${name} from one round to the next, which ${library} does not save`)
    return
  }
  const object = childAt(part, 'object') ?? childAt(part, 'value')
  const origins = object === undefined ? [] : originsOf(hook.node, object)
  for (const origin of origins) checkOrigin(program, { call: part, origin, method: '' })
}

/** Attributes that end a training, which the suggested changes save. */
const STOPS = new Set(['self.model.stop_training', 'self.trainer.should_stop', 'trainer.should_stop'])

/** `self.memory.append(x)`, `losses.append(x)`, `self.average.mul_(0.9)` */
function checkCall(program: Program, call: SyntaxNode): void {
  const { hook } = program
  const called = childAt(call, 'function')!
  const method = childAt(called, 'attribute')?.text
  const object = childAt(called, 'object')
  if (method === undefined || object === undefined) return
  if (['requires_grad_', 'add_param_group', 'freeze', 'unfreeze'].includes(method))
    refuse(hook.source.path, call, `changes what is trained (${called.text}), which no checkpoint holds`)
  const isInPlace = method.endsWith('_') && !method.startsWith('_') && method !== 'zero_grad_'
  if (!CHANGING.has(method) && !isInPlace) return
  for (const origin of originsOf(hook.node, object)) checkOrigin(program, { call, origin, method })
}

/** Refuses a change of state that outlives a round: an attribute, or an object created outside the round. */
function checkOrigin(
  { hook, attributes, library }: Program,
  { call, origin, method }: { call: SyntaxNode; origin: SyntaxNode; method: string },
): void {
  const name = attributeOf(origin)
  if (name !== undefined && rootName(origin) === 'self' && hook.owner !== undefined) {
    const values = attributes.get(hook.owner)?.get(name) ?? []
    const isOfLibrary = values.length > 0 && (values.every(isOfNotes) || isSaved(hook, name, values))
    const isReset = method === 'update' && values.every(isMetric) && isLogged(hook.owner, name)
    if (isOfLibrary || isReset || isAnew(hook, name)) return
    refuse(
      hook.source.path,
      call,
      `keeps self.${name} from one round to the next, which ${library} does not save`,
    )
  }
  const root = rootName(origin)
  if (root === undefined || root === 'self' || isLocal(hook, root) || isModule(hook.source, root)) return
  refuse(
    hook.source.path,
    call,
    `changes ${origin.text}, which is made outside and which ${library} does not save`,
  )
}

/** Modules and buffers of a module are in its state. */
function isSaved({ owner, source }: ProjectFunction, name: string, values: readonly Value[]): boolean {
  const isOfModule =
    source.text.includes(`register_buffer("${name}"`) || source.text.includes(`register_buffer('${name}'`)
  const isCallback = childAt(owner!, 'superclasses')?.text.includes('Callback') === true
  return !isCallback && (isOfModule || values.every((value) => roleOfObject(value) === 'module'))
}

const callsIn = (node: SyntaxNode): SyntaxNode[] => [...nodesOf(node)].filter(({ type }) => type === 'call')

/** Log files and progress bars. */
const isOfNotes = (value: Value): boolean =>
  value.kind === 'made' &&
  ['open', 'tqdm', 'csv.', 'logging.', 'wandb', 'torch.utils.tensorboard'].some((prefix) =>
    value.call.name.startsWith(prefix),
  )

/** Lightning resets a metric that is logged as an object. */
const isMetric = (value: Value): boolean =>
  value.kind === 'made' && value.call.name.startsWith('torchmetrics.')
const isLogged = (owner: SyntaxNode, name: string): boolean =>
  callsIn(owner).some(
    (call) =>
      ['self.log', 'self.log_dict'].includes(childAt(call, 'function')!.text) &&
      parts(childAt(call, 'arguments')!).some(
        (argument) => (childAt(argument, 'value') ?? argument).text === `self.${name}`,
      ),
  )

/** A metric that nothing resets adds up all epochs. */
function checkMetrics(hooks: readonly ProjectFunction[], attributes: Program['attributes']): void {
  for (const hook of hooks)
    for (const [name, values] of attributes.get(hook.owner ?? hook.node) ?? []) {
      const [value] = values
      if (value?.kind !== 'made' || !isMetric(value) || isLogged(hook.owner!, name) || isAnew(hook, name))
        continue
      const isUsed = [...nodesOf(hook.node)].some(({ text }) => text === `self.${name}`)
      if (isUsed)
        refuse(
          value.call.file.path,
          value.call.node,
          `adds up the values of all epochs, as nothing resets self.${name}, and no checkpoint holds them`,
        )
    }
}

/** The `x` of `self.x[0].y`. */
function attributeOf(node: SyntaxNode): string | undefined {
  const inner = childAt(node, 'object') ?? childAt(node, 'value') ?? childAt(node, 'function')
  if (inner === undefined) return undefined
  return inner.text === 'self' ? childAt(node, 'attribute')?.text : attributeOf(inner)
}

/** Whether an attribute begins anew in each round: a hook at its beginning or end always empties it or gives it a new value. */
function isAnew({ owner, node }: ProjectFunction, attribute: string): boolean {
  const text = `self.${attribute}`
  const isOfTest = (name: string): boolean => name.includes('val') || name.includes('test')
  const methods = [...nodesOf(owner!)].filter(({ type }) => type === 'function_definition')
  return methods.some((each) => {
    const name = childAt(each, 'name')!.text
    const renewal = childAt(each, 'body')!.children.find((statement) => empties(statement, text))
    if (renewal === undefined) return false
    // An attribute that each step assigns before reading it belongs to that step.
    if (!EPOCH_HOOKS.some((word) => name.endsWith(word)))
      return !isOutside(name) && !isReadBefore(methods, { text, method: each, renewal })
    // The part with the validation may be left out in some rounds.
    return !isOfTest(name) || isOfTest(childAt(node, 'name')?.text ?? '')
  })
}

const EPOCH_HOOKS = ['epoch_start', 'epoch_end', 'epoch_begin']

/** Whether an attribute is read other than after its renewal, or at an end. */
function isReadBefore(
  methods: readonly SyntaxNode[],
  { text, method, renewal }: Record<'method' | 'renewal', SyntaxNode> & { text: string },
): boolean {
  return methods.some((each) => {
    const name = childAt(each, 'name')!.text
    if (name.endsWith('_end') || isOutside(name)) return false
    return [...nodesOf(each)].some(
      (node) => node.text === text && (each !== method || node.start < renewal.start),
    )
  })
}

function empties({ children }: SyntaxNode, text: string): boolean {
  const [first] = children
  if (first?.type === 'call') return [`${text}.clear()`, `${text}.reset()`].includes(first.text)
  if (first?.type !== 'assignment' || childAt(first, 'left')?.text !== text) return false
  const right = childAt(first, 'right')
  return right !== undefined && [...nodesOf(right)].every((each) => each.text !== text)
}

/** Whether a function creates the value of a name itself. A parameter may belong to the caller. */
function isLocal({ node, owner }: ProjectFunction, name: string): boolean {
  const { flow, locals } = flowOf(node)
  return locals.has(name) && (owner !== undefined || node.type === 'lambda' || flow.assigned.has(name))
}

/** Generators of random numbers that hooks draw from. */
function checkGenerators({ run, events }: Facts, hooks: readonly ProjectFunction[]): void {
  const kept = [...run.instances].flatMap(({ attributes }) =>
    [...attributes.values()].flatMap((value) => alternatives(value)).filter(isRandom),
  )
  for (const value of kept) {
    if (value.kind !== 'made') continue
    const { file, node } = value.call
    refuse(file.path, node, 'makes random numbers of its own for an object that the library calls')
  }
  const free = new Set(hooks.flatMap(({ node }) => [...freeNames(node).keys()]))
  for (const event of events) {
    const isMaker = isRandom({
      options: new Set(),
      origins: [],
      kind: 'made',
      name: event.name,
      call: event,
      attributes: new Map(),
    })
    if (!isMaker) continue
    const name = assignedTo(event.file.root, event.node)
    if (name !== undefined && free.has(name))
      refuse(event.file.path, event.node, `makes the random numbers ${name}, whose state is in no checkpoint`)
  }
}

function assignedTo(root: SyntaxNode, node: SyntaxNode): string | undefined {
  for (const each of nodesOf(root))
    if (each.type === 'assignment' && childAt(each, 'right') === node) return childAt(each, 'left')?.text
  return undefined
}
