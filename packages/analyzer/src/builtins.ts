/** Results of functions of Python and its standard library that carry values on. */
import { appendTo } from './containers'
import { entryOf, memberOfClass, memberOfValue } from './members'
import { truthOfGuards, type Frame, type Interpreter } from './interpreter'
import { BRACES, filled, joinedPath } from './operators'
import { CONFIGURATION_READERS, loaded, parentOf } from './files'
import { applyConfigurator } from './options/configurator'
import {
  alternatives,
  constant,
  constantOf,
  dict,
  list,
  namespace,
  numberOf,
  taintOf,
  textOf,
  unknown,
  type CallEvent,
  type ClassDefinition,
  type Value,
} from './values'

/** `undefined` for every other function. */
export function builtinResult(run: Interpreter, event: CallEvent, frame: Frame): Value | undefined {
  const [first, second] = event.positional
  if (CONFIGURATION_READERS.has(event.name)) return loaded(run, first, frame)
  if (event.method === 'HParams') return namespace(new Map(event.named))
  switch (event.name) {
    case 'int':
    case 'float':
    case 'bool':
    case 'str':
      return converted(event.name, first)
    case 'max':
    case 'min':
      return extreme(event)
    case 'isinstance':
      return isInstance(first, second)
    case 'hasattr':
      return hasattr(event)
    case 'len':
      return first?.kind === 'list' ? constant(first.items.length, first) : undefined
    case 'dict':
      return dict(entriesGiven(event))
    case 'argparse.Namespace':
    case 'types.SimpleNamespace':
    case 'SimpleNamespace':
      return namespace(entriesGiven(event))
    case 'collections.defaultdict':
      return first?.kind === 'extern' && first.name === 'list'
        ? { ...dict(new Map()), kind: 'dict', entries: new Map(), makes: () => list([]) }
        : dict(new Map())
    case 'setattr':
      return setattr(event)
    case 'torch.nn.utils.weight_norm':
    case 'torch.nn.utils.parametrizations.weight_norm':
      return first
    case 'list':
    case 'tuple':
    case 'sorted':
      return first?.kind === 'list' ? first : undefined
    case 'vars':
    case 'dataclasses.asdict':
    case 'asdict':
      return attributesOf(first)
    case 'getattr':
      return getattr(run, event, frame)
    case 'copy.deepcopy':
    case 'copy.copy':
    case 'edict':
    case 'easydict.EasyDict':
    case 'omegaconf.OmegaConf.create':
    case 'ml_collections.ConfigDict':
    case 'ml_collections.config_dict.ConfigDict':
      return first ?? (event.name.startsWith('copy') ? undefined : dict(new Map()))
    case 'omegaconf.OmegaConf.merge':
      return merged(event.positional)
    case 'functools.partial':
      return partial(run, event)
    case 'os.environ.get':
    case 'os.getenv':
      return environment(run, first, second)
    case 'os.path.join':
    case 'posixpath.join':
    case 'timm.utils.get_outdir':
      return joinedPath(event.positional)
    case 'pathlib.Path':
    case 'Path':
      return event.positional.length > 1 ? joinedPath(event.positional) : first
    case 'os.path.basename':
      return lastName(first)
    case 'torch.distributed.get_world_size':
      return run.processes === undefined ? undefined : constant(run.processes)
    case 'os.path.dirname':
      return parentOf(first)
    case 'sys.path.append':
    case 'sys.path.insert': {
      const folder = textOf(event.positional.at(-1))
      if (folder !== undefined) run.project.addFolder(folder)
      return constant(null)
    }
    case 'os.path.realpath':
    case 'os.path.normpath':
    case 'os.path.expanduser':
    case 'os.path.abspath':
      return first
    case 'os.chdir':
      run.changesFolder ||= truthOfGuards(event.guards) !== false
      return constant(null)
    case 'eval':
      return named(run, textOf(first), frame)
    case 'exec':
      return applyConfigurator(run, event, frame)
    default:
      return methodResult(event)
  }
}

