/** Models that a program builds of Flax's layers (`flax.linen`, `flax.nnx`). Arguments and defaults: Flax 0.12, "API reference"; channels come last. */
import { argument, isCalled, lastPart, type Facts } from '../facts'
import { externalBase } from '../members'
import { constantOf, numberOf, textOf, unknown, type CallEvent, type Value } from '../values'
import { sideOf } from './inputs'
import { arrayShape } from './jax-arrays'
import { numberGiven, product, sizesGiven } from './layers'
import { forwardCalls, repeatsOf } from './networks'
import { keptResults, type BuiltModel } from './results'
import type { Shape } from './shapes'

type Instance = Extract<Value, { kind: 'instance' }>

const BASE = /^flax\.(?:linen|nnx)\.Module$/

/** The largest of the program's own modules; `undefined` if it has none, or the size of a layer is not known. */
export function flaxModel(facts: Facts): BuiltModel | undefined {
  const modules = [...facts.run.instances].filter(({ definition }) =>
    BASE.test(externalBase(definition) ?? ''),
  )
  const built = modules.map((each) => modelOf(each, facts)).filter((each) => each !== undefined)
  return built.reduce<BuiltModel | undefined>(
    (best, each) => (best !== undefined && best.parameters >= each.parameters ? best : each),
    undefined,
  )
}

function modelOf(root: Instance, facts: Facts): BuiltModel | undefined {
  const input = unknown(undefined, 'batch')
  const calls = forwardCalls(facts.run, root, input).filter(isCalled)
  const pass = new Pass(facts, { input, shape: shapeOfInput(facts, calls) })
  for (const event of calls) pass.add(event)
  const { parameters, first } = pass
  if (first === undefined || !(Number.isFinite(parameters) && parameters > 0)) return undefined
  return { parameters, kept: keptResults(pass), first }
}

/** `model.init(key, jnp.ones((1, 28, 28, 1)))` says it; layers of `flax.nnx` know their own widths. */
function shapeOfInput(facts: Facts, calls: readonly CallEvent[]): Shape | undefined {
  const given = facts.events
    .filter((event) => isCalled(event) && event.name.startsWith('flax.') && STARTS.has(event.method))
    .map(({ positional: [, data] }) => arrayShape(data))
    .find((shape) => shape !== undefined)
  if (given !== undefined) return given.slice(1)
  const [layer] = calls.flatMap(({ receiver }) =>
    receiver?.kind === 'made' && receiver.call.name.startsWith(NNX) ? [receiver.call] : [],
  )
  const width = layer === undefined ? undefined : numberGiven(layer, 'in_features', { at: 0 })
  const side = sideOf(facts)
  if (width === undefined || (layer?.method === 'Conv' && side === undefined)) return undefined
  return layer?.method === 'Conv' ? [side!, side!, width] : [width]
}

const STARTS = new Set(['init', 'lazy_init', 'init_with_output', 'tabulate'])
const NNX = 'flax.nnx.'

/** One forward pass of one sample. */
class Pass {
  parameters = 0
  results = 0
  largest = 0
  first: CallEvent | undefined
  readonly #shapes = new Map<unknown, Shape>()
  readonly #counted = new Set<CallEvent>()
  #current: Shape

  constructor(
    private readonly facts: Facts,
    { input, shape = [NaN] }: { input: Value; shape: Shape | undefined },
  ) {
    this.#shapes.set(input, shape)
    this.#current = shape
  }

  add(event: CallEvent): void {
    const { receiver, method, positional, name } = event
    const repeats = repeatsOf(event.loops, this.facts.loops)
    if (method === 'param' && name.startsWith('flax.')) {
      const shape =
        positional[2]?.kind === 'list' ? positional[2].items.map((each) => numberOf(each) ?? NaN) : [NaN]
      this.parameters += product(shape) * repeats
    } else if (receiver?.kind === 'made' && name === `${receiver.call.name}()()`)
      this.#layer(event, receiver.call)
    else this.#function(event)
  }

