/** Calls that restore the state of an earlier run. */
import { HOOK } from '../calls'
import { openedPath } from '../files'
import { argument, isCalled, nameOf, type Facts } from '../facts'
import { taintOf, truthOf, type CallEvent, type Option, type Taint, type Value } from '../values'
import { argumentNode, contentsOf, itemsOf, partOfName, roleOf, type Part } from './contents'
import { impliedLoads } from './implied-loads'
import { situation, WHOLE, type Load, type Situation } from './load'
import {
  isAccelerator,
  isDeepSpeedEngine,
  isFabricCall,
  isGivenByCrucible,
  pathText,
  placeOf,
  placeOfSave,
} from './places'
import type { Save } from './save'
import { partsOfTrackable, savedItems } from './saves'

export function loadsOf(facts: Facts, saves: readonly Save[]): Load[] {
  const last = lastTraining(facts)
  const before = facts.events.filter(({ within }, at) => at <= last || within.includes(HOOK))
  const own = before.flatMap((event) => ownLoad(event) ?? objectLoad(event, saves) ?? [])
  return [...own, ...facts.training.flatMap((call) => impliedLoads(call, facts))]
}

/** Position of the last training call. Loads after it are for a test; calls made by the training come after it in the list. */
function lastTraining({ events, training }: Facts): number {
  const last = training.at(-1)
  return last === undefined ? events.length : events.lastIndexOf(last.event)
}

/** Functions that return an object as it was saved. */
const OBJECT_LOADERS = new Set([
  'pickle.load',
  'cloudpickle.load',
  'dill.load',
  'joblib.load',
  'numpy.load',
  'equinox.tree_deserialise_leaves',
])

/** Returns the load of an object with which the program continues: the object that it saves to that place derives from the loaded one. */
function objectLoad(event: CallEvent, saves: readonly Save[]): Load | undefined {
  if (!OBJECT_LOADERS.has(event.name)) return undefined
  const load = { ...situation(event), isWhole: false, path: openedPath(event.positional[0]) }
  const derived = saves
    .filter((save) => libraryOf(save.event) === libraryOf(event) && isSamePlace(load.path, save))
    .flatMap((save) => savedItems(save.event))
    .filter(({ value }) => value.origins.some(({ call }) => call === event))
  return derived.length === 0 ? undefined : { ...load, parts: new Set(derived.map(({ part }) => part)) }
}

const libraryOf = ({ name }: CallEvent): string => name.slice(0, name.indexOf('.'))

/** Whether a path is that of a save, which may have an ending such as `.tmp` until it is complete. */
function isSamePlace(path: Value | undefined, save: Save): boolean {
  const saved = openedPath(placeOfSave(save).path)
  if ([...(path?.options ?? [])].some((option) => saved?.options.has(option))) return true
  if (isGivenByCrucible(pathText(path))) return true
  const texts = [pathText(path), pathText(saved)].map((text) => text?.split('{')[0])
  return texts.every((text) => text !== undefined && text !== '') && texts[1]!.startsWith(texts[0]!)
}

function ownLoad(event: CallEvent): Load | undefined {
  const { method, name } = event
  if (method === 'load_state_dict' || method === '__setstate__') return stateDictLoad(event)
  if (method === 'assign') return variableLoad(event)
  const base = { ...situation(event), isWhole: false, path: event.positional[0] }
  if (method === 'load_state' && (isAccelerator(event) || name.startsWith('?')))
    return { ...base, parts: new Set(WHOLE), path: argument(event, 'input_dir', 0) }
  if (method === 'load_checkpoint' && isDeepSpeedEngine(event)) return { ...base, parts: new Set(WHOLE) }
  if (method === 'load' && isFabricCall(event)) {
    const state = argument(event, 'state', 1)
    return state === undefined
      ? undefined
      : { ...base, parts: contentsOf(state, event.argumentTexts[1]), path: event.positional[0] }
  }
  if (name.startsWith('timm.') && (method === 'resume_checkpoint' || method === 'resume_task_checkpoint'))
    return { ...base, parts: new Set(WHOLE), path: argument(event, 'checkpoint_path', 1) }
  if (method === 'restore' || method === 'read') return restoreLoad(event, base)
  if (name.startsWith('flax.training.checkpoints.restore_checkpoint')) {
    const target = argument(event, 'target', 1)
    const named = itemsOf(target, argumentNode(event, 1)).map(({ part }) => part)
    const parts = new Set([...contentsOf(target, event.argumentTexts[1]), ...named])
    parts.delete('step')
    return { ...base, parts }
  }
  if (name === 'torch.distributed.checkpoint.load')
    return { ...base, parts: contentsOf(argument(event, 'state_dict', 0), event.argumentTexts[0]) }
  if (name.startsWith('torch.distributed.checkpoint.state_dict.set_')) return distributedLoad(event)
  if (name === 'safetensors.torch.load_model')
    return { ...base, parts: new Set(['model']), path: argument(event, 'filename', 1) }
  if (method === 'from_pretrained') {
    // A folder that the program looks for, rather than a published model.
    const path = event.positional.slice(0, 2).find(({ origins }) => origins.length > 0)
    return path === undefined ? undefined : { ...base, parts: new Set(['model']), path }
  }
  if (method === 'load_weights') return { ...base, parts: new Set(['model']) }
  if (name.startsWith('keras.') && method === 'load_model')
    return { ...base, parts: new Set(['model', 'optimizer']) }
  return undefined
}

