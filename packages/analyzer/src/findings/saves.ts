/** Calls that save a checkpoint. */
import { argument, isHuggingFaceTrainer, lastPart, nameOf, optionsOf, type Facts } from '../facts'
import { truthOfGuards } from '../interpreter'
import { numberOf, type CallEvent, type Every, type Value } from '../values'
import { argumentNode, contentsOf, itemsOf, type Item, type Part } from './contents'
import { boosterSaves, huggingFaceSaves, kerasSaves, lightningSaves, megatronSaves } from './implied-saves'
import { isFabricCall } from './places'
import { ALL, inWords, WEIGHTS, type Save } from './save'

export function savesOf(facts: Facts): Save[] {
  const own = facts.events.flatMap((event) => {
    const saved = partsSaved(event)
    return saved === undefined || saved.size === 0 ? [] : [ownSave({ event, parts: saved }, facts)]
  })
  return [
    ...own,
    ...facts.training.flatMap(({ engine, event }) => {
      if (engine === 'lightning') return lightningSaves(event)
      if (engine === 'hugging-face') return huggingFaceSaves(event)
      if (engine === 'megatron') return megatronSaves(event, facts.run)
      if (engine === 'estimator') return boosterSaves(event)
      return engine === 'keras' ? kerasSaves(event) : []
    }),
  ]
}

/** Functions of libraries that save, with the saved parts; `object` reads them from the argument at a position. */
const SAVERS: Readonly<Record<string, ReadonlySet<Part> | { object: number; name?: string }>> = {
  'torch.save': { object: 0, name: 'obj' },
  'torch_xla.core.xla_model.save': { object: 0 },
  'torch.distributed.checkpoint.save': { object: 0, name: 'state_dict' },
  'torch.distributed.checkpoint.async_save': { object: 0, name: 'state_dict' },
  'torch.distributed.checkpoint.save_state_dict': { object: 0, name: 'state_dict' },
  'safetensors.torch.save_file': WEIGHTS,
  'safetensors.torch.save_model': WEIGHTS,
  'joblib.dump': { object: 0 },
  'pickle.dump': { object: 0 },
  'cloudpickle.dump': { object: 0 },
  'paddle.save': { object: 0 },
  'flax.training.checkpoints.save_checkpoint': { object: 1, name: 'target' },
  'flax.training.checkpoints.save_checkpoint_multiprocess': { object: 1, name: 'target' },
  'equinox.tree_serialise_leaves': { object: 1 },
}

/** Methods that save, on objects of any class. */
const SAVING_METHODS: Readonly<Record<string, ReadonlySet<Part>>> = {
  save_state: ALL,
  save_checkpoint: ALL,
  save_pretrained: WEIGHTS,
  save_lora_adapter: WEIGHTS,
  save_lora_weights: WEIGHTS,
  save_model: WEIGHTS,
  save_weights: WEIGHTS,
}

function partsSaved(event: CallEvent): ReadonlySet<Part> | undefined {
  const saver = SAVERS[event.name]
  if (saver !== undefined) {
    if (saver instanceof Set) return saver as ReadonlySet<Part>
    const { object, name } = saver as { object: number; name?: string }
    return objectParts(event, argument(event, name ?? 'obj', object), object)
  }
  const { method, name } = event
  if (method === 'save') return partsOfSaveMethod(event)
  const [written] = event.positional
  if (method === 'write' && written?.kind === 'made' && written.call.name === 'flax.serialization.to_bytes')
    return objectParts(written.call, written.call.positional[0], 0)
  if (method === 'write' && name.startsWith('tensorflow.train.Checkpoint'))
    return partsOfTrackable(event.receiver)
  // Tokenizers and processors are saved the same way, and configurations.
  if (method === 'save_pretrained' && !isModelReceiver(event)) return undefined
  if (method === 'save_model' && isHuggingFaceTrainer(event.receiver)) return WEIGHTS
  return SAVING_METHODS[method]
}

/** Returns the arguments of a saving function, by their parts. */
export function savedItems(event: CallEvent): Item[] {
  const saver = SAVERS[event.name]
  if (saver === undefined || saver instanceof Set) return []
  const { object, name } = saver as { object: number; name?: string }
  return itemsOf(argument(event, name ?? 'obj', object), argumentNode(event, object))
}

function isModelReceiver({ receiver, receiverText }: CallEvent): boolean {
  const text = receiverText.toLowerCase()
  if (['tok', 'processor', 'extractor', 'config', 'scheduler'].some((word) => lastPart(text).includes(word)))
    return false
  return !nameOf(receiver).includes('Tokenizer')
}

function objectParts(event: CallEvent, value: Value | undefined, position: number): ReadonlySet<Part> {
  const text = event.argumentTexts[position] ?? ''
  const named = itemsOf(value, argumentNode(event, position)).map(({ part }) => part)
  const parts = new Set([...contentsOf(value, text), ...named])
  if (parts.size > 0 || !event.name.endsWith('.dump')) return parts
  // A dumped dictionary of parameters, or an estimator under any name.
  const isModel = ['model', 'param', 'clf', 'agent', 'estimator', 'pipe', 'policy', 'best_', 'forest'].some(
    (word) => text.toLowerCase().includes(word),
  )
  return isModel ? WEIGHTS : parts
}

