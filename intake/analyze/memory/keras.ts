/** Models that a program builds of Keras's layers, as `Sequential` or by calls. Arguments and defaults: Keras 3, "Layers API"; channels come last. */
import { argument, isCalled, type Facts } from '../facts'
import { constantOf, numberOf, textOf, type CallEvent, type Value } from '../values'
import { numberGiven, product, sizesGiven } from './layers'
import { repeatsOf } from './networks'
import { keptResults, type BuiltModel } from './results'
import type { Shape } from './shapes'

/** The shape of one sample, in which `NaN` is a size that is not known. */
interface Layer {
  parameters: number
  output: Shape
  /** Elements of what it computes on the way. */
  inside?: number
}

const PREFIX = 'keras.layers.'

/** `undefined` if the program makes no layers, or the size of one of them is not known. */
export function kerasModel(facts: Facts): BuiltModel | undefined {
  const events = facts.events.filter(isCalled)
  const made = events.filter(isLayer)
  const [first] = made
  if (first === undefined) return undefined
  const build = new Build(facts)
  for (const event of events) build.add(event)
  const inner = new Set(
    made.flatMap(({ positional: [value] }) => (value?.kind === 'made' ? [value.call] : [])),
  )
  const used = made.filter((event) => event.method !== 'Input' && !inner.has(event))
  const parameters = used.reduce((sum, layer) => sum + (build.parameters.get(layer) ?? NaN), 0)
  if (!Number.isFinite(parameters) || parameters <= 0) return undefined
  return { parameters, kept: keptResults(build), first }
}

const isLayer = ({ name }: CallEvent): boolean => /^keras\.layers\.(?!Layer$)[A-Z]\w*$/.test(name)

const isSequential = ({ name }: CallEvent): boolean => /^keras\.(?:models\.)?Sequential$/.test(name)

class Build {
  readonly parameters = new Map<CallEvent, number>()
  /** Elements of the results of all layers for one sample; `NaN` if a size is not known. */
  results = 0
  largest = 0
  /** Of inputs, and of the results of layers. */
  readonly #shapes = new Map<CallEvent, Shape>()
  /** Of each `Sequential`, the shape so far. */
  readonly #ends = new Map<CallEvent, Shape | undefined>()

  /** Of each `Sequential`, the layers whose input is not known yet. */
  readonly #waiting = new Map<CallEvent, CallEvent[]>()

  constructor(private readonly facts: Facts) {}

  add(event: CallEvent): void {
    const { receiver, method, positional } = event
    if (event.method === 'Input' && event.name.startsWith('keras.'))
      this.#shapes.set(event, inputShape(event))
    else if (isSequential(event)) {
      const [layers] = positional
      this.#ends.set(event, undefined)
      for (const layer of layers?.kind === 'list' ? layers.items : []) this.#append(event, layer)
    } else if (JOINS[event.name] !== undefined) this.#join(event)
    else if (receiver?.kind !== 'made') return
    else if (method === 'add' && isSequential(receiver.call)) this.#append(receiver.call, positional[0])
    else if (isSequential(receiver.call) && event.name.endsWith('()()'))
      this.#runWaiting(receiver.call, event)
    else if (isLayer(receiver.call)) {
      const given = positional[0]?.kind === 'list' ? positional[0].items : positional.slice(0, 1)
      const shapes = given.map((value) => this.#shapeOf(value))
      const output = this.#apply(receiver.call, shapes, event)
      if (output !== undefined) this.#shapes.set(event, output)
    }
  }

  /** A stack without a shape of its own gets that of what it is called with. */
  #runWaiting(sequential: CallEvent, event: CallEvent): void {
    let shape = this.#shapeOf(event.positional[0])
    for (const layer of this.#waiting.get(sequential) ?? []) shape = this.#apply(layer, [shape], event)
    if (shape !== undefined) this.#shapes.set(event, shape)
  }

  #shapeOf(value: Value | undefined): Shape | undefined {
    if (value?.kind === 'made') return this.#shapes.get(value.call)
    return value?.kind === 'unknown' && value.like !== undefined ? this.#shapeOf(value.like) : undefined
  }

  /** `keras.layers.add([x, y])` */
  #join(event: CallEvent): void {
    const [given] = event.positional
    const shapes = (given?.kind === 'list' ? given.items : []).map((value) => this.#shapeOf(value))
    const [first = [NaN]] = shapes
    const width = shapes.reduce((sum, shape) => sum + (shape?.at(-1) ?? NaN), 0)
    const output = JOINS[event.name] === 'beside' ? [...first.slice(0, -1), width] : first
    this.#shapes.set(event, output)
    this.results += product(output)
  }

