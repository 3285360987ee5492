/** Shapes of the results of layers and functions of PyTorch. */
import { argument } from '../facts'
import { constantOf, numberOf, type CallEvent, type Value } from '../values'
import { allNumbers, directionsOf, numberGiven, product, sizesGiven } from './layers'

export type Shape = readonly number[]

export interface Operation {
  kind: string
  /** The call with the operation's settings. */
  made: CallEvent
  input: Value | undefined
}

/** For an attention that the program writes itself: its heads, and the shape of the model's input. */
interface Attention {
  shape: Shape
  heads: number | undefined
}

interface Result {
  output: Shape
  input?: Shape
}

const slide = (size: number, { kernel, stride, padding, dilation }: Record<string, number>): number =>
  Math.floor((size + 2 * padding! - dilation! * (kernel! - 1) - 1) / stride!) + 1

/** The shape of a result; `undefined` if a size is not known. */
export function resultOf({ kind, made }: Operation, shape: Shape, pass: Attention): Result | undefined {
  const get = (name: string, at: number): number | undefined => numberGiven(made, name, { at })
  switch (kind) {
    case 'Linear': {
      const [inputs, outputs] = [get('in_features', 0), get('out_features', 1)]
      if (inputs === undefined || outputs === undefined) return undefined
      // A tensor that was reshaped in a way that is not known ends in the size that the layer expects.
      const lead = shape.at(-1) === inputs ? shape.slice(0, -1) : leading(shape, inputs)
      return { input: [...lead, inputs], output: [...lead, outputs] }
    }
    case 'Embedding': {
      const width = get('embedding_dim', 1)
      return width === undefined ? undefined : { output: [...shape, width] }
    }
    case 'Conv1d':
    case 'Conv2d':
    case 'Conv3d':
      return convolved(made, shape, Number(kind.charAt(4)))
    case 'ConvTranspose1d':
    case 'ConvTranspose2d':
      return transposed(made, shape)
    case 'MaxPool2d':
    case 'AvgPool2d':
      return pooled(made, shape, 0)
    case 'max_pool2d':
    case 'avg_pool2d':
      return pooled(made, shape, 1)
    case 'AdaptiveAvgPool2d':
    case 'adaptive_avg_pool2d': {
      const sizes = sizesGiven(made, 'output_size', { at: kind === 'AdaptiveAvgPool2d' ? 0 : 1, count: 2 })
      return { output: [...shape.slice(0, 2), ...(sizes ?? [1, 1])] }
    }
    case 'Upsample':
    case 'interpolate': {
      const factor = numberOf(made.named.get('scale_factor')) ?? 1
      return { output: [...shape.slice(0, 2), ...shape.slice(2).map((size) => Math.floor(size * factor))] }
    }
    case 'Flatten':
    case 'flatten':
      return { output: flattened(made, shape, kind === 'Flatten' ? 0 : 1) }
    case 'split':
    case 'chunk':
      return { output: part(made, shape, kind) }
    case 'transpose':
    case 'permute':
      return { output: reordered(made, shape, kind) }
    case 'view':
      return { output: viewed(made, shape) }
    case 'mean':
      return { output: averaged(made, shape) }
    case 'LSTM':
    case 'GRU':
    case 'RNN': {
      const hidden = get('hidden_size', 1)
      return hidden === undefined
        ? undefined
        : { output: [...shape.slice(0, -1), hidden * directionsOf(made)] }
    }
    case 'Softmax':
      return { output: attentionOf(shape, pass) ?? shape }
    default:
      return { output: shape }
  }
}

/** Each of the equal parts of `x.split(size, dim)` or `x.chunk(count, dim)`. */
function part(made: CallEvent, shape: Shape, kind: string): Shape {
  const [number, dimension] = [
    numberGiven(made, '', { at: 1 }),
    numberGiven(made, 'dim', { at: 2, fallback: 0 }),
  ]
  if (number === undefined || dimension === undefined || number < 1) return shape
  const at = dimension < 0 ? shape.length + dimension : dimension
  return shape.map((size, place) =>
    place !== at ? size : kind === 'split' ? number : Math.ceil(size / number),
  )
}

/** `x.mean(dim=1)`; of dimensions that are not known, the second one. */
function averaged(made: CallEvent, shape: Shape): Shape {
  const dimension = numberGiven(made, 'dim', { at: 1 })
  const at = dimension === undefined ? 1 : dimension < 0 ? shape.length + dimension : dimension
  if (dimension === undefined && shape.length <= 2) return shape
  const isKept = constantOf(argument(made, 'keepdim', 2)) === true
  return shape.flatMap((size, place) => (place !== at ? [size] : isKept ? [1] : []))
}

/** Dimensions from a first one to a last one become one. */
function flattened(made: CallEvent, shape: Shape, first: number): Shape {
  const of = (name: string, at: number, fallback: number): number => {
    const given = numberGiven(made, name, { at, fallback }) ?? fallback
    return given < 0 ? shape.length + given : given
  }
  const start = of('start_dim', first, first === 0 ? 1 : 0)
  const end = of('end_dim', first + 1, -1)
  return [...shape.slice(0, start), product(shape.slice(start, end + 1)), ...shape.slice(end + 1)]
}