/** `set_state_dict(model, optimizer, model_state_dict=..., optim_state_dict=...)` */
function distributedLoad(event: CallEvent): Load | undefined {
  const given = {
    model: event.named.get('model_state_dict') ?? argument(event, 'model_state_dict', 1),
    optimizer: event.named.get('optim_state_dict') ?? argument(event, 'optim_state_dict', 2),
  }
  const origins = Object.entries(given).flatMap(([part, value]) => {
    const origin = value?.origins.find(({ call }) => LOADERS.has(call.method))
    return origin === undefined ? [] : [{ part: part as Part, origin }]
  })
  const [first] = origins
  if (first === undefined) return undefined
  return {
    ...situation(event),
    isWhole: false,
    parts: new Set(origins.map(({ part }) => part)),
    path: placeOf(first.origin.call, undefined).path,
  }
}

/** `optimizer.load_state_dict(checkpoint['optimizer'])`, `estimator.__setstate__(checkpoint['estimator'])` */
function stateDictLoad(event: CallEvent): Load | undefined {
  const [value] = event.positional
  // A new dictionary with the entries of a loaded one.
  const { origins } = value?.kind === 'dict' ? taintOf(value, ...value.entries.values()) : taintOf(value)
  const origin = origins.find(({ call }) => LOADERS.has(call.method))
  if (origin === undefined || origin.call.method === 'load_state_dict_from_url') return undefined
  const role = roleOf(event.receiver, event.receiverText)
  return {
    ...situation(event),
    isWhole: false,
    source: origin.call,
    parts: new Set([role === 'step' ? 'model' : role]),
    path: origin.call.positional[0] ?? origin.call.named.get('f'),
  }
}

/** Returns the load of `variable.assign(value)` of Keras, with a value of a loaded file, whose entry names the part. */
function variableLoad(event: CallEvent): Load | undefined {
  const origin = event.positional[0]?.origins.find(({ call }) => LOADERS.has(call.method))
  if (origin?.key === undefined) return undefined
  const { path } = placeOf(origin.call, origin.call.positional[0])
  return { ...situation(event), isWhole: false, path, parts: new Set([partOfName(origin.key) ?? 'model']) }
}

/** Functions that read a file of an earlier run. */
const LOADERS = new Set([
  'load',
  'load_file',
  'load_checkpoint',
  'load_base_checkpoint',
  'restore',
  'unpickle',
  'torch_load',
])

function restoreLoad(event: CallEvent, base: Situation): Load | undefined {
  const { name, receiver } = event
  if (name.startsWith('tensorflow.train.Checkpoint')) {
    const parts = new Set(partsOfTrackable(receiver))
    // `ckpt.restore(None)` of a first run does nothing, so that this is how a run begins and continues.
    return { ...base, parts, isWhole: parts.has('step') }
  }
  if (!name.includes('Checkpoint') && !nameOf(receiver).includes('Checkpoint')) return undefined
  const parts = new Set<Part>(['model'])
  const targets = [...event.positional.slice(1), ...event.named.values()]
  const inner = targets.flatMap((target) => (target.kind === 'made' ? target.call.positional : [target]))
  inner.forEach((value) => {
    for (const part of contentsOf(value, '')) if (part !== 'step') parts.add(part)
  })
  return { ...base, parts }
}

/** Whether the start of the training comes from the earlier run: from its file, or from the option that names it. */
export function restoresStep(facts: Facts, load: Load): boolean {
  const options = new Set([...load.options, ...(load.path?.options ?? [])])
  const listed = new Set((load.path?.origins ?? []).map(({ call }) => call))
  const depends = (taint: Taint): boolean =>
    taint.origins.some(({ call, key }) => call === load.event || listed.has(call) || isStateOf(call, key)) ||
    [...taint.options].some((option) => options.has(option) && isStart(taint))
  const loops = [...facts.loops]
  if (
    loops.some(
      (loop) => depends(startOf(loop.iterated)) || loop.breaks.some(({ condition }) => depends(condition)),
    )
  )
    return true
  const inLoops = facts.events.filter((event) => event.loops.some((loop) => facts.loops.has(loop)))
  if (
    inLoops.some(({ guards }) =>
      guards.some(({ condition }) => condition.origins.length > 0 && depends(condition)),
    )
  )
    return true
  return facts.training.some(
    ({ engine, event }) =>
      engine === 'keras' && depends(event.named.get('initial_epoch') ?? { options: new Set(), origins: [] }),
  )
}

/** The options with which the training starts where a loaded file says; none if it starts there anyway. */
export function optionsOfStart({ training }: Facts): Option[] {
  const loops = training.flatMap(({ engine, event }) =>
    engine === 'own' && isCalled(event) ? event.loops : [],
  )
  return [...new Set(loops)].flatMap((loop) => {
    const start = startOf(loop.iterated)
    // The start is a constant without these options.
    const isConstant = 'kind' in start && (start as Value).kind === 'constant'
    return isConstant && start.origins.length > 0 ? [...start.options].filter(isOff) : []
  })
}

const isOff = ({ default: initial, given }: Option): boolean =>
  given === undefined && truthOf(initial) === false

/** A number read from a loaded file, rather than the file's existence. */
function isStateOf(call: CallEvent, key: string | undefined): boolean {
  return (
    (LOADERS.has(call.method) ||
      call.method.startsWith('restore') ||
      call.method.startsWith('latest') ||
      call.method.startsWith('load')) &&
    (call.positional.length > 0 || call.method.startsWith('latest') || key !== undefined)
  )
}

const isStart = (taint: Taint): boolean => taint.options.size > 0

/** The value at which a loop begins: the first of two arguments of `range`. */
function startOf(iterated: Value): Taint {
  if (iterated.kind !== 'made') return iterated
  const { method, positional } = iterated.call
  const [first, second] = positional
  if (method === 'range' || method === 'trange')
    return second === undefined ? { options: new Set(), origins: [] } : first!
  return first === undefined ? iterated : startOf(first)
}
