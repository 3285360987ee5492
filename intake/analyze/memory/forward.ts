/** What one forward pass keeps for the backward pass, from the shapes of its tensors. */
import { isCalled } from '../facts'
import type { Loop } from '../flow'
import { itemsOf } from '../iteration'
import { endOf } from '../rounds'
import { numberOf, type CallEvent, type Value } from '../values'
import type { Tensors } from './arithmetic'
import { insideOf } from './blocks'
import { FUNCTIONS, KEEPS, SIDE_RESULTS } from './derivatives'
import { layerName, numberGiven, parametersOf, product } from './layers'
import { repeatsOf } from './networks'
import { resultOf, type Operation, type Shape } from './shapes'

/** What autograd keeps of a pass. */
export interface Kept extends Tensors {
  /** Multiplications of the pass. */
  multiplications: number
  /** Whether the shapes of all layers are known. */
  isComplete: boolean
}

export interface Pass {
  input: Value
  /** The shape of the input. */
  shape: Shape
  /** Heads of an attention that the program writes itself. */
  heads: number | undefined
  training: ReadonlySet<Loop>
}

/**
 * The rules are those of PyTorch's derivatives (tools/autograd/derivatives.yaml): a matrix product, a convolution and a normalization keep
 * their input, `relu`, `tanh`, `sigmoid` and `softmax` their result, a maximum the places of the maxima. One tensor counts once.
 */
export function keptByForward(events: readonly CallEvent[], pass: Pass): Kept {
  const forward = new Forward(pass)
  for (const event of events) if (isCalled(event)) forward.add(event)
  return forward.kept
}

class Forward {
  readonly kept: Kept = {
    plain: 0,
    full: 0,
    masks: 0,
    indices: 0,
    possible: 0,
    largest: 0,
    multiplications: 0,
    isComplete: true,
  }
  readonly #shapes = new Map<unknown, Shape>()
  readonly #counted = new Set<unknown>()
  /** How often the operation runs that makes a tensor. */
  readonly #repeatsOf = new Map<unknown, number>()
  /** Computed of some rows of a tensor, such as those for one expert of several: at most as much as of all. */
  readonly #partial = new Set<unknown>()
  #isPartial = false
  /** The shape of the newest tensor: that of an input that is not known otherwise. */
  #current: Shape
  #repeats = 1

  constructor(private readonly pass: Pass) {
    this.#shapes.set(pass.input, pass.shape)
    this.#current = pass.shape
  }

  add(event: CallEvent): void {
    // Steps of a sequence whose length the program does not say.
    if (event.loops.some((loop) => endOf(loop) === undefined && itemsOf(loop.iterated) === undefined))
      this.kept.isComplete = false
    const layer = event.receiver?.kind === 'made' ? layerName(event.receiver.call) : undefined
    if (layer === undefined || event.receiver?.kind !== 'made') {
      this.#addFunction(event)
      return
    }
    const made = event.receiver.call
    if (layer === 'Sequential' || layer === 'ModuleList' || layer === 'Parameter') return
    const { training } = this.pass
    this.#repeats = Math.max(repeatsOf(made.loops, training), repeatsOf(event.loops, training))
    this.#addOperation(event, { kind: layer, made, input: event.positional[0] })
  }

  /** A product keeps each factor for the gradient of the other. */
  #addProduct(event: CallEvent): void {
    this.#isPartial = false
    const [left, right] = event.positional
    const shapes = [this.#shapeOf(left), this.#shapeOf(right)]
    const output = productShape(event.method, shapes)
    if (output === undefined) return
    for (const [at, factor] of [left, right].entries()) {
      const other = at === 0 ? right : left
      if (shapes[at] !== undefined && other?.kind !== 'constant')
        this.#once(keyOf(factor), 'plain', product(shapes[at]))
    }
    this.#result(event, output)
  }

