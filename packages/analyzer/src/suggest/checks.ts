/** Finds reasons why a resumed run would differ although all named state is saved. Each one prevents a suggestion. */
import { evidenceOf, type Facts } from '../facts'
import { alternatives, type CallEvent, type Value } from '../values'
import { CHANGING, isLocal } from './carried'
import { flowOf } from './flow'
import { isInside, type TrainingLoop } from './loop'
import {
  heldObjects,
  identityOf,
  insideOf,
  objectOf,
  roleOfCall,
  roleOfObject,
  WITH_STATE,
  type NamedObject,
} from './objects'
import { checkRandom, checkSeeds } from './random'
import { refuse, refuseCall } from './refusal'
import { checkSequences } from './sequences'
import type { ProjectFunction } from './region'

export interface Program {
  facts: Facts
  training: TrainingLoop
  region: readonly ProjectFunction[]
}

/** Returns the objects whose state must be saved. Refuses a program with objects that cannot be reached or are not understood. */
export function checkedObjects(program: Program): NamedObject[] {
  const { facts, training } = program
  const { owner, source, loop } = training
  const held = heldObjects(loop.before, owner === source.root ? new Set() : flowOf(owner).locals)
  const known = new Set(
    held.flatMap(({ value, identities }) => [...identities, ...alternatives(value).flatMap(insideOf)]),
  )
  checkProcesses(facts)
  checkMakers(program, known)
  checkUses(program, known)
  checkSequences(program)
  checkRandom(program, held)
  checkSeeds(facts.events, loop)
  checkGradients(program)
  checkModes(program)
  return held
}

/** One process writes the checkpoint, and has only its own random state. */
function checkProcesses({ events, launch }: Facts): void {
  const event = events.find(({ name }) => SEVERAL.some((part) => name.includes(part)))
  if (event !== undefined) refuseCall(event, 'trains in several processes, each with a state of its own')
  if (launch.launcher !== 'python')
    refuse(
      launch.entry,
      { line: 1 },
      `is started by ${launch.launcher} in several processes, each with a state of its own`,
    )
}

const SEVERAL = [
  'DistributedDataParallel',
  'FullyShardedDataParallel',
  'fully_shard',
  'init_process_group',
  'mp.spawn',
  'multiprocessing.spawn',
  'multiprocessing.Process',
  'share_memory',
  'accelerate.Accelerator',
  'Fabric',
  'deepspeed.',
  'horovod.',
  'torch.distributed',
  'torch_xla',
  'init_rpc',
]

const isIn = ({ loops }: CallEvent, { loop }: TrainingLoop): boolean => loops.includes(loop)

/** Every optimizer, schedule and scaler that was made before the loop must have a name there. */
function checkMakers({ facts: { events }, training }: Program, known: ReadonlySet<unknown>): void {
  for (const event of events) {
    const role = roleOfCall(event)
    if (role === undefined || role === 'module' || !WITH_STATE.has(role) || isIn(event, training)) continue
    if (!known.has(event.node))
      refuseCall(event, `makes the ${role} of the training, which has no name at the loop`)
  }
}

/** Objects that the loop uses must be understood. */
function checkUses(program: Program, known: ReadonlySet<unknown>): void {
  const { facts, training } = program
  for (const event of facts.events) {
    if (!isIn(event, training)) continue
    if (event.name === 'next' && !isMadeIn(event.positional[0], training))
      refuseCall(event, 'takes from a sequence that begins outside the loop, whose place cannot be saved')
    for (const text of changedArguments(event))
      if (!isOwn(text, event, program))
        refuseCall(event, `changes ${text} in place, which is created outside the loop`)
    const { receiver } = event
    if (receiver === undefined) continue
    for (const each of alternatives(receiver)) checkUse(program, { event, receiver: each, known })
    if (isInPlace(event) && !isOwn(event.receiverText, event, program))
      refuseCall(event, `may change ${event.receiverText}, which is created outside the loop`)
  }
}

interface Use {
  event: CallEvent
  receiver: Value
  known: ReadonlySet<unknown>
}

function checkUse({ training }: Program, { event, receiver, known }: Use): void {
  const object = objectOf(receiver)
  const role = roleOfObject(object)
  if (role !== undefined) {
    if (
      WITH_STATE.has(role) &&
      !isMadeIn(object, training) &&
      !known.has(identityOf(object)) &&
      !isStateless(object)
    )
      refuseCall(event, `uses a ${role} that has no name at the loop`)
    return
  }
  if (object.kind !== 'made' || isMadeIn(object, training)) return
  const maker = object.call.name
  if (event.method === 'set_epoch' || HARMLESS.some((prefix) => maker.startsWith(prefix))) return
  refuseCall(event, `uses an object of ${maker}, whose state this analysis does not know`)
}

/** A loss, or a module inside another one that was found. */
const isStateless = (object: Value): boolean => object.kind === 'made' && object.call.name.endsWith('Loss')