/** `transpose(1, 2)`, `permute(0, 2, 1)`; unchanged if the dimensions are not known. */
function reordered({ positional }: CallEvent, shape: Shape, kind: string): Shape {
  const given = positional.slice(1).flatMap((each) => (each.kind === 'list' ? each.items : [each]))
  const places = allNumbers(given)?.map((place) => (place < 0 ? shape.length + place : place))
  if (places === undefined || places.some((place) => shape[place] === undefined)) return shape
  if (kind === 'permute') return places.length === shape.length ? places.map((place) => shape[place]!) : shape
  const [one = 0, other = 0] = places
  return shape.map((size, at) => shape[at === one ? other : at === other ? one : at] ?? size)
}

/** The scores of an attention that the program writes itself: one row of all positions for each position and head. */
function attentionOf(shape: Shape, { shape: input, heads }: Attention): Shape | undefined {
  const [batch, length] = input
  return heads === undefined || batch === undefined || length === undefined || shape.length !== 3
    ? undefined
    : [batch, heads, length, length]
}

function leading(shape: Shape, width: number): Shape {
  const elements = product(shape)
  return elements % width === 0 && shape.length > 2
    ? [shape[0]!, elements / shape[0]! / width]
    : shape.slice(0, -1)
}

function viewed({ positional }: CallEvent, shape: Shape): Shape {
  const sizes = positional.slice(1).flatMap((each) => (each.kind === 'list' ? each.items : [each]))
  const numbers = sizes.map(numberOf)
  // The first one is the batch, which is counted as one sample. A size that is not known is the one before, of `b, t, c = x.shape`.
  const isOpen = (size: number | undefined): boolean => size === undefined || size < 0
  const rest = numbers.findLastIndex((size, at) => at > 0 && isOpen(size))
  const isKept =
    rest !== -1 && numbers[rest] === undefined && !numbers.slice(rest + 1).some(isOpen) && rest < 2
  const known = numbers.map((size, at) => {
    if (at === rest && !isKept) return undefined
    return isOpen(size) ? shape[at] : size
  })
  const others = product(known.filter((size) => size !== undefined))
  const result = known.map((size) => size ?? product(shape) / others)
  return result.every(Number.isInteger) && product(result) === product(shape) ? result : shape
}

function convolved(made: CallEvent, shape: Shape, dimensions: number): Result | undefined {
  const outputs = numberGiven(made, 'out_channels', { at: 1 })
  const inputs = numberGiven(made, 'in_channels', { at: 0 })
  const kernel = sizesGiven(made, 'kernel_size', { at: 2, count: dimensions })
  const stride = sizesGiven(made, 'stride', { at: 3, count: dimensions, fallback: 1 })
  const dilation = sizesGiven(made, 'dilation', { at: 5, count: dimensions, fallback: 1 })
  const isSame = constantOf(argument(made, 'padding', 4)) === 'same'
  const padding = isSame ? kernel : sizesGiven(made, 'padding', { at: 4, count: dimensions, fallback: 0 })
  if (outputs === undefined || inputs === undefined) return undefined
  if (kernel === undefined || stride === undefined || dilation === undefined || padding === undefined)
    return undefined
  const sizes = shape.slice(-dimensions)
  if (sizes.length < dimensions || shape.length < dimensions + 1) return undefined
  const output = sizes.map((size, at) =>
    isSame
      ? size
      : slide(size, {
          kernel: kernel[at]!,
          stride: stride[at]!,
          padding: padding[at]!,
          dilation: dilation[at]!,
        }),
  )
  const [batch = 1] = shape
  return { input: [batch, inputs, ...sizes], output: [batch, outputs, ...output] }
}

function transposed(made: CallEvent, shape: Shape): Result | undefined {
  const outputs = numberGiven(made, 'out_channels', { at: 1 })
  const count = shape.length - 2
  const kernel = sizesGiven(made, 'kernel_size', { at: 2, count })
  const stride = sizesGiven(made, 'stride', { at: 3, count, fallback: 1 })
  const padding = sizesGiven(made, 'padding', { at: 4, count, fallback: 0 })
  const extra = sizesGiven(made, 'output_padding', { at: 5, count, fallback: 0 })
  if (outputs === undefined || kernel === undefined || stride === undefined) return undefined
  if (padding === undefined || extra === undefined || count < 1) return undefined
  const sizes = shape
    .slice(2)
    .map((size, at) => (size - 1) * stride[at]! - 2 * padding[at]! + kernel[at]! + extra[at]!)
  return { output: [shape[0]!, outputs, ...sizes] }
}

function pooled(made: CallEvent, shape: Shape, first: number): Result | undefined {
  const kernel = sizesGiven(made, 'kernel_size', { at: first, count: 2 })
  const stride = sizesGiven(made, 'stride', { at: first + 1, count: 2 }) ?? kernel
  const padding = sizesGiven(made, 'padding', { at: first + 2, count: 2, fallback: 0 })
  if (kernel === undefined || stride === undefined || padding === undefined || shape.length < 4)
    return undefined
  const sizes = shape
    .slice(2)
    .map((size, at) =>
      slide(size, { kernel: kernel[at]!, stride: stride[at]!, padding: padding[at]!, dilation: 1 }),
    )
  return { output: [...shape.slice(0, 2), ...sizes] }
}