  #append(sequential: CallEvent, value: Value | undefined): void {
    if (value?.kind !== 'made') return
    const layer = value.call
    const shape = this.#shapes.get(layer) ?? givenShape(layer) ?? this.#ends.get(sequential)
    if (shape === undefined && layer.method !== 'Input' && layer.method !== 'Embedding') {
      this.#waiting.set(sequential, [...(this.#waiting.get(sequential) ?? []), layer])
      return
    }
    this.#ends.set(sequential, layer.method === 'Input' ? shape : this.#apply(layer, [shape], layer))
  }

  #apply(layer: CallEvent, inputs: readonly (Shape | undefined)[], at: CallEvent): Shape | undefined {
    // An embedding needs no size of its input.
    const [input = [NaN]] = inputs
    const built = layerOf(layer, input, inputs)
    if (built === undefined) return undefined
    // Of a layer in a loop, only one input is known.
    const isSteady = at.loops.length === 0 || product(input) === product(built.output)
    const repeats = repeatsOf(at.loops, this.facts.loops)
    const isShared = this.parameters.has(layer)
    if (!isShared) this.parameters.set(layer, isSteady ? built.parameters * repeats : NaN)
    this.results += (product(built.output) + (built.inside ?? 0)) * repeats
    this.largest = Math.max(this.largest, product(built.output))
    return built.output
  }
}

const inputShape = (event: CallEvent): Shape => shapeIn(argument(event, 'shape', 0)) ?? [NaN]

const givenShape = (layer: CallEvent): Shape | undefined => shapeIn(layer.named.get('input_shape'))

const shapeIn = (value: Value | undefined): Shape | undefined =>
  value?.kind === 'list' ? value.items.map((item) => numberOf(item) ?? NaN) : undefined

/** `undefined` for layers that are not known, and for channels that come first. */
function layerOf(layer: CallEvent, input: Shape, inputs: readonly (Shape | undefined)[]): Layer | undefined {
  const kind = layer.name.slice(PREFIX.length)
  if (layer.named.has('data_format')) return undefined
  const get = (name: string, at: number): number => numberGiven(layer, name, { at }) ?? NaN
  const bias = constantOf(layer.named.get('use_bias')) === false ? 0 : 1
  const width = input.at(-1) ?? NaN
  const lead = input.slice(0, -1)
  if (KEEPING.has(kind) || kind.startsWith('Random')) return { parameters: 0, output: input }
  switch (kind) {
    case 'Dense': {
      const units = get('units', 0)
      return { parameters: (width + bias) * units, output: [...lead, units] }
    }
    case 'Embedding': {
      const size = get('output_dim', 1)
      return { parameters: get('input_dim', 0) * size, output: [...input, size] }
    }
    case 'Conv1D':
    case 'Conv2D':
    case 'Conv3D':
    case 'Conv2DTranspose':
      return convolution(layer, input, bias)
    case 'SeparableConv2D':
      return separable(layer, input, bias)
    case 'MultiHeadAttention':
      return attention(layer, input, bias)
    case 'LSTM':
    case 'GRU':
    case 'SimpleRNN': {
      const units = get('units', 0)
      const isSequence = constantOf(layer.named.get('return_sequences')) === true
      const [gates, biases] = RECURRENT[kind]
      const parameters = gates * units * (width + units + biases)
      return { parameters, output: isSequence ? [...lead, units] : [units] }
    }
    case 'Bidirectional': {
      const [inner] = layer.positional
      const one = inner?.kind === 'made' ? layerOf(inner.call, input, inputs) : undefined
      if (one === undefined || layer.named.has('merge_mode')) return undefined
      return { parameters: 2 * one.parameters, output: [...one.output.slice(0, -1), 2 * one.output.at(-1)!] }
    }
    // Means and variances are not trained.
    case 'BatchNormalization':
    case 'LayerNormalization':
      return layer.named.has('axis') ? undefined : { parameters: 2 * width, output: input }
    case 'MaxPooling1D':
    case 'MaxPooling2D':
    case 'AveragePooling2D': {
      const windows = { name: 'pool_size', at: 0, fallback: 2 }
      return { parameters: 0, output: [...slid(layer, lead, windows), width] }
    }
    case 'GlobalAveragePooling1D':
    case 'GlobalAveragePooling2D':
    case 'GlobalMaxPooling1D':
    case 'GlobalMaxPooling2D':
      return { parameters: 0, output: [width] }
    case 'Flatten':
      return { parameters: 0, output: [product(input)] }
    case 'Reshape':
      return { parameters: 0, output: shapeIn(argument(layer, 'target_shape', 0)) ?? [NaN] }
    case 'Concatenate': {
      const widths = inputs.map((shape) => shape?.at(-1) ?? NaN)
      if (layer.named.has('axis') || layer.positional.length > 0) return undefined
      return { parameters: 0, output: [...lead, widths.reduce((sum, each) => sum + each, 0)] }
    }
    default:
      return undefined
  }
}