/** The value of an expression that is a name with attributes. */
function named(run: Interpreter, text: string | undefined, frame: Frame): Value | undefined {
  const [first, ...others] = text !== undefined && /^\w+(?:\.\w+)*$/.test(text) ? text.split('.') : []
  const start = first === undefined ? undefined : frame.scope.find(first)
  return start && others.reduce((value, name) => memberOfValue(run, { value, name }, frame), start)
}

function lastName(path: Value | undefined): Value | undefined {
  const text = textOf(path)
  return text === undefined ? undefined : constant(text.slice(text.lastIndexOf('/') + 1), path)
}

/** Python's types for those of JavaScript. */
const TYPE_NAMES: Readonly<Record<string, readonly string[]>> = {
  string: ['str'],
  boolean: ['bool', 'int'],
  list: ['list', 'tuple', 'set'],
  dict: ['dict', 'collections.abc.Mapping', 'Mapping', 'typing.Mapping'],
}

/** Returns the Python types that a value may have; `undefined` if nothing is known of them. */
function typesOf(value: Value): readonly string[] | undefined {
  if (value.kind === 'list') return TYPE_NAMES['list']
  if (value.kind === 'dict' && value.isNamespace !== true) return TYPE_NAMES['dict']
  if (value.kind !== 'constant') return undefined
  if (value.value === null) return []
  // A whole number may be written as a float.
  if (typeof value.value === 'number') return Number.isInteger(value.value) ? ['int', 'float'] : ['float']
  return TYPE_NAMES[typeof value.value]
}

const PLAIN_TYPES = new Set(['str', 'int', 'float', 'bool', 'list', 'tuple', 'set', 'dict'])

function isInstance(value: Value | undefined, type: Value | undefined): Value | undefined {
  if (value === undefined || type === undefined) return undefined
  if (type.kind === 'list') {
    const answers = type.items.map((each) => constantOf(isInstance(value, each)))
    if (answers.includes(true)) return constant(true, value)
    return answers.every((each) => each === false) ? constant(false, value) : undefined
  }
  if (value.kind === 'instance' && type.kind === 'class')
    return isDerived(value.definition, type.definition) ? constant(true, value) : undefined
  if (type.kind !== 'extern') return undefined
  const types = typesOf(value)
  if (types === undefined) return undefined
  // `[...]` may stand for a list, a tuple or a set.
  if (value.kind === 'list' && types.includes(type.name)) return undefined
  if (value.kind === 'constant' && !PLAIN_TYPES.has(type.name) && value.value !== null) return undefined
  return constant(types.includes(type.name), value)
}

const isDerived = (definition: ClassDefinition, from: ClassDefinition): boolean =>
  definition === from ||
  definition.bases.some((base) => base.kind === 'class' && isDerived(base.definition, from))

/** Methods of texts that numbers and None lack. */
const STRING_MEMBERS = new Set([
  'isdigit',
  'lower',
  'upper',
  'split',
  'strip',
  'startswith',
  'endswith',
  'format',
])

/** Whether an object has an attribute, as far as its attributes are known. */
function hasattr({ positional: [object, key] }: CallEvent): Value | undefined {
  const name = textOf(key)
  if (object === undefined || name === undefined) return undefined
  if (object.kind === 'dict' && object.isNamespace === true)
    return constant(object.entries.has(name), object.entries.get(name))
  if (object.kind === 'constant')
    return typeof object.value === 'string'
      ? STRING_MEMBERS.has(name)
        ? constant(true, object)
        : undefined
      : STRING_MEMBERS.has(name)
        ? constant(false, object)
        : undefined
  if (object.kind === 'module') return object.scope.names.has(name) ? constant(true) : undefined
  if (object.kind !== 'instance') return undefined
  const has = object.attributes.has(name) || memberOfClass(object.definition, name) !== undefined
  return has ? constant(true) : undefined
}

