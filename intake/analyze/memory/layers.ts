/** Parameters of the layers of PyTorch, from the arguments of their constructors as its documentation gives them (torch.nn, 2.x). */
import { argument } from '../facts'
import { constantOf, numberOf, type CallEvent, type Value } from '../values'

/** The name of a layer such as `Conv2d`; `undefined` if the call makes none. */
export function layerName({ name }: CallEvent): string | undefined {
  if (!name.startsWith(PREFIX)) return undefined
  const last = name.slice(PREFIX.length)
  const isClass = last.charAt(0) !== last.charAt(0).toLowerCase()
  return isClass && [...last].every((letter) => letter !== '.' && letter !== '(') ? last : undefined
}

const PREFIX = 'torch.nn.'

/** A number that is given by position or by name; `fallback` if it is left out, `undefined` if it is not known. */
export function numberGiven(
  event: CallEvent,
  name: string,
  { at, fallback }: { at?: number; fallback?: number } = {},
): number | undefined {
  const given = argument(event, name, at)
  return given === undefined ? fallback : numberOf(given)
}

/** A size for each dimension: one number stands for all. */
export function sizesGiven(
  event: CallEvent,
  name: string,
  { at, count, fallback }: Sizes,
): number[] | undefined {
  const given = argument(event, name, at)
  if (given === undefined) return fallback === undefined ? undefined : filled(count, fallback)
  const one = numberOf(given)
  if (one !== undefined) return filled(count, one)
  return given.kind === 'list' ? allNumbers(given.items) : undefined
}

interface Sizes {
  at: number
  count: number
  fallback?: number
}

const filled = (count: number, value: number): number[] => new Array<number>(count).fill(value)

export function allNumbers(values: readonly Value[]): number[] | undefined {
  const numbers = values.map(numberOf)
  return numbers.every((each) => each !== undefined) ? numbers : undefined
}

export const product = (numbers: readonly number[]): number => numbers.reduce((a, b) => a * b, 1)

/** `undefined` if a size is not known; 0 for layers without parameters. */
export function parametersOf(event: CallEvent): number | undefined {
  const name = layerName(event)
  if (name === undefined) return 0
  const count = COUNTS[name]
  return count === undefined ? 0 : known(count(event))
}

/** Lengths that `weight_norm` keeps apart from the weight: one for each result. */
export const normsOf = (event: CallEvent): number | undefined =>
  numberGiven(event, layerName(event) === 'Linear' ? 'out_features' : 'out_channels', { at: 1 })

const known = (count: number): number | undefined => (Number.isFinite(count) ? count : undefined)

/** A size, which is `NaN` if it is not known, so that every count of it is not known either. */
const get = (event: CallEvent, name: string, place: number | [at: number, fallback: number]): number => {
  const [at, fallback] = typeof place === 'number' ? [place, undefined] : place
  return numberGiven(event, name, { at, ...(fallback !== undefined && { fallback }) }) ?? NaN
}

const bias = (event: CallEvent, at: number): number =>
  constantOf(argument(event, 'bias', at)) === false ? 0 : 1

const linear = (inputs: number, outputs: number, hasBias = 1): number => inputs * outputs + hasBias * outputs

const convolution =
  (dimensions: number) =>
  (event: CallEvent): number => {
    const kernel = sizesGiven(event, 'kernel_size', { at: 2, count: dimensions })
    const groups = get(event, 'groups', [6, 1])
    const [inputs, outputs] = [get(event, 'in_channels', 0), get(event, 'out_channels', 1)]
    return (
      (inputs * outputs * (kernel === undefined ? NaN : product(kernel))) / groups + bias(event, 7) * outputs
    )
  }

/** One matrix from the input and one from the last state per gate, each with a bias. */
const recurrent =
  (gates: number) =>
  (event: CallEvent): number => {
    const [inputs, hidden] = [get(event, 'input_size', 0), get(event, 'hidden_size', 1)]
    const layers = get(event, 'num_layers', [2, 1])
    const ways = directionsOf(event)
    const layer = (size: number): number => gates * (hidden * size + hidden * hidden + 2 * hidden)
    return ways * (layer(inputs) + (layers - 1) * layer(hidden * ways))
  }

export const directionsOf = (event: CallEvent): number =>
  constantOf(argument(event, 'bidirectional', 6)) === true ? 2 : 1

const attention = (width: number): number => 4 * linear(width, width)
const feedForward = (width: number, inner: number): number => linear(width, inner) + linear(inner, width)

