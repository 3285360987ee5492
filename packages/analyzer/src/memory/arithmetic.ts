/**
 * The memory of one GPU while a model trains, in bytes. Each component is a range: it holds what differs between versions of libraries, drivers
 * and GPUs.
 *
 * | component | bytes | source |
 * |---|---|---|
 * | weights | 4 a parameter in fp32, 2 in half precision; with autocast 4 | PyTorch, "Automatic Mixed Precision package" |
 * | gradients | as the trained weights | PyTorch, `Tensor.grad` |
 * | optimizer | Adam 8, with states of 8 bits 2, SGD 0, with momentum 4, Adafactor rows and columns only | the papers; bitsandbytes, "8-bit optimizers" |
 * | half precision of DeepSpeed | 2 weights, 2 gradients, 12 optimizer | Rajbhandari et al. 2020, "ZeRO", section 3.1 |
 * | sharding | the optimizer, gradients and weights divided by the GPUs from stage 1, 2 and 3 on | the same, figure 1 |
 * | activations | with autocast up to 2 a parameter for half-precision copies of the weights; for the rest see `transformerTensors` and `pictures.ts` | Korthikanti et al. 2022, "Reducing Activation Recomputation" |
 * | context | 0.3 to 1.2 GiB: CUDA, its libraries and their workspaces | Hugging Face, "GPU memory usage"; Accelerate, "Model size estimator" |
 * | fragments, with the context | up to 15 % of gradients and optimizer, which the allocator cannot use; weights are loaded before anything is freed | Guo et al. 2024, "GMLake", section 1 |
 */
import type { Transformer } from './published-models'

export interface Interval {
  low: number
  high: number
}

export type Precision = 'fp32' | 'fp16' | 'bf16' | 'fp16-mixed' | 'bf16-mixed'

/** How several GPUs share the state of training. */
export interface Sharding {
  /** As in ZeRO: 0 none, 1 the optimizer, 2 gradients too, 3 weights too (FSDP). */
  stage: 0 | 1 | 2 | 3
  /** GPUs that share. */
  ways: Interval
  offloadsOptimizer: boolean
  offloadsWeights: boolean
}

export interface TrainingState {
  /** Parameters that are trained. */
  trained: Interval
  /** Bytes of the parameters that are not trained. */
  frozenBytes: Interval
  precision: Precision
  /** Whether half precision is that of DeepSpeed: weights in half precision, with a copy in fp32 in the optimizer. */
  keepsMaster: boolean
  /** Bytes of optimizer state per parameter in fp32. */
  optimizer: Interval
  /** Further copies of the trained weights, such as a moving average. */
  copies: number
  sharding: Sharding
  /** Bytes that the forward pass keeps, with the buffers of the backward pass in the upper end. */
  activations: Interval
  usesGpu: boolean
}

export interface Components {
  weights: Interval
  gradients: Interval
  optimizer: Interval
  activations: Interval
  context: Interval
}

export const GIB = 2 ** 30

export const NO_SHARDING: Sharding = {
  stage: 0,
  ways: { low: 1, high: 1 },
  offloadsOptimizer: false,
  offloadsWeights: false,
}

export const exactly = (value: number): Interval => ({ low: value, high: value })

export const scaled = ({ low, high }: Interval, by: number): Interval => ({ low: low * by, high: high * by })

export const sum = (...parts: readonly Interval[]): Interval => ({
  low: parts.reduce((total, { low }) => total + low, 0),
  high: parts.reduce((total, { high }) => total + high, 0),
})

const times = (a: Interval, b: Interval): Interval => ({ low: a.low * b.low, high: a.high * b.high })

/** The most GPUs give the least memory for each. */
const divided = (bytes: Interval, ways: Interval): Interval => ({
  low: bytes.low / ways.high,
  high: bytes.high / ways.low,
})

const isMixed = (precision: Precision): boolean => precision.endsWith('mixed')
const isHalf = (precision: Precision): boolean => precision === 'fp16' || precision === 'bf16'

/** The part of sharded weights that a GPU gathers for the layers at work. */
const GATHERED = 0.15
/** The part of offloaded tensors that is on the GPU at a time. */
const IN_TRANSFER = { low: 0.05, high: 0.3 }

export function memoryOf(state: TrainingState): Components {
  const { trained, precision, sharding } = state
  const inHalf = isHalf(precision) || (state.keepsMaster && isMixed(precision))
  const bytes = inHalf ? 2 : 4
  const weights = sum(scaled(trained, bytes * (1 + state.copies)), state.frozenBytes)
  const gradients = scaled(trained, bytes)
  const perParameter =
    isHalf(precision) && !state.keepsMaster ? scaled(state.optimizer, 0.5) : state.optimizer
  const master = inHalf && state.keepsMaster ? 4 : 0
  const optimizer = sum(times(trained, perParameter), scaled(trained, master))
  const tensors = {
    weights: sharedWeights(weights, sharding),
    gradients: sharedGradients(gradients, sharding),
    optimizer: sharedOptimizer(optimizer, sharding),
    activations: withStep(state, isMixed(precision) && !inHalf ? 2 : 0),
  }
  const allocatedInSteps = sum(tensors.gradients, tensors.optimizer)
  const context = { low: 0.3 * GIB, high: 1.2 * GIB + FRAGMENTS * allocatedInSteps.high }
  return { ...tensors, context: state.usesGpu ? context : exactly(0) }
}

/** The most that lies between tensors, of their size; the range of the activations has its own share. */
const FRAGMENTS = 0.15

function sharedWeights(weights: Interval, { stage, ways, offloadsWeights }: Sharding): Interval {
  if (offloadsWeights && stage === 3) return times(weights, IN_TRANSFER)
  if (stage < 3) return weights
  const share = divided(weights, ways)
  return { low: share.low, high: Math.min(weights.high, share.high + GATHERED * weights.high) }
}

