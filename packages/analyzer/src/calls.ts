/** Calls. */
import { builtinResult } from './builtins'
import { callSequence } from './containers'
import { importDynamically } from './imports'
import { externalBase, memberOfClass } from './members'
import { canonicalName } from './names'
import { truthOfGuards, type Call, type Frame, type Interpreter } from './interpreter'
import { optionsResult } from './options/options'
import { loadStates, withStates } from './stateful'
import { childAt, parts, type SyntaxNode } from './syntax'
import {
  alternatives,
  CONSTRUCTION,
  either,
  extern,
  fieldDefault,
  taintOf,
  unknown,
  withTaint,
  type CallEvent,
  type Taint,
  type Value,
} from './values'

export interface Arguments {
  positional: Value[]
  named: Map<string, Value>
}

export function callNode(run: Interpreter, node: SyntaxNode, frame: Frame): Value {
  const functionNode = childAt(node, 'function')!
  if (functionNode.text === 'super') return superValue(frame)
  const callee = run.evaluate(functionNode, frame)
  if (callee.kind === 'extern' && DYNAMIC_IMPORTS.has(callee.name)) return importDynamically(run, node, frame)
  const given = argumentsOf(run, node, frame)
  const results = alternatives(callee).map((each) => dispatch(run, { callee: each, node, given }, frame))
  return results.reduce(either)
}

const DYNAMIC_IMPORTS = new Set(['importlib.import_module', '__import__'])

function superValue(frame: Frame): Value {
  const { self } = frame
  if (self?.kind !== 'instance') return unknown()
  const owner = frame.stack.at(-1)?.owner ?? self.definition
  const base = owner.bases[0]
  if (base?.kind === 'class') return { ...self, definition: base.definition }
  const name = externalBase(owner)
  return name === undefined ? unknown() : extern(`${name}()`, self)
}

function argumentsOf(run: Interpreter, node: SyntaxNode, frame: Frame): Arguments {
  const given: Arguments = { positional: [], named: new Map() }
  const list = childAt(node, 'arguments')
  if (list === undefined) return given
  // `f(x for x in y)` has the generator in place of the list.
  if (list.type !== 'argument_list') return { ...given, positional: [run.evaluate(list, frame)] }
  for (const argument of parts(list)) {
    if (argument.type === 'keyword_argument') {
      given.named.set(childAt(argument, 'name')!.text, run.evaluate(childAt(argument, 'value')!, frame))
    } else if (argument.type === 'dictionary_splat') {
      const value = run.evaluate(parts(argument)[0]!, frame)
      if (value.kind === 'dict') for (const [key, entry] of value.entries) given.named.set(key, entry)
    } else if (argument.type === 'list_splat') {
      const value = run.evaluate(parts(argument)[0]!, frame)
      given.positional.push(...(value.kind === 'list' ? value.items : [value]))
    } else given.positional.push(run.evaluate(argument, frame))
  }
  return given
}

export function dispatch(run: Interpreter, { callee, node, given }: Call, frame: Frame): Value {
  switch (callee.kind) {
    case 'function':
      return run.callFunction(callee, { ...given, frame })
    case 'class':
      return instantiate(run, { callee, node, given }, frame)
    case 'instance':
      return callInstance(run, { callee, node, given }, frame)
    case 'made': {
      const event = record(run, { callee: extern(`${callee.name}()`, callee), node, given }, frame)
      return callSequence(run, { callee, node, given }, frame) ?? made(event)
    }
    case 'extern':
      return callExtern(run, { callee, node, given }, frame)
    case 'unknown':
    case 'constant':
    case 'list':
    case 'dict':
    case 'module':
    case 'either':
      return made(record(run, { callee: withTaint(extern('?', callee), callee), node, given }, frame))
  }
}