const encoderLayer = (event: CallEvent): number => {
  const width = get(event, 'd_model', 0)
  return attention(width) + feedForward(width, get(event, 'dim_feedforward', [2, 2048])) + 4 * width
}

const decoderLayer = (event: CallEvent): number => {
  const width = get(event, 'd_model', 0)
  return 2 * attention(width) + feedForward(width, get(event, 'dim_feedforward', [2, 2048])) + 6 * width
}

/** Copies of the layer that it is given. */
const stack =
  (layerArgument: string) =>
  (event: CallEvent): number => {
    const layer = argument(event, layerArgument, 0)
    const each = layer?.kind === 'made' ? parametersOf(layer.call) : undefined
    return get(event, 'num_layers', 1) * (each ?? NaN)
  }

function wholeTransformer(event: CallEvent): number {
  const width = get(event, 'd_model', [0, 512])
  const inner = get(event, 'dim_feedforward', [4, 2048])
  const [encoders, decoders] = [
    get(event, 'num_encoder_layers', [2, 6]),
    get(event, 'num_decoder_layers', [3, 6]),
  ]
  const ends = 4 * width
  return (
    encoders * (attention(width) + feedForward(width, inner) + 4 * width) +
    decoders * (2 * attention(width) + feedForward(width, inner) + 6 * width) +
    ends
  )
}

function normalized(event: CallEvent): number {
  const shape = sizesGiven(event, 'normalized_shape', { at: 0, count: 1 })
  return shape === undefined ? NaN : product(shape)
}

/** Of `nn.Parameter(torch.zeros(1, 8, 64))` */
function tensor(event: CallEvent): number {
  const [made] = event.positional
  if (made?.kind !== 'made') return NaN
  const shape = shapeMade(made.call)
  return shape === undefined ? NaN : product(shape)
}

/** The shape of a tensor that a call makes with given sizes; `undefined` for other calls and sizes that are not known. */
export function shapeMade({ name, method, positional, named }: CallEvent): number[] | undefined {
  if (!name.startsWith('torch.') || !MAKERS.has(method)) return undefined
  const sizes = method.startsWith('randint')
    ? (named.get('size') ?? positional.find(({ kind }) => kind === 'list'))
    : (named.get('size') ?? positional[0])
  if (sizes?.kind === 'list') return allNumbers(sizes.items)
  return method.startsWith('randint') ? undefined : allNumbers(positional)
}

const MAKERS = new Set(['zeros', 'ones', 'randn', 'rand', 'empty', 'full', 'randint', 'normal'])

type Count = (event: CallEvent) => number

const COUNTS: Readonly<Record<string, Count>> = {
  Linear: (event) => linear(get(event, 'in_features', 0), get(event, 'out_features', 1), bias(event, 2)),
  Conv1d: convolution(1),
  Conv2d: convolution(2),
  Conv3d: convolution(3),
  ConvTranspose1d: convolution(1),
  ConvTranspose2d: convolution(2),
  ConvTranspose3d: convolution(3),
  Embedding: (event) => get(event, 'num_embeddings', 0) * get(event, 'embedding_dim', 1),
  EmbeddingBag: (event) => get(event, 'num_embeddings', 0) * get(event, 'embedding_dim', 1),
  BatchNorm1d: (event) => 2 * get(event, 'num_features', 0),
  BatchNorm2d: (event) => 2 * get(event, 'num_features', 0),
  BatchNorm3d: (event) => 2 * get(event, 'num_features', 0),
  GroupNorm: (event) => 2 * get(event, 'num_channels', 1),
  LayerNorm: (event) => 2 * normalized(event),
  RMSNorm: normalized,
  LSTM: recurrent(4),
  GRU: recurrent(3),
  RNN: recurrent(1),
  LSTMCell: recurrent(4),
  GRUCell: recurrent(3),
  MultiheadAttention: (event) => attention(get(event, 'embed_dim', 0)),
  TransformerEncoderLayer: encoderLayer,
  TransformerDecoderLayer: decoderLayer,
  TransformerEncoder: stack('encoder_layer'),
  TransformerDecoder: stack('decoder_layer'),
  Transformer: wholeTransformer,
  PReLU: (event) => get(event, 'num_parameters', [0, 1]),
  Parameter: tensor,
}

/** Layers that are given others as patterns, and copy them. */
export const COPIES_ARGUMENT: ReadonlySet<string> = new Set(['TransformerEncoder', 'TransformerDecoder'])
