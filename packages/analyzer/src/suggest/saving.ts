/** The lines that save and restore a loop: with PyTorch by its own format, with other libraries by pickle. */
import type { NamedObject, Role } from './objects'
import { childAt } from '../syntax'
import type { Carried } from './carried'
import type { Counter, TrainingLoop } from './loop'
import type { Line, Writing } from './writing'

export interface LoopState {
  training: TrainingLoop
  held: readonly NamedObject[]
  variables: readonly Carried[]
  isCounterRead: boolean
  /** How the file is written. */
  format: 'torch' | 'pickle'
  /** Whether the program draws random numbers of NumPy, itself or by a library. */
  isNumpy: boolean
}

/** An entry of the checkpoint. */
export interface Entry {
  key: string
  /** The expression that is saved. */
  saved: string
  /** Statements that restore it, from an expression. */
  restore: (from: string) => readonly Line[]
}

/** Writes both halves into the file of the loop. */
export function writeLoop(writing: Writing, state: LoopState): void {
  const { training } = state
  const { counter, loop, body, blocks } = training
  const os = writing.module('os')
  const library = writing.module(state.format)
  const names = {
    folder: writing.free('checkpoint_dir'),
    resume: writing.free('resume_from'),
    checkpoint: writing.free('checkpoint'),
    path: writing.free('checkpoint_path'),
    file: writing.free('checkpoint_file'),
    first: counter === undefined ? '' : firstName(writing, counter),
  }
  const entries = entriesOf(writing, state)
  const timed = training.isEpoch ? undefined : intervalOf(writing, os)
  const position = counter === undefined ? undefined : keyOf(counter.variable)
  const begin = counter?.first?.text ?? '0'
  writing.before(loop.node, blocks[0]!.children, [
    [0, `${names.folder} = ${os}.environ.get("CRUCIBLE_CHECKPOINT_DIR", "checkpoints")`],
    [0, `${os}.makedirs(${names.folder}, exist_ok=True)`],
    [0, `${names.resume} = ${os}.environ.get("CRUCIBLE_RESUME_FROM")`],
    ...(counter === undefined ? [] : [[0, `${names.first} = ${begin}`] as const]),
    [0, `if ${names.resume}:`],
    ...loadLines(state, { ...names, library }),
    ...entries.flatMap(({ key, restore }) => restore(`${names.checkpoint}["${key}"]`)),
    ...(position === undefined || counter === undefined
      ? []
      : positionLines({ state, from: `${names.checkpoint}["${position}"]`, first: names.first })),
    ...(timed === undefined ? [] : timed.before),
  ])
  if (counter !== undefined) beginAt(writing, counter, names.first)
  const depth = timed === undefined ? 0 : 1
  const saved: Line[] = [
    [
      depth,
      `${names.path} = ${os}.path.join(${names.folder}, "checkpoint.${state.format === 'torch' ? 'pt' : 'pkl'}")`,
    ],
    [depth, `with open(${names.path} + ".tmp", "wb") as ${names.file}:`],
    [depth + 1, `${library}.${state.format === 'torch' ? 'save' : 'dump'}(`],
    [depth + 2, '{'],
    ...(counter === undefined ? [] : [[depth + 3, `"${position}": ${counter.variable},`] as const]),
    ...entries.map(({ key, saved: value }) => [depth + 3, `"${key}": ${value},`] as const),
    [depth + 2, '},'],
    [depth + 2, `${names.file},`],
    [depth + 1, ')'],
    [depth + 1, `${names.file}.flush()`],
    [depth + 1, `${os}.fsync(${names.file}.fileno())`],
    [depth, `${os}.replace(${names.path} + ".tmp", ${names.path})`],
  ]
  const last = body.children.filter(({ type }) => type !== 'comment').at(-1)!
  writing.after(last, timed === undefined ? saved : [timed.when, ...saved, timed.after])
}

/** The name of the first round to do. */
export const firstName = (writing: Writing, { variable }: Counter): string =>
  writing.free(variable.startsWith('_') ? 'first_round' : `first_${variable}`)

/** Makes the loop begin there. */
export function beginAt(writing: Writing, counter: Counter, first: string): void {
  if (counter.first !== undefined) writing.replace(counter.first, first)
  else writing.insertAt(childAt(counter.range, 'arguments')!.start + 1, `${first}, `)
}

export function loadLines(
  state: LoopState,
  { library, checkpoint, resume, file }: Record<'library' | 'checkpoint' | 'resume' | 'file', string>,
): Line[] {
  if (state.format === 'torch')
    return [[1, `${checkpoint} = ${library}.load(${resume}, ${mapOf(state)}weights_only=False)`]]
  return [
    [1, `with open(${resume}, "rb") as ${file}:`],
    [2, `${checkpoint} = ${library}.load(${file})`],
  ]
}

export function positionLines({
  state,
  from,
  first,
}: {
  state: LoopState
  from: string
  first: string
}): Line[] {
  const { variable } = state.training.counter!
  return state.isCounterRead
    ? [
        [1, `${variable} = ${from}`],
        [1, `${first} = ${variable} + 1`],
      ]
    : [[1, `${first} = ${from} + 1`]]
}