function callExtern(
  run: Interpreter,
  call: Call & { callee: Extract<Value, { kind: 'extern' }> },
  frame: Frame,
): Value {
  const name = canonicalName(call.callee.name)
  const event = record(run, { ...call, given: withStates(run, { name, given: call.given }, frame) }, frame)
  loadStates(run, event, frame)
  const result = optionsResult(run, event, frame) ?? builtinResult(run, event, frame)
  if (result !== undefined) return result
  const functions = [...event.positional, ...event.named.values()].filter(
    (value) => value.kind === 'function',
  )
  const [first] = functions
  // The function gives each leaf of the trees another value.
  if (event.method === 'tree_map' || event.name === 'jax.tree.map') return made(event)
  if (first !== undefined) {
    if (CALLS_ITS_ARGUMENT.has(event.method)) return callGiven(run, { event, called: first }, frame)
    if (event.positional[0] === first) return { ...first, wrappers: [...first.wrappers, event] }
  }
  if (event.method === '__init__' && event.receiver?.kind === 'instance')
    event.receiver.attributes.set(CONSTRUCTION, made(event))
  for (const value of [...event.positional, ...event.named.values()]) escape(run, { value, event }, frame)
  return made(event)
}

/** Functions of libraries that call a function which they are given; the others wrap it. */
const CALLS_ITS_ARGUMENT = new Set([
  'spawn',
  'Process',
  'Thread',
  'Fire',
  'run',
  'map',
  'submit',
  'notebook_launcher',
  'launch',
  'elastic_launch',
  'optimize',
  'scan',
  'fori_loop',
  'while_loop',
  'TorchTrainer',
  'agent',
  'start_processes',
  'starmap',
  'cli',
  'CLI',
])
/** Functions among these that pass the index of the process first. */
const PASSES_RANK = new Set(['spawn', 'start_processes'])

function callGiven(
  run: Interpreter,
  { event, called }: { event: CallEvent; called: Extract<Value, { kind: 'function' }> },
  frame: Frame,
): Value {
  const given = event.named.get('args') ?? event.positional.find((value) => value.kind === 'list')
  const items = given?.kind === 'list' ? given.items : []
  const positional = PASSES_RANK.has(event.method) ? [unknown(), ...items] : items
  const result = run.callFunction(called, { positional, named: new Map(), frame })
  // `dataset.map(f)` is a data set, not an item of it.
  return event.method === 'map' ? made(event) : result
}

/** Runs the hooks of an object that a library gets, because the library may call them. */
function escape(run: Interpreter, { value, event }: { value: Value; event: CallEvent }, frame: Frame): void {
  if (value.kind === 'list') for (const item of value.items) escape(run, { value: item, event }, frame)
  if (value.kind !== 'instance' || externalBase(value.definition) === undefined) return
  if (!HOOKED_BASES.some((name) => externalBase(value.definition)!.endsWith(name))) return
  const isTraining = TRAINING_CALLS.has(event.method)
  const key = value.definition
  if (run.hooked.has(key) && !isTraining) return
  run.hooked.add(key)
  for (const [name, member] of allMembers(value.definition)) {
    if (member.kind !== 'function' || name.startsWith('__')) continue
    run.callFunction(
      { ...member, self: value },
      { positional: [], named: new Map(), frame: { ...frame, within: [...frame.within, HOOK] } },
    )
  }
}

/** Stands for the library between the program and its hooks. */
export const HOOK = '<library>'
const HOOKED_BASES = ['Module', 'Callback', 'Trainer', 'Model', 'DataModule', 'TrainState']
const TRAINING_CALLS = new Set(['fit', 'train'])

function allMembers(definition: Extract<Value, { kind: 'class' }>['definition']): Map<string, Value> {
  const inherited = definition.bases.flatMap((base) =>
    base.kind === 'class' ? [...allMembers(base.definition)] : [],
  )
  return new Map([...inherited, ...definition.members])
}