  #result(event: CallEvent, output: Shape): void {
    this.#shapes.set(event, output)
    this.#repeatsOf.set(event, this.#repeats)
    this.#current = output
    this.kept.largest = Math.max(this.kept.largest, product(output))
  }

  /** The shape of tensors that are joined, if all of theirs are known. */
  #joined({ positional, named }: CallEvent): Shape | undefined {
    const [tensors] = positional
    const shapes = tensors?.kind === 'list' ? tensors.items.map((each) => this.#shapeOf(each)) : []
    const [first] = shapes
    const dimension = numberOf(named.get('dim')) ?? numberOf(positional[1]) ?? 0
    if (first === undefined || shapes.some((shape) => shape === undefined)) return undefined
    const at = dimension < 0 ? first.length + dimension : dimension
    const size = shapes.reduce((sum, shape) => sum + (shape![at] ?? 0), 0)
    return first.map((each, place) => (place === at ? size : each))
  }

  #addFunction(event: CallEvent): void {
    const joined = event.name === 'torch.cat' ? this.#joined(event) : undefined
    if (joined !== undefined) return this.#result(event, joined)
    if (PRODUCTS.has(event.method) && event.name.startsWith('torch.')) return this.#addProduct(event)
    const kind = FUNCTIONS[event.method]
    if (kind === undefined) return
    const isMethod = !event.name.startsWith('torch.') || event.name.includes('()')
    if (isMethod && event.receiver === undefined) return
    const input = isMethod ? event.receiver : event.positional[0]
    this.#addOperation(event, { kind, made: isMethod ? withReceiver(event) : event, input })
  }

  #addOperation(event: CallEvent, operation: Operation): void {
    const known =
      this.#shapeOf(operation.input) ?? (operation.kind === 'Embedding' ? this.#looked(operation) : undefined)
    const shape = this.#fitting(operation, known ?? this.#current) ?? known
    const { input } = operation
    this.#isPartial =
      (input?.kind === 'unknown' && input.partOf !== undefined) || this.#partial.has(keyOf(input))
    if (this.#isPartial) this.#partial.add(event)
    const result = resultOf(operation, shape ?? this.#current, this.pass)
    if (result === undefined) {
      this.kept.isComplete = false
      return
    }
    const key = keyOf(operation.input) ?? event
    this.#keep(operation, {
      key,
      event,
      input: result.input ?? shape ?? this.#current,
      output: result.output,
    })
    this.kept.multiplications += multiplicationsOf(operation, result.output) * this.#repeats
    this.#shapes.set(event, result.output)
    this.#repeatsOf.set(event, this.#repeats)
    if (!SIDE_RESULTS.has(operation.kind)) this.#current = result.output
    this.kept.largest = Math.max(this.kept.largest, product(result.output))
  }

  /** What is looked up is never the result of another layer: words, one label for a picture, or the nearest codes of a tensor as wide as they are. */
  #looked({ made }: Operation): Shape {
    const { shape } = this.pass
    if (shape.length <= 2) return shape
    const isCode = this.#current.at(-1) === numberGiven(made, 'embedding_dim', { at: 1 })
    return isCode ? this.#current.slice(0, -1) : shape.slice(0, 1)
  }

  /** Of an input that cannot have the channels that a convolution gets, such as one that was reshaped in an unknown way, the newest tensor that has. */
  #fitting({ kind, made, input }: Operation, shape: Shape): Shape | undefined {
    const channels = CONVOLUTION.test(kind) ? numberGiven(made, 'in_channels', { at: 0 }) : undefined
    if (channels === undefined || shape[1] === channels) return undefined
    // Tensors that are joined are equally large, even if the channels of one are not known.
    if (input?.kind === 'made' && input.call.name === 'torch.cat')
      return [shape[0] ?? 1, channels, ...shape.slice(2)]
    return [...this.#shapes.values()].findLast((each) => each.length === shape.length && each[1] === channels)
  }

  #shapeOf(value: Value | undefined): Shape | undefined {
    if (value === undefined) return undefined
    const known = this.#shapes.get(keyOf(value))
    if (known !== undefined) return known
    if (value.kind === 'unknown') return this.#shapeOf(value.like ?? value.partOf)
    if (value.kind === 'either')
      return value.values.map((each) => this.#shapeOf(each)).find((shape) => shape !== undefined)
    return undefined
  }

  #keep({ kind, made }: Operation, { key, event, input, output }: Uses): void {
    const keeps = KEEPS[kind] ?? 'nothing'
    const [ins, outs] = [product(input), product(output)]
    if (keeps === 'input') this.#once(key, 'plain', ins)
    else if (keeps === 'output') this.#once(event, kind === 'Softmax' ? 'full' : 'plain', outs)
    else if (keeps === 'loss') this.#once(event, 'full', ins)
    else if (keeps === 'mask') this.kept.masks += outs * this.#repeats
    else if (keeps === 'places') {
      this.#once(key, 'plain', ins)
      this.kept.indices += outs * this.#repeats
    } else if (keeps === 'indices') this.kept.indices += ins * this.#repeats
    else if (keeps === 'block') this.#block(made, { kind, key, input })
  }

  /** Adds a tensor that several operations may keep. */
  #once(key: unknown, size: 'plain' | 'full', elements: number): void {
    if (this.#counted.has(key)) return
    this.#counted.add(key)
    // A repeated part begins with the result of the part before it, which may be kept as such.
    if (this.#isPartial) {
      this.kept.possible += elements * this.#repeats
      return
    }
    const isFromOutside = this.#repeats > (this.#repeatsOf.get(key) ?? 1)
    const times = isFromOutside ? 1 : this.#repeats
    this.kept[size] += elements * times
    this.kept.possible += elements * (this.#repeats - times)
  }

  /** Layers that are whole networks: attention, transformers, recurrent layers. */
  #block(made: CallEvent, { kind, key, input }: { kind: string; key: unknown; input: Shape }): void {
    this.#once(key, 'plain', product(input))
    const inside = insideOf(kind, made, input)
    if (inside === undefined) this.kept.isComplete = false
    else
      for (const size of ['plain', 'full', 'masks'] as const) this.kept[size] += inside[size] * this.#repeats
  }
}

const CONVOLUTION = /^Conv(?:Transpose)?[123]d$/

const PRODUCTS = new Set(['mul', 'matmul', 'bmm'])

/** The shape of a product; `undefined` if no factor's is known. */
function productShape(method: string, [left, right]: readonly (Shape | undefined)[]): Shape | undefined {
  if (left === undefined || right === undefined) return method === 'mul' ? (left ?? right) : undefined
  const isMatched = left.at(-1) === (right.length > 1 ? right.at(-2) : right[0])
  if (method !== 'mul') return isMatched ? [...left.slice(0, -1), right.at(-1)!] : undefined
  return product(left) >= product(right) ? left : right
}

interface Uses {
  key: unknown
  event: CallEvent
  input: Shape
  output: Shape
}

const keyOf = (value: Value | undefined): unknown => (value?.kind === 'made' ? value.call : value)

/** The arguments of a tensor's method, counted as those of the function of that name. */
const withReceiver = (event: CallEvent): CallEvent => ({
  ...event,
  positional: [event.receiver!, ...event.positional],
})

/** Each weight of a layer multiplies once for each place and sample of its result; an embedding only looks its weights up. */
function multiplicationsOf({ kind, made }: Operation, output: Shape): number {
  const weights = parametersOf(made)
  if (weights === undefined || kind === 'Embedding') return 0
  const channels = kind.startsWith('Conv') ? output[1] : output.at(-1)
  return (weights * product(output)) / (channels ?? 1)
}