function partsOfSaveMethod(event: CallEvent): ReadonlySet<Part> | undefined {
  const { name, receiver } = event
  const owner = nameOf(receiver)
  if (isFabricCall(event)) return contentsOf(argument(event, 'state', 1), event.argumentTexts[1])
  if (name.startsWith('tensorflow.train.Checkpoint')) return partsOfTrackable(receiver)
  if (name.includes('CheckpointManager') || owner.includes('CheckpointManager')) {
    const given = event.named.get('args') ?? event.positional[1] ?? event.named.get('items')
    const inner = given?.kind === 'made' ? given.call : undefined
    return objectParts(
      inner ?? event,
      inner === undefined ? given : inner.positional[0],
      inner === undefined ? 1 : 0,
    )
  }
  if (owner.startsWith('keras.')) return ALL
  if (owner.startsWith('stable_baselines3.')) return WEIGHTS
  return undefined
}

/** `tf.train.Checkpoint(model=..., optimizer=...)`, and a manager of one. */
export function partsOfTrackable(value: Value | undefined): ReadonlySet<Part> {
  if (value?.kind !== 'made') return new Set()
  const { call } = value
  if (call.name.endsWith('CheckpointManager'))
    return partsOfTrackable(call.positional[0] ?? call.named.get('checkpoint'))
  const parts = new Set<Part>()
  for (const [key, entry] of call.named)
    for (const part of contentsOf({ ...entry, kind: 'dict', entries: new Map([[key, entry]]) }))
      parts.add(part)
  return parts
}

function ownSave({ event, parts }: { event: CallEvent; parts: ReadonlySet<Part> }, facts: Facts): Save {
  const isInLoop = event.loops.some((loop) => facts.loops.has(loop))
  const isHook = event.within.some((name) => HOOKS.some((hook) => name.startsWith(hook)))
  return {
    event,
    parts,
    isPeriodic: isInLoop || isHook,
    truth: truthOfGuards(event.guards),
    options: optionsOf(event),
    every: isInLoop ? everyOf(event, facts) : undefined,
    path: pathOfSave(event),
  }
}

/** The file of a saving function is its second argument, that of a saving method its first. */
function pathOfSave(event: CallEvent): Value | undefined {
  if (event.method === 'write') return event.receiver
  const named = ['f', 'filename', 'filepath', 'path'].map((name) => event.named.get(name))
  return (
    named.find((value) => value !== undefined) ?? event.positional[SAVERS[event.name] === undefined ? 0 : 1]
  )
}

/** Methods that a library calls while it trains. */
const HOOKS = [
  'on_epoch',
  'on_train_epoch',
  'on_train_batch',
  'on_validation',
  'on_step',
  'on_save',
  'on_batch',
  'training_epoch_end',
  'validation_epoch_end',
]

function everyOf(event: CallEvent, facts: Facts): string | undefined {
  const counted = event.guards
    .map(({ condition }) => everyIn(condition))
    .filter((every) => every !== undefined && !isOfProcess(every.unitText))
  const last = counted.at(-1)
  const loop = event.loops.filter((each) => facts.loops.has(each)).at(-1)
  if (last !== undefined) {
    const count = numberOf(last.count)
    return count === undefined ? undefined : inWords(count, unitOf(last.unitText, event, facts))
  }
  // A save that depends on the run, such as on a better score, has no count.
  if (event.guards.some((guard) => guard.truth === undefined && isMeasured(guard.text)) || loop === undefined)
    return intervalOfManager(event)
  return intervalOfManager(event) ?? inWords(1, isOuter(loop.id, facts) ? 'epoch' : 'step')
}

/** `rank % gpus == 0` chooses a process, not a step. */
const isOfProcess = (text: string): boolean => /rank|gpu|process/i.test(text)

function intervalOfManager({ receiver }: CallEvent): string | undefined {
  if (receiver?.kind !== 'made') return undefined
  const options = receiver.call.named.get('options')
  const interval =
    options?.kind === 'made' ? numberOf(options.call.named.get('save_interval_steps')) : undefined
  return interval === undefined ? undefined : inWords(interval, 'step')
}

function everyIn(value: Value): Every | undefined {
  return value.kind === 'unknown' ? value.every : undefined
}

const isMeasured = (text: string): boolean =>
  ['best', 'acc', 'loss', 'score', 'metric', 'improv'].some((word) => text.toLowerCase().includes(word))

function unitOf(text: string, event: CallEvent, facts: Facts): string {
  const name = text.toLowerCase()
  if (name.includes('epoch')) return 'epoch'
  if (name.includes('step') || name.includes('iter')) return 'step'
  const loop = event.loops.find(({ variable }) =>
    variable.split(',').some((each) => hasName(text, each.trim())),
  )
  return loop !== undefined && isOuter(loop.id, facts) ? 'epoch' : 'step'
}

/** Whether an expression contains a name. */
function hasName(text: string, name: string): boolean {
  const letters = [...text].map((letter) => (isNameLetter(letter) ? letter : ' ')).join('')
  return letters.split(' ').includes(name)
}

const isNameLetter = (letter: string): boolean =>
  letter === '_' || (letter >= '0' && letter <= '9') || letter.toLowerCase() !== letter.toUpperCase()

/** Whether a loop is over epochs: steps of the optimizer are in a loop inside it, in which gradients may be accumulated. */
export function isOuter(id: number, { training }: Facts): boolean {
  const steps = training.filter(({ event }) => event.method === 'step')
  return (steps.length > 0 ? steps : training).some(({ event }) => {
    const at = event.loops.findIndex((loop) => loop.id === id)
    return at !== -1 && at < event.loops.length - 1
  })
}