function instantiate(run: Interpreter, { callee, node, given }: Call, frame: Frame): Value {
  if (callee.kind !== 'class') return unknown()
  const { definition } = callee
  const instance = {
    ...taintOf(),
    kind: 'instance' as const,
    definition,
    attributes: new Map<string, Value>(),
  }
  if (truthOfGuards(frame.guards) !== false) run.instances.add(instance)
  run.births.set(instance.attributes, frame.loops)
  fillFields(definition, given, instance.attributes)
  const base = externalBase(definition)
  if (base !== undefined) {
    const event = record(run, { callee: extern(base), node, given }, frame)
    instance.attributes.set(CONSTRUCTION, made(event))
    // `class Settings(dict)` has the entries as attributes too.
    const [first] = given.positional
    if (base === 'dict' && first?.kind === 'dict')
      for (const [key, value] of first.entries) instance.attributes.set(key, value)
  }
  const init = memberOfClass(definition, '__init__')
  if (init?.kind === 'function') {
    run.callFunction({ ...init, self: instance }, { ...given, frame })
    if (keepsItsArguments(init.definition.node))
      for (const [key, value] of given.named)
        if (!instance.attributes.has(key)) instance.attributes.set(key, value)
  }
  return instance
}

/** Whether a constructor takes any named arguments, and goes over them: an object of settings. */
function keepsItsArguments(init: SyntaxNode): boolean {
  const [, rest, ...others] = childAt(init, 'parameters')?.children ?? []
  const name = rest?.type === 'dictionary_splat_pattern' ? rest.text.slice(2) : undefined
  return name !== undefined && others.length === 0 && init.text.includes(`${name}.items()`)
}

/** Acts like the generated constructor of a dataclass. */
function fillFields(
  definition: Extract<Value, { kind: 'class' }>['definition'],
  given: Arguments,
  attributes: Map<string, Value>,
): void {
  for (const base of definition.bases)
    if (base.kind === 'class') fillFields(base.definition, given, attributes)
  definition.fields.forEach(({ name, value }, at) => {
    const chosen =
      given.named.get(name) ?? given.positional[at] ?? (value === undefined ? undefined : fieldDefault(value))
    if (chosen !== undefined) attributes.set(name, chosen)
  })
}

function callInstance(run: Interpreter, { callee, node, given }: Call, frame: Frame): Value {
  if (callee.kind !== 'instance') return unknown()
  for (const name of ['__call__', 'forward', 'call']) {
    const member = memberOfClass(callee.definition, name)
    if (member?.kind === 'function') return run.callFunction({ ...member, self: callee }, { ...given, frame })
  }
  const base = externalBase(callee.definition) ?? callee.definition.name
  return made(record(run, { callee: extern(`${base}()()`, callee), node, given }, frame))
}

/** Keeps a call that leaves the project. */
function record(run: Interpreter, { callee, node, given }: Call, frame: Frame): CallEvent {
  const name = canonicalName(callee.kind === 'extern' ? callee.name : '?')
  const functionNode = childAt(node, 'function')
  const object = functionNode?.type === 'attribute' ? childAt(functionNode, 'object') : undefined
  const list = childAt(node, 'arguments')
  const event: CallEvent = {
    name,
    method: name.slice(name.lastIndexOf('.') + 1),
    receiver: callee.kind === 'extern' ? callee.receiver : undefined,
    receiverText: object?.text ?? '',
    positional: given.positional,
    named: given.named,
    argumentTexts: list === undefined ? [] : parts(list).map(({ text }) => text),
    node,
    file: frame.scope.file,
    loops: frame.loops,
    guards: frame.guards,
    within: frame.within,
  }
  run.record(event)
  return event
}

function made(event: CallEvent): Value {
  const receiver =
    event.receiver === undefined
      ? undefined
      : { options: event.receiver.options, origins: event.receiver.origins }
  const given = taintOf(receiver, ...event.positional, ...event.named.values())
  const own: Taint = isLoading(event.method)
    ? { options: new Set(), origins: [{ call: event, key: undefined }] }
    : taintOf()
  return { ...taintOf(given, own), kind: 'made', name: `${event.name}()`, call: event, attributes: new Map() }
}

/** Whether a function may read files of an earlier run. */
function isLoading(method: string): boolean {
  const name = method.toLowerCase()
  return LOADING_WORDS.some((word) => name.includes(word))
}

const LOADING_WORDS = [
  'load',
  'restore',
  'checkpoint',
  'latest',
  'exists',
  'isfile',
  'isdir',
  'listdir',
  'scandir',
  'glob',
  'deserialise',
  'deserialize',
  'from_bytes',
  'is_file',
  'is_dir',
  'iterdir',
  'unpickle',
  'num_boosted_rounds',
]