/** Gradients that wait on the GPU to be moved: 500 million elements of half precision (DeepSpeed, `reduce_bucket_size`). */
const BUCKET = 5e8 * 2

function sharedGradients(gradients: Interval, { stage, ways, offloadsOptimizer }: Sharding): Interval {
  if (stage >= 2 && offloadsOptimizer)
    return { low: Math.min(gradients.low, BUCKET) / 2, high: gradients.high }
  return stage >= 2 ? divided(gradients, ways) : gradients
}

function sharedOptimizer(optimizer: Interval, { stage, ways, offloadsOptimizer }: Sharding): Interval {
  if (offloadsOptimizer) return exactly(0)
  return stage >= 1 ? divided(optimizer, ways) : optimizer
}

/**
 * The larger of two peaks. In the backward pass: the activations, with the half-precision copies of the weights that autocast makes. After it: the
 * update of all parameters at once, which needs as much as one more copy of them.
 */
function withStep(
  { activations: kept, trained, precision, sharding, usesGpu }: TrainingState,
  castBytes: number,
): Interval {
  const activations = { low: kept.low, high: kept.high + trained.high * castBytes }
  if (!usesGpu || sharding.offloadsOptimizer) return activations
  const share = sharding.stage === 0 ? 1 : 1 / sharding.ways.low
  const temporary = trained.high * (isHalf(precision) ? 2 : 4) * share
  return { low: activations.low, high: Math.max(activations.high, temporary) }
}

/** Numbers of elements of a kind that the forward pass keeps. */
export interface Tensors {
  /** In the precision of the computation. */
  plain: number
  /** In fp32, with autocast too: softmax and losses. */
  full: number
  /** Masks of dropout: 1 byte each on a GPU, up to 4 on a CPU. */
  masks: number
  /** Of 8 bytes. */
  indices: number
  /** In the precision of the computation, unless another kept tensor is the same one. */
  possible: number
  /** Elements of the largest tensor. */
  largest: number
}

/** How kept tensors were counted: on the model itself, or by its sizes. */
export type Counted = 'on-model' | 'by-sizes'

/**
 * What may be less or more than was counted. Sizes do not show smaller tensors and operations that are written in several steps; with tensors that
 * were counted on the model, only fragments are left.
 */
const ERRORS: Readonly<Record<Counted, Interval>> = {
  'on-model': { low: 0.85, high: 1 + FRAGMENTS },
  'by-sizes': { low: 0.85, high: 1.3 },
}

/** Bytes of kept tensors. */
export function keptBytes(tensors: Tensors, precision: Precision, counted: Counted): Interval {
  const { plain, full, masks, indices, possible } = tensors
  const error = ERRORS[counted]
  const [least, most] = elementBytes(precision)
  const low = plain * least + full * (isHalf(precision) ? 2 : 4) + masks + indices * 8
  const high = (plain + possible) * most + full * 4 + masks * 4 + indices * 8
  return { low: low * error.low, high: high * error.high }
}

/** The most bytes that the gradients of an operation need while the backward pass is at it. */
export const passingBytes = ({ largest }: Tensors, precision: Precision): number =>
  2 * largest * elementBytes(precision)[1]

const elementBytes = (precision: Precision): [least: number, most: number] =>
  precision === 'fp32' ? [4, 4] : isHalf(precision) ? [2, 2.5] : [2, 3]

export interface TransformerUse {
  batch: number
  length: number
  /** Whether attention keeps its scores, one for each pair of positions. */
  keepsScores: boolean
  /** Whether blocks are computed again in the backward pass. */
  recomputes: boolean
  /** Whether the weights are trained; with adapters and frozen weights, fewer inputs are kept. */
  isFrozen: boolean
}

/**
 * Tensors of a stack of transformer blocks: for each position 8 times the width (two normalizations, the input, queries, keys and values of
 * attention, its result, the input of the feed-forward part) and the inner width twice, or four times with a gate; for attention that keeps its
 * scores, one for each head and pair of positions; at the end the logits, and often once more, because a variable still holds them. Korthikanti et
 * al. 2022, section 4.1, without dropout: 16 times the width where the inner width is four times that. GELU that is written in several operations
 * (`NewGELUActivation` of Transformers) keeps three more tensors of the inner width, two of them in fp32 with autocast, which computes `pow` in
 * fp32 and may keep a copy of its input.
 */
export function transformerTensors(shape: Transformer, use: TransformerUse): Tensors {
  const { layers, width, heads, inner, vocabulary } = shape
  const positions = use.batch * use.length
  const block = positions * (8 * width + (shape.isGated === true ? 4 : 2) * inner) * (use.isFrozen ? 0.7 : 1)
  const scores = use.keepsScores ? use.batch * heads * use.length ** 2 : 0
  const logits = positions * vocabulary
  const blocks = use.recomputes ? 1 : layers
  const steps = shape.composesGelu === true ? blocks * positions * inner : 0
  return {
    plain: blocks * block + steps + (use.recomputes ? layers * positions * width : 0),
    full: blocks * scores + 2 * steps + logits,
    masks: 0,
    indices: positions,
    possible: logits + steps,
    largest: Math.max(logits, scores, positions * inner),
  }
}

/** Parameters of such a stack with its embeddings, biases left out. */
export function transformerParameters({
  layers,
  width,
  inner,
  vocabulary,
  isGated,
  length = 0,
}: Transformer): number {
  const block = 4 * width ** 2 + (isGated === true ? 3 : 2) * width * inner + 4 * width
  return layers * block + (vocabulary + length) * width
}