/** Functions that join the results of layers. */
const JOINS: Readonly<Record<string, 'sum' | 'beside'>> = {
  [`${PREFIX}add`]: 'sum',
  [`${PREFIX}multiply`]: 'sum',
  [`${PREFIX}concatenate`]: 'beside',
}

/** Layers without parameters that keep the shape of their first input. */
const KEEPING = new Set([
  ...['Activation', 'ReLU', 'LeakyReLU', 'ELU', 'Softmax', 'Dropout', 'SpatialDropout1D', 'SpatialDropout2D'],
  ...['GaussianNoise', 'Rescaling', 'Add', 'Multiply', 'Subtract', 'Average', 'Maximum', 'InputLayer'],
])

/** Gates, and biases of each: a GRU has one for the input and one for the state. */
const RECURRENT = { LSTM: [4, 1], GRU: [3, 2], SimpleRNN: [1, 1] } as const

function convolution(layer: CallEvent, input: Shape, bias: number): Layer | undefined {
  const count = input.length - 1
  const filters = numberGiven(layer, 'filters', { at: 0 }) ?? NaN
  const kernel = sizesGiven(layer, 'kernel_size', { at: 1, count })
  if (kernel === undefined || layer.named.has('dilation_rate')) return undefined
  const width = input.at(-1)! / (numberGiven(layer, 'groups', { fallback: 1 }) ?? NaN)
  const windows = { name: 'kernel_size', at: 1, fallback: NaN }
  const isTransposed = layer.method === 'Conv2DTranspose'
  const places = isTransposed
    ? spread(layer, input.slice(0, -1), kernel)
    : slid(layer, input.slice(0, -1), windows)
  return { parameters: (product(kernel) * width + bias) * filters, output: [...places, filters] }
}

/** Queries, keys and values, two sets of scores, and the result. */
function attention(layer: CallEvent, input: Shape, bias: number): Layer | undefined {
  const heads = numberGiven(layer, 'num_heads', { at: 0 }) ?? NaN
  const inner = heads * (numberGiven(layer, 'key_dim', { at: 1 }) ?? NaN)
  if (layer.named.has('value_dim') || layer.named.has('output_shape')) return undefined
  const [width, positions] = [input.at(-1)!, product(input.slice(0, -1))]
  return {
    parameters: 3 * (width + bias) * inner + (inner + bias) * width,
    output: input,
    inside: 4 * positions * inner + 2 * heads * positions ** 2,
  }
}

/** One filter for each channel, and then one place at a time; what the first one results in is kept too. */
function separable(layer: CallEvent, input: Shape, bias: number): Layer | undefined {
  const whole = convolution(layer, input, bias)
  const kernel = sizesGiven(layer, 'kernel_size', { at: 1, count: input.length - 1 })
  if (whole === undefined || kernel === undefined || layer.named.has('depth_multiplier')) return undefined
  const [width, filters] = [input.at(-1)!, whole.output.at(-1)!]
  const parameters = product(kernel) * width + (width + bias) * filters
  return { ...whole, parameters, inside: product(whole.output.slice(0, -1)) * width }
}

interface Windows {
  name: string
  at: number
  fallback: number
}

const isSame = (layer: CallEvent, at: number): boolean =>
  ['same', 'causal'].includes(textOf(argument(layer, 'padding', at))?.toLowerCase() ?? '')

/** Places of windows that slide over an input; those of pooling step by their own size. */
function slid(layer: CallEvent, places: Shape, { name, at, fallback }: Windows): Shape {
  const count = places.length
  const sizes = sizesGiven(layer, name, { at, count, fallback })
  const given = argument(layer, 'strides', at + 1)
  const usual = name === 'pool_size' ? sizes : places.map(() => 1)
  const isGiven = given !== undefined && constantOf(given) !== null
  const steps = isGiven ? sizesGiven(layer, 'strides', { at: at + 1, count }) : usual
  return places.map((size, place) => {
    const [window, step] = [sizes?.[place] ?? NaN, steps?.[place] ?? NaN]
    return isSame(layer, at + 2) ? Math.ceil(size / step) : Math.floor((size - window) / step) + 1
  })
}

/** Places of the result of a transposed convolution. */
function spread(layer: CallEvent, places: Shape, kernel: readonly number[]): Shape {
  const strides = sizesGiven(layer, 'strides', { at: 2, count: places.length, fallback: 1 })
  return places.map((size, place) => {
    const step = strides?.[place] ?? NaN
    return size * step + (isSame(layer, 3) ? 0 : Math.max(kernel[place]! - step, 0))
  })
}
