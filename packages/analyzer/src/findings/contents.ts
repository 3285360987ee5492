/** Parts of a saved object: model, optimizer, step. */
import { isOptimizerName, lastPart, nameOf } from '../facts'
import { childAt, parts, type SyntaxNode } from '../syntax'
import { alternatives, type CallEvent, type Value } from '../values'

export type Part = 'model' | 'optimizer' | 'scheduler' | 'step' | 'random' | 'scaler'

/** The part that an object is, by its class and by the name that the program gives it. */
export function roleOf(value: Value | undefined, text: string): Part {
  const name = nameOf(value)
  if (name.includes('lr_scheduler')) return 'scheduler'
  if (name.startsWith('torch.optim.')) return 'optimizer'
  if (name.includes('GradScaler')) return 'scaler'
  return partOfName(text) ?? 'model'
}

/** Returns the part that a key or a name denotes. */
export function partOfName(text: string): Part | undefined {
  const name = lastPart(text).toLowerCase()
  if (SCHEDULER_WORDS.some((word) => name.includes(word))) return 'scheduler'
  if (isOptimizerName(name) || name.startsWith('optim') || name === 'momentum' || name === 'velocity')
    return 'optimizer'
  if (name.includes('scaler')) return 'scaler'
  if (name.includes('rng') || name.includes('random')) return 'random'
  if (STEP_WORDS.some((word) => name.includes(word)) || STEP_NAMES.has(name)) return 'step'
  if (MODEL_WORDS.some((word) => name.includes(word))) return 'model'
  return undefined
}

const SCHEDULER_WORDS = ['sched', 'lr_policy']
const STEP_WORDS = ['epoch', 'step', 'iter', 'batches_done', 'tokens_seen', 'round']
const STEP_NAMES = new Set(['it', 'i', 'n', 'e', 'ep', 't'])
const MODEL_WORDS = [
  'model',
  'net',
  'state_dict',
  'weight',
  'param',
  'encoder',
  'decoder',
  'generator',
  'discriminator',
  'critic',
  'actor',
  'policy',
  'backbone',
  'head',
  'unet',
  'vae',
  'ddpm',
  'agent',
]

/** Returns the parts in a saved value; empty if it is data. */
export function contentsOf(value: Value | undefined, text = ''): Set<Part> {
  const found = new Set<Part>()
  if (value === undefined) return found
  for (const each of alternatives(value)) addContents(found, each, text)
  // A dictionary of arrays under a name such as `params`.
  if (found.size === 0 && value.kind === 'dict' && partOfName(text) === 'model') found.add('model')
  return found
}

function addContents(parts: Set<Part>, value: Value, text: string): void {
  if (value.kind === 'dict') {
    for (const [key, entry] of value.entries) addEntry(parts, key, entry)
    return
  }
  if (value.kind === 'list') {
    for (const item of value.items) addContents(parts, item, text)
    return
  }
  if (value.kind === 'made' && STATE_METHODS.has(value.call.method)) {
    const role = roleOf(value.call.receiver, value.call.receiverText)
    parts.add(role === 'step' ? 'model' : role)
    return
  }
  // `embedding.weight.data`
  if (value.kind === 'extern' && isModelCall(nameOf(value.receiver)) && value.name.includes('.weight')) {
    parts.add('model')
    return
  }
  if (value.kind === 'instance') {
    if (isModelClass(value)) parts.add('model')
    else if (isState(text)) for (const part of STATE_PARTS) parts.add(part)
    return
  }
  const name = nameOf(value)
  if (name.endsWith('TrainState.create')) for (const part of STATE_PARTS) parts.add(part)
  else if (isState(text)) for (const part of STATE_PARTS) parts.add(part)
  else if (value.kind === 'made' && isModelCall(name)) parts.add('model')
  else if (!isTensor(value) && partOfName(text) === 'model') parts.add('model')
}