/** Constructors of objects without state that affects a run: numbers and text, log files, progress bars. */
const HARMLESS = [
  'torch.',
  'numpy.',
  'jax.',
  'math.',
  'time.',
  'datetime.',
  'os.',
  'sys.',
  'pathlib.',
  'json.',
  'csv.',
  'argparse.',
  'logging.',
  'tqdm',
  'wandb',
  'mlflow',
  'tensorboardX',
  'open',
  'str',
  'int',
  'float',
  'len',
  'range',
  'dict.',
  'list.',
  'copy.',
  'round',
  'sum',
  'max',
  'min',
  'abs',
  'print',
  'matplotlib',
  'optax.',
  'str.',
  'super',
  'getattr',
  'enumerate',
  'zip',
  '?',
]

/** Whether each value was made in the loop. */
function isMadeIn(value: Value | undefined, { loop }: TrainingLoop): boolean {
  if (value === undefined) return true
  return alternatives(value).every((each) => {
    const object = objectOf(each)
    return object.kind === 'made' && object.call.loops.includes(loop)
  })
}

/** Calls such as `x.add_(1)` and `memory.push(x)`, on objects that are not known. */
function isInPlace({ method, receiver, name }: CallEvent): boolean {
  if (
    method === 'zero_grad_' ||
    method === 'requires_grad_' ||
    receiver?.kind === 'list' ||
    receiver?.kind === 'dict'
  )
    return false
  if (method.endsWith('_') && !method.startsWith('_') && !method.endsWith('__'))
    return !name.startsWith('torch.nn.')
  if (receiver?.kind === 'made' && !name.startsWith('?')) return false
  return CHANGING.has(method)
}

/** Returns the argument that a library function changes: its first one, or the one that receives the result. */
function changedArguments({ name, method, argumentTexts }: CallEvent): string[] {
  const results = argumentTexts.filter((text) => text.startsWith('out=')).map((text) => text.slice(4).trim())
  const [first] = argumentTexts
  const isChanging =
    CHANGING_FUNCTIONS.has(name) ||
    (method === 'shuffle' && SHUFFLING.some((prefix) => name.startsWith(prefix))) ||
    (name.startsWith('torch._foreach_') && method.endsWith('_'))
  return first !== undefined && isChanging ? [first, ...results] : results
}

const SHUFFLING = ['random.', 'numpy.random.']
const CHANGING_FUNCTIONS = new Set([
  'setattr',
  'delattr',
  'heapq.heapify',
  'heapq.heappush',
  'heapq.heappop',
  'heapq.heapreplace',
  'heapq.heappushpop',
  'bisect.insort',
  'bisect.insort_left',
  'bisect.insort_right',
  'numpy.copyto',
  'numpy.put',
  'numpy.place',
  'numpy.putmask',
  'numpy.fill_diagonal',
])

/** Whether the named object is created in each round. */
function isOwn(text: string, { node, file }: CallEvent, { training, region }: Program): boolean {
  const root = text.split('.')[0]!.split('[')[0]!.split('(')[0]!
  if (!isName(root)) return true
  if (file === training.source && isInside(node, training.body)) return !training.loop.before.has(root)
  return isLocal(node, root, region)
}

const isName = (text: string): boolean =>
  text !== '' && [...text].every((each) => each === '_' || isLetter(each))
const isLetter = (each: string): boolean =>
  (each >= '0' && each <= '9') || each.toLowerCase() !== each.toUpperCase()

/** Gradients that wait for the next round do not belong to any state. */
function checkGradients({ facts: { events }, training }: Program): void {
  const inLoop = events.filter((event) => isIn(event, training))
  const clears = inLoop.filter(({ method }) => method === 'zero_grad')
  for (const event of inLoop.filter(({ method }) => method === 'backward')) {
    const isClear = clears.some(
      ({ guards, loops }) =>
        guards.every(
          (guard) =>
            guard.truth === true ||
            event.guards.some((own) => own.line === guard.line && own.file === guard.file),
        ) && loops.every((loop) => event.loops.includes(loop)),
    )
    if (isClear) continue
    const [clear] = clears
    if (clear === undefined) refuseCall(event, 'adds to gradients that are never cleared by zero_grad')
    refuseCall(clear, 'clears the gradients in some rounds only, and those that wait are not saved')
  }
}

/** A model that is in evaluation mode after a round would start a resumed run in training mode. */
function checkModes({ facts: { events }, training }: Program): void {
  const inLoop = events.filter((event) => isIn(event, training))
  const ends = inLoop.find(({ method, receiver }) => method === 'eval' && receiver !== undefined)
  const isBegun = inLoop.some(({ method, receiver }) => method === 'train' && receiver !== undefined)
  if (ends !== undefined && !isBegun)
    refuseCall(ends, 'turns on evaluation mode, and nothing in the loop turns it off')
  const frozen = inLoop.find(({ method }) => method === 'requires_grad_' || method === 'add_param_group')
  if (frozen !== undefined)
    refuseCall(frozen, `changes what is trained (${evidenceOf(frozen).text}), which no state holds`)
}