  #layer(event: CallEvent, layer: CallEvent): void {
    if (!/^flax\.(?:linen|nnx)\.[A-Z]\w*$/.test(layer.name)) return
    const shape = this.#shapeOf(event.positional[0])
    const built = layerOf(layer, shape)
    // A layer that is not known may have any number of parameters.
    if (built === undefined) {
      this.parameters = NaN
      return
    }
    this.first ??= layer
    const { loops } = this.facts
    if (!this.#counted.has(layer)) this.parameters += built.parameters * repeatsOf(layer.loops, loops)
    this.#counted.add(layer)
    const repeats = Math.max(repeatsOf(layer.loops, loops), repeatsOf(event.loops, loops))
    this.#result(event, built.output, (product(built.output) + (built.inside ?? 0)) * repeats)
  }

  #function(event: CallEvent): void {
    const { name, method, positional, receiver } = event
    const isFunction = /^(?:flax\.(?:linen|nnx)|jax\.nn|jax\.numpy)\.\w+$/.test(name)
    const shape = this.#shapeOf(isFunction ? positional[0] : receiver)
    const output = isFunction ? functionResult(event, shape) : methodResult(method, shape)
    if (output === undefined) return
    const isNew = isFunction && method !== 'concatenate'
    this.#result(event, output, isNew ? product(output) * repeatsOf(event.loops, this.facts.loops) : 0)
  }

  #result(event: CallEvent, output: Shape, elements: number): void {
    this.#shapes.set(event, output)
    this.#current = output
    this.results += elements
    this.largest = Math.max(this.largest, product(output))
  }

  #shapeOf(value: Value | undefined): Shape {
    if (value === undefined) return this.#current
    const known = this.#shapes.get(value.kind === 'made' ? value.call : value)
    if (known !== undefined) return known
    return value.kind === 'unknown' && value.like !== undefined ? this.#shapeOf(value.like) : this.#current
  }
}

interface Layer {
  parameters: number
  output: Shape
  /** Elements of what it computes on the way. */
  inside?: number
}

function layerOf(layer: CallEvent, input: Shape): Layer | undefined {
  const kind = lastPart(layer.name)
  const isNnx = layer.name.startsWith(NNX)
  const get = (name: string, at: number): number => numberGiven(layer, name, { at }) ?? NaN
  const bias = constantOf(layer.named.get('use_bias')) === false ? 0 : 1
  const lead = input.slice(0, -1)
  const width =
    isNnx && ['Linear', 'Conv', 'ConvTranspose'].includes(kind)
      ? get('in_features', 0)
      : (input.at(-1) ?? NaN)
  switch (kind) {
    case 'Dense':
    case 'Linear': {
      const features = isNnx ? get('out_features', 1) : get('features', 0)
      return { parameters: (width + bias) * features, output: [...lead, features] }
    }
    case 'Embed': {
      const features = get('features', 1)
      return { parameters: get('num_embeddings', 0) * features, output: [...input, features] }
    }
    case 'Conv':
    case 'ConvTranspose':
      return convolution(layer, input, { width, bias, isNnx })
    case 'LayerNorm':
    case 'BatchNorm':
    case 'GroupNorm':
      return { parameters: normalized(layer, isNnx ? get('num_features', 0) : width), output: input }
    case 'RMSNorm':
      return { parameters: isNnx ? get('num_features', 0) : width, output: input }
    case 'MultiHeadDotProductAttention':
    case 'MultiHeadAttention':
    case 'SelfAttention':
      return attention(layer, input, { bias, isNnx })
    case 'Dropout':
      return { parameters: 0, output: input }
    default:
      return undefined
  }
}

function normalized({ named }: CallEvent, width: number): number {
  const isOff = (name: string): boolean => constantOf(named.get(name)) === false
  return ((isOff('use_scale') ? 0 : 1) + (isOff('use_bias') ? 0 : 1)) * width
}