function converted(name: string, value: Value | undefined): Value | undefined {
  if (value === undefined) return undefined
  const known = constantOf(value)
  if (known === undefined || known === null)
    return unknown(value, value.kind === 'unknown' ? value.text : undefined)
  if (name === 'str') return constant(String(known), value)
  if (name === 'bool') return constant(Boolean(known), value)
  const number = Number(known)
  if (Number.isNaN(number)) return unknown(value)
  return constant(name === 'int' ? Math.trunc(number) : number, value)
}

function extreme({ name, positional }: CallEvent): Value | undefined {
  const numbers = positional.map(numberOf)
  if (numbers.length < 2 || numbers.some((number) => number === undefined))
    return unknown(taintOf(...positional))
  return constant(Math[name === 'max' ? 'max' : 'min'](...(numbers as number[])), taintOf(...positional))
}

/** `dict(other, key=value)` */
const entriesGiven = ({ positional: [first], named }: CallEvent): Map<string, Value> =>
  new Map([...(first?.kind === 'dict' ? first.entries : []), ...named])

/** The attributes of an object as a dictionary. */
function attributesOf(value: Value | undefined): Value | undefined {
  if (value === undefined) return undefined
  if (value.kind === 'instance' || value.kind === 'made') return { ...dict(value.attributes) }
  return value.kind === 'dict' ? { ...dict(value.entries) } : undefined
}

function setattr({ positional: [object, key, value] }: CallEvent): Value {
  const name = textOf(key)
  for (const each of object === undefined || name === undefined ? [] : alternatives(object))
    if (each.kind === 'instance' || each.kind === 'made') each.attributes.set(name!, value ?? unknown())
  return constant(null)
}

function getattr(run: Interpreter, { positional: [object, key, fallback] }: CallEvent, frame: Frame): Value {
  const name = textOf(key)
  if (object === undefined || name === undefined) return unknown(taintOf(object, key))
  const found = memberOfValue(run, { value: object, name }, frame)
  return found.kind === 'extern' && found.receiver !== undefined ? (fallback ?? found) : found
}

function merged(values: readonly Value[]): Value {
  const entries = new Map<string, Value>()
  for (const value of values)
    if (value.kind === 'dict') for (const [key, entry] of value.entries) entries.set(key, entry)
  return { ...dict(entries), ...taintOf(...values) }
}

function partial(run: Interpreter, event: CallEvent): Value | undefined {
  const [first, second] = event.positional
  // `partial(jax.lax.scan, step)` calls the step.
  if (first?.kind === 'extern' && first.name.startsWith('jax.') && second?.kind === 'function')
    return { ...second, wrappers: [...second.wrappers, event] }
  if (first?.kind !== 'function') return undefined
  return { ...first, wrappers: [...first.wrappers, event] }
}

/** Set by launchers of several processes. */
const LAUNCHER_VARIABLES = new Set(['RANK', 'LOCAL_RANK', 'WORLD_SIZE', 'SLURM_PROCID', 'SLURM_LOCALID'])

/** Whether a variable is set; a launcher and Crucible set some that only they know. */
export function isSet(run: Interpreter, name: string): boolean | undefined {
  run.variables.add(name)
  const isGiven = LAUNCHER_VARIABLES.has(name) ? run.isLaunched : name.startsWith('CRUCIBLE_')
  return isGiven ? undefined : false
}

function environment(run: Interpreter, name: Value | undefined, fallback: Value | undefined): Value {
  const key = textOf(name) ?? ''
  // Crucible sets its variables itself, that of the checkpoint only after an interruption.
  if (isSet(run, key) === undefined) return unknown(undefined, `os.environ[${key}]`)
  // The environment is usually empty; a launcher sets variables of its own.
  return { ...(fallback ?? unknown(undefined, `os.environ[${key}]`)) }
}

