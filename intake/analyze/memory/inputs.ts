/** The shape of what a model is trained on: sizes of pictures, lengths of sequences. */
import { isCalled, type Facts } from '../facts'
import { numberOf, type CallEvent } from '../values'
import { arrayMade } from './jax-arrays'
import { layerName, numberGiven, shapeMade } from './layers'

/** A number by the name that a program gives it: of an option, a constant, a setting or an argument; the first that is found. */
export function namedNumber({ run, events }: Facts, names: readonly string[]): number | undefined {
  const isWanted = (name: string): boolean =>
    names.includes(name.slice(name.lastIndexOf('.') + 1).toLowerCase())
  const candidates = [
    ...run.options.filter(({ key }) => isWanted(key)).map((option) => option.given ?? option.default),
    ...run.constants.filter(({ kind }) => isWanted(kind)).map(({ value }) => value),
    ...[...run.instances].flatMap(({ attributes }) =>
      [...attributes].filter(([name]) => isWanted(name)).map(([, value]) => value),
    ),
    ...events.flatMap(({ named }) => [...named].filter(([name]) => isWanted(name)).map(([, value]) => value)),
  ]
  return candidates.map(numberOf).find((value) => value !== undefined && value > 0)
}

const LENGTHS = [
  ...[
    'block_size',
    'max_seq_length',
    'max_seq_len',
    'seq_len',
    'seq_length',
    'sequence_length',
    'context_length',
  ],
  ...[
    'context',
    'length',
    'max_length',
    'model_max_length',
    'max_source_length',
    'context_size',
    'ctx_len',
    'n_ctx',
    'max_len',
    'bptt',
  ],
]

/** Positions of a sequence. */
export function lengthOf(facts: Facts): number | undefined {
  return namedNumber(facts, LENGTHS) ?? madeShapes(facts).find((shape) => shape.length === 2)?.[1]
}

export const headsOf = (facts: Facts): number | undefined =>
  namedNumber(facts, ['n_head', 'n_heads', 'num_heads', 'nhead', 'heads', 'num_attention_heads'])

/** Shapes of the tensors that the program makes with random contents, as data. */
function madeShapes({ events }: Pick<Facts, 'events'>): number[][] {
  return events.filter(isCalled).flatMap((event) => {
    if (!['randn', 'rand', 'randint', 'normal'].includes(event.method)) return []
    const shape = shapeMade(event) ?? arrayMade(event)
    return shape === undefined || shape.length < 2 ? [] : [shape]
  })
}

/**
 * Samples that a program trains on at once, where nothing loads them in batches: by a name, as the step of a loop over the data, or of data that is made
 * at random for each step.
 */
export function samplesAtOnce(facts: Facts): number | undefined {
  const { events, loops } = facts
  const named = namedNumber(facts, ['batch_size', 'batchsize', 'train_batch_size', 'batch'])
  if (named !== undefined) return named
  const steps = events.filter(({ name, positional }) => name === 'range' && positional.length === 3)
  const step = steps
    .map(({ positional }) => numberOf(positional[2]))
    .find((each) => each !== undefined && each > 1)
  const made = events.filter((event) => isCalled(event) && event.loops.some((loop) => loops.has(loop)))
  return step ?? madeShapes({ events: made }).map(([first]) => first)[0]
}

const SIDES = [
  'resolution',
  'image_size',
  'img_size',
  'imgsz',
  'crop_size',
  'input_size',
  'image_resolution',
  'patch_size_px',
]

/** Pixels of a side of the pictures of data sets that are used as they are. */
const DATA_SIDES: Readonly<Record<string, number>> = {
  MNIST: 28,
  FashionMNIST: 28,
  KMNIST: 28,
  EMNIST: 28,
  QMNIST: 28,
  USPS: 16,
  CIFAR10: 32,
  CIFAR100: 32,
  SVHN: 32,
  STL10: 96,
}

const CROPS = new Set(['RandomResizedCrop', 'CenterCrop', 'RandomCrop', 'Resize'])

/** Pixels of a side of the training pictures. */
export function sideOf(facts: Facts): number | undefined {
  const { events } = facts
  const crops = events.filter(({ name, method }) => name.startsWith('torchvision.') && CROPS.has(method))
  for (const crop of [...CROPS].flatMap((wanted) => crops.filter(({ method }) => method === wanted))) {
    const size = crop.positional[0] ?? crop.named.get('size')
    const side = size?.kind === 'list' ? numberOf(size.items[0]) : numberOf(size)
    if (side !== undefined) return side
  }
  const named = namedNumber(facts, SIDES)
  if (named !== undefined) return named
  const data = events.find(
    ({ name, method }) => name.startsWith('torchvision.datasets.') && method in DATA_SIDES,
  )
  return data === undefined
    ? madeShapes(facts).find((shape) => shape.length === 4)?.[3]
    : DATA_SIDES[data.method]
}

/** The shape of a batch for a model that begins with these layers; `undefined` if a size is not known. */
export function batchShape(facts: Facts, layers: readonly CallEvent[], batch: number): number[] | undefined {
  const first = layers.find((layer) => FIRST_LAYERS.has(layerName(layer) ?? ''))
  if (first === undefined) return undefined
  const kind = layerName(first)!
  // A codebook behind an encoder of pictures gets no words.
  const embeds = kind !== 'Conv2d' && layers.some((layer) => layerName(layer) === 'Embedding')
  if (embeds) {
    const length = lengthOf(facts)
    if (length !== undefined) return [batch, length]
    const isSequence =
      headsOf(facts) !== undefined || layers.some((layer) => SEQUENCE_LAYERS.has(layerName(layer) ?? ''))
    return isSequence ? undefined : [batch]
  }
  if (kind === 'Linear') return flatShape(facts, first, { batch, layers })
  if (kind === 'Conv2d') {
    const channels = numberGiven(first, 'in_channels', { at: 0 })
    const side = sideOf(facts)
    return channels === undefined || side === undefined ? undefined : [batch, channels, side, side]
  }
  const width = numberGiven(first, kind === 'Conv1d' ? 'in_channels' : WIDTHS[kind]!, { at: 0 })
  const made = madeShapes(facts).find((shape) => shape.length === 3)
  const length = made === undefined ? lengthOf(facts) : kind === 'Conv1d' ? made[2] : made[1]
  if (width === undefined || length === undefined) return undefined
  return kind === 'Conv1d' ? [batch, width, length] : [batch, length, width]
}

const WIDTHS: Readonly<Record<string, string>> = {
  LSTM: 'input_size',
  GRU: 'input_size',
  RNN: 'input_size',
  TransformerEncoderLayer: 'd_model',
  MultiheadAttention: 'embed_dim',
}

const FIRST_LAYERS = new Set(['Linear', 'Conv1d', 'Conv2d', 'Embedding', ...Object.keys(WIDTHS)])

function flatShape(
  facts: Facts,
  first: CallEvent,
  { batch, layers }: { batch: number; layers: readonly CallEvent[] },
): number[] | undefined {
  const width = numberGiven(first, 'in_features', { at: 0 })
  if (width === undefined) return undefined
  const isSequence = layers.some((layer) => SEQUENCE_LAYERS.has(layerName(layer) ?? ''))
  const length = madeShapes(facts).find((shape) => shape.length === 3)?.[1] ?? lengthOf(facts)
  return isSequence && length !== undefined ? [batch, length, width] : [batch, width]
}

const SEQUENCE_LAYERS = new Set(Object.keys(WIDTHS))