const STATE_METHODS = new Set(['state_dict', 'get_model_state_dict', 'unwrap_model', '__getstate__'])
/** Whether a name denotes the whole of parameters, optimizer and step in programs for JAX. */
function isState(text: string): boolean {
  const name = lastPart(text).toLowerCase()
  return name === 'state' || STATES.some((state) => name === `${state}_state`)
}

const STATE_PARTS: readonly Part[] = ['model', 'optimizer', 'step']
const STATES = ['train', 'training', 'ckpt', 'replicated', 'unreplicated', 'new', 'saved']

function addEntry(parts: Set<Part>, key: string, entry: Value): void {
  const own = contentsOf(entry, '')
  const named = partOfName(key)
  if (own.size > 0 && named !== 'step') {
    for (const part of own) parts.add(part === 'model' && named === 'optimizer' ? 'optimizer' : part)
    return
  }
  if (named !== undefined) parts.add(named)
  else if (entry.kind === 'made' && STATE_METHODS.has(entry.call.method)) parts.add('model')
}

/** A part of a saved object with its value. */
export interface Item {
  part: Part
  value: Value
}

/** The entries of a dictionary and the members of a tuple that is saved, by their names. */
export function itemsOf(value: Value | undefined, node: SyntaxNode | undefined): Item[] {
  if (value?.kind === 'made' && CONVERSIONS.has(value.call.method))
    return itemsOf(value.call.positional[0], argumentNode(value.call, 0))
  const item = (text: string, each: Value): Item[] => {
    const part = partOfName(text) ?? [...contentsOf(each)][0]
    return part === undefined ? [] : [{ part, value: each }]
  }
  if (value?.kind === 'dict') return [...value.entries].flatMap(([key, entry]) => item(key, entry))
  const names = node === undefined ? [] : node.type === 'tuple' || node.type === 'list' ? parts(node) : [node]
  const values = value?.kind === 'list' ? value.items : value === undefined ? [] : [value]
  return names.length === values.length ? names.flatMap((name, at) => item(nameIn(name), values[at]!)) : []
}

/** Functions that give their argument in another form. */
const CONVERSIONS = new Set(['device_get', 'unreplicate', 'to_state_dict', 'to_bytes', 'dumps'])

/** The name in `step`, `self.step`, `step + 1` and `unreplicate(step)`; empty for other calls, whose result has a part by its value. */
function nameIn(node: SyntaxNode): string {
  if (node.type === 'identifier' || node.type === 'attribute') return node.text
  if (node.type === 'call') {
    const called = lastPart(childAt(node, 'function')?.text ?? '')
    const [first] = parts(childAt(node, 'arguments') ?? node)
    return CONVERSIONS.has(called) && first !== undefined ? nameIn(first) : ''
  }
  return node.type === 'binary_operator' ? nameIn(childAt(node, 'left')!) : ''
}

/** The node of an argument without a name. */
export function argumentNode({ node }: CallEvent, position: number): SyntaxNode | undefined {
  const list = childAt(node, 'arguments')
  return list === undefined
    ? undefined
    : parts(list).filter(({ type }) => type !== 'keyword_argument')[position]
}

function isModelClass(value: Value): boolean {
  const name = nameOf(value)
  return name.endsWith('Module') || name.endsWith('Model')
}

const MODEL_MAKERS = [
  'torch.nn.',
  'torchvision.models.',
  'timm.create_model',
  'sklearn.',
  'keras.Sequential',
  'keras.Model',
]
const isModelCall = (name: string): boolean =>
  MODEL_MAKERS.some((prefix) => name.startsWith(prefix)) &&
  !name.includes('()') &&
  !name.includes('functional') &&
  !name.includes('preprocessing')

/** Results of computations: images, predictions, features. */
function isTensor(value: Value): boolean {
  if (value.kind !== 'made') return false
  const { name, method } = value.call
  return (
    TENSOR_METHODS.has(method) ||
    (name.startsWith('torch.') && !name.startsWith('torch.nn.') && !name.includes('load'))
  )
}

const TENSOR_METHODS = new Set(['cpu', 'detach', 'numpy', 'clone', 'cat', 'stack', 'softmax', 'mean', 'item'])