/** Queries, keys and values, two sets of scores, and the result. */
function attention(layer: CallEvent, input: Shape, { bias, isNnx }: { bias: number; isNnx: boolean }): Layer {
  const width = isNnx ? (numberGiven(layer, 'in_features', { at: 1 }) ?? NaN) : (input.at(-1) ?? NaN)
  const inner = numberGiven(layer, 'qkv_features', { fallback: width }) ?? NaN
  const outputs = numberGiven(layer, 'out_features', { fallback: width }) ?? NaN
  const heads = numberGiven(layer, 'num_heads', { at: 0 }) ?? NaN
  const positions = product(input.slice(0, -1))
  return {
    parameters: 3 * (width + bias) * inner + (inner + bias) * outputs,
    output: [...input.slice(0, -1), outputs],
    inside: 4 * positions * inner + 2 * heads * positions ** 2,
  }
}

interface Channels {
  width: number
  bias: number
  isNnx: boolean
}

/** Padded so that the size stays, unless `padding` says otherwise. */
function convolution(layer: CallEvent, input: Shape, { width, bias, isNnx }: Channels): Layer | undefined {
  const at = isNnx ? 1 : 0
  const features = numberGiven(layer, isNnx ? 'out_features' : 'features', { at }) ?? NaN
  const places = input.slice(0, -1)
  const kernel = sizesGiven(layer, 'kernel_size', { at: at + 1, count: places.length })
  const steps = sizesGiven(layer, 'strides', { at: at + 2, count: places.length, fallback: 1 })
  const groups = numberGiven(layer, 'feature_group_count', { fallback: 1 }) ?? NaN
  if (kernel === undefined || steps === undefined || layer.named.has('kernel_dilation')) return undefined
  const isSpread = layer.method === 'ConvTranspose'
  const isValid = textOf(argument(layer, 'padding', at + 3)) === 'VALID'
  const sizes = places.map((size, place) => {
    const step = steps[place] ?? 1
    if (isSpread) return size * step + (isValid ? Math.max(kernel[place]! - step, 0) : 0)
    return isValid ? Math.floor((size - kernel[place]!) / step) + 1 : Math.ceil(size / step)
  })
  return {
    parameters: ((product(kernel) * width) / groups + bias) * features,
    output: [...sizes, features],
  }
}

const ACTIVATIONS = new Set([
  ...['relu', 'relu6', 'gelu', 'silu', 'swish', 'elu', 'leaky_relu', 'sigmoid', 'tanh', 'softplus', 'mish'],
  ...['softmax', 'log_softmax', 'hard_swish', 'glu', 'square', 'exp'],
])

/** The result of an activation or a pooling; `undefined` for other functions. */
function functionResult(event: CallEvent, shape: Shape): Shape | undefined {
  const { method } = event
  if (ACTIVATIONS.has(method)) return shape
  if (method === 'mean' || method === 'max') return shape.slice(-1)
  if (method !== 'avg_pool' && method !== 'max_pool') return undefined
  const count = shape.length - 1
  const window = sizesGiven(event, 'window_shape', { at: 1, count })
  const steps = sizesGiven(event, 'strides', { at: 2, count, fallback: 1 })
  if (window === undefined || steps === undefined) return undefined
  const isSame = textOf(argument(event, 'padding', 3)) === 'SAME'
  const sizes = shape
    .slice(0, -1)
    .map((size, at) =>
      isSame ? Math.ceil(size / steps[at]!) : Math.floor((size - window[at]!) / steps[at]!) + 1,
    )
  return [...sizes, shape.at(-1)!]
}

function methodResult(method: string, shape: Shape): Shape | undefined {
  if (method === 'reshape' || method === 'flatten') return [product(shape)]
  return method === 'mean' || method === 'max' ? shape.slice(-1) : undefined
}