interface Interval {
  before: readonly Line[]
  when: Line
  after: Line
}

/** Steps are too many to save each. */
function intervalOf(writing: Writing, os: string): Interval {
  const time = writing.module('time')
  const every = writing.free('save_every')
  const last = writing.free('saved_at')
  return {
    before: [
      [0, `${every} = float(${os}.environ.get("CRUCIBLE_CHECKPOINT_EVERY_SECONDS", "300"))`],
      [0, `${last} = ${time}.monotonic()`],
    ],
    when: [0, `if ${time}.monotonic() - ${last} >= ${every}:`],
    after: [1, `${last} = ${time}.monotonic()`],
  }
}

/** Without variables of unknown kind everything can be loaded to the CPU first: each object moves its own state to its device. */
const mapOf = ({ variables }: LoopState): string => (variables.length === 0 ? 'map_location="cpu", ' : '')

export const keyOf = (path: string): string => {
  const last = path.slice(path.lastIndexOf('.') + 1)
  return last.replaceAll('_', '') === '' ? 'round' : last
}

export function entriesOf(writing: Writing, state: LoopState, taken: readonly string[] = []): Entry[] {
  const { counter } = state.training
  const keys = new Set([...taken, ...(counter === undefined ? [] : [keyOf(counter.variable)])])
  const own = (path: string): string => {
    const short = keyOf(path)
    const key = keys.has(short) ? path : short
    keys.add(key)
    return key
  }
  const objects = state.held
    .filter(({ role }) => role !== 'loader')
    .map((held) => objectEntry(held, own(held.path)))
  const variables = state.variables.map(({ path, kind }) => ({
    key: own(path),
    saved: path,
    restore: (from: string): Line[] => [[1, RESTORES[kind](path, from)]],
  }))
  return [...objects, ...variables, ...randomEntries(writing, { own, ...state })]
}

const RESTORES: Readonly<Record<Carried['kind'], (path: string, from: string) => string>> = {
  value: (path, from) => `${path} = ${from}`,
  list: (path, from) => `${path}[:] = ${from}`,
  dict: (path, from) => `${path}.update(${from})`,
}

interface Access {
  saved: (path: string) => string
  restore: (path: string, from: string) => string
}

const STATE_DICT: Access = {
  saved: (path) => `${path}.state_dict()`,
  restore: (path, from) => `${path}.load_state_dict(${from})`,
}

const ACCESS: Readonly<Record<Exclude<Role, 'loader'>, Access>> = {
  module: STATE_DICT,
  optimizer: STATE_DICT,
  scheduler: STATE_DICT,
  scaler: STATE_DICT,
  estimator: {
    saved: (path) => `${path}.__getstate__()`,
    restore: (path, from) => `${path}.__setstate__(${from})`,
  },
  'torch-random': {
    saved: (path) => `${path}.get_state()`,
    restore: (path, from) => `${path}.set_state(${from})`,
  },
  'numpy-random': {
    saved: (path) => `${path}.bit_generator.state`,
    restore: (path, from) => `${path}.bit_generator.state = ${from}`,
  },
  'python-random': {
    saved: (path) => `${path}.getstate()`,
    restore: (path, from) => `${path}.setstate(${from})`,
  },
}

/** NumPy's `RandomState` has different methods from its newer generators. */
const OLD_NUMPY: Access = ACCESS['torch-random']

function objectEntry({ path, role, isOptional, value }: NamedObject, key: string): Entry {
  const isOld = value.kind === 'made' && value.call.method === 'RandomState'
  const { saved, restore } = isOld ? OLD_NUMPY : ACCESS[role as Exclude<Role, 'loader'>]
  if (!isOptional) return { key, saved: saved(path), restore: (from) => [[1, restore(path, from)]] }
  return {
    key,
    saved: `${saved(path)} if ${path} is not None else None`,
    restore: (from) => [
      [1, `if ${path} is not None:`],
      [2, restore(path, from)],
    ],
  }
}

interface RandomOptions {
  own: (path: string) => string
  isNumpy: boolean
  format: LoopState['format']
}

/** The global random states are restored last, because restoring other objects may draw random numbers. */
function randomEntries(writing: Writing, { own, isNumpy, format }: RandomOptions): Entry[] {
  const entry = (path: string, saved: string, restore: string): Entry => ({
    key: own(path),
    saved,
    restore: (from) => [[1, `${restore}(${from})`]],
  })
  const random = writing.module('random')
  const numpy = isNumpy ? writing.module('numpy', 'np') : undefined
  return [
    entry('python_random', `${random}.getstate()`, `${random}.setstate`),
    ...(numpy === undefined
      ? []
      : [entry('numpy_random', `${numpy}.random.get_state()`, `${numpy}.random.set_state`)]),
    ...(format === 'torch' ? torchEntries(writing, entry) : []),
  ]
}

function torchEntries(
  writing: Writing,
  entry: (path: string, saved: string, restore: string) => Entry,
): Entry[] {
  const torch = writing.module('torch')
  return [
    entry('torch_random', `${torch}.get_rng_state()`, `${torch}.set_rng_state`),
    entry('cuda_random', `${torch}.cuda.get_rng_state_all()`, `${torch}.cuda.set_rng_state_all`),
  ]
}