function methodResult(event: CallEvent): Value | undefined {
  const { receiver, method, positional } = event
  if (receiver === undefined) return undefined
  if (truthOfGuards(event.guards) !== false && appendTo(event)) return constant(null)
  for (const each of alternatives(receiver)) {
    if (each.kind === 'list' && LIST_METHODS.has(method)) {
      if (truthOfGuards(event.guards) === false) continue
      ;(each.items as Value[]).push(
        ...(method === 'extend' && positional[0]?.kind === 'list' ? positional[0].items : positional),
      )
      return constant(null)
    }
    if (each.kind === 'dict' && SAME_ENTRIES.has(method)) return each
    if (each.kind === 'dict' && method === 'update') {
      const entries = positional[0]?.kind === 'dict' ? positional[0].entries : event.named
      for (const [key, value] of entries) each.entries.set(key, value)
      return constant(null)
    }
    if (each.kind === 'dict' && method === 'get') {
      const found = entryOf(each, positional[0] ?? unknown())
      return found.kind === 'unknown' ? (positional[1] ?? found) : found
    }
    if (each.kind === 'constant' && typeof each.value === 'string') {
      if (method === 'format') {
        const taint = taintOf(receiver, ...positional, ...event.named.values())
        return filled(each.value, BRACES, { items: positional, taint })
      }
      if (STRING_METHODS.has(method)) return each
      const separator = textOf(positional[0])
      if (method === 'split' && separator !== undefined && separator !== '' && positional.length === 1)
        return list(each.value.split(separator).map((part) => constant(part, receiver)))
      if (method === 'joinpath') return joinedPath([each, ...positional])
      if (method === 'isdigit') return constant(/^\d+$/.test(each.value), receiver)
      if (method === 'lower') return constant(each.value.toLowerCase(), receiver)
      if (method === 'upper') return constant(each.value.toUpperCase(), receiver)
      if (method === 'endswith' || method === 'startswith')
        return beginsOrEnds({ text: each.value, method, wanted: positional[0] }, receiver)
    }
    if (each.kind === 'unknown' && each.text !== undefined && method === 'format') {
      const taint = taintOf(receiver, ...positional, ...event.named.values())
      return filled(each.text, BRACES, { items: positional, taint })
    }
    // Moving an object between devices, or into a mode, gives the object.
    if ((each.kind === 'instance' || each.kind === 'made') && SAME_OBJECT.has(method)) return receiver
    if (each.kind === 'unknown' && each.origins.length > 0 && method === 'get') {
      const key = textOf(positional[0])
      return unknown({
        options: each.options,
        origins: each.origins.map((origin) => ({ ...origin, key: origin.key ?? key })),
      })
    }
    if (each.kind === 'made' && method === 'get' && each.origins.length > 0)
      return entryOf(each, positional[0] ?? unknown())
  }
  return undefined
}

function beginsOrEnds(
  { text, method, wanted }: { text: string; method: string; wanted: Value | undefined },
  taint: Value,
): Value {
  const words = (wanted?.kind === 'list' ? wanted.items : [wanted]).map(textOf)
  if (words.some((word) => word === undefined)) return unknown(taint)
  return constant(
    words.some((word) => (method === 'endswith' ? text.endsWith(word!) : text.startsWith(word!))),
    taint,
  )
}

/** Methods of configurations that give the same entries. */
const SAME_ENTRIES = new Set(['to_dict', 'lock', 'unlock', 'copy_and_resolve_references'])
const LIST_METHODS = new Set(['append', 'extend', 'add'])
const STRING_METHODS = new Set(['strip', 'rstrip', 'lstrip', 'resolve', 'absolute', 'as_posix'])
const SAME_OBJECT = new Set([
  'to',
  'cuda',
  'cpu',
  'train',
  'eval',
  'half',
  'float',
  'bfloat16',
  'double',
  'requires_grad_',
  'resolve',
  'expanduser',
])

/** Calls a function of the project, such as `get_config()` of a configuration file. */
export function callPlain(
  run: Interpreter,
  value: Value | undefined,
  frame: Frame,
  positional: readonly Value[] = [],
): Value | undefined {
  return value?.kind === 'function'
    ? run.callFunction(value, { positional, named: new Map(), frame })
    : undefined
}
