/** The shape of what a model is trained on: sizes of pictures, lengths of sequences. */
import { isCalled, type Facts } from '../facts'
import { numberOf, type CallEvent } from '../values'

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
  'block_size',
  'max_seq_length',
  'max_seq_len',
  'seq_len',
  'seq_length',
  'sequence_length',
  'context_length',
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
]

/** Positions of a sequence. */
export function lengthOf(facts: Facts): number | undefined {
  return namedNumber(facts, LENGTHS) ?? madeShapes(facts).find((shape) => shape.length === 2)?.[1]
}

/** Shapes of the tensors that the program makes with random contents, as data. */
function madeShapes({ events }: Pick<Facts, 'events'>): number[][] {
  return events.filter(isCalled).flatMap((event) => {
    if (!['randn', 'rand', 'randint', 'normal'].includes(event.method)) return []
    const shape = shapeMade(event)
    return shape === undefined || shape.length < 2 ? [] : [shape]
  })
}

/** The shape of a tensor that a call makes with given sizes; `undefined` for sizes that are not known. */
function shapeMade({ name, method, positional, named }: CallEvent): number[] | undefined {
  if (!name.startsWith('torch.')) return undefined
  const sizes = named.get('size') ?? positional.find(({ kind }) => kind === 'list')
  const given = sizes?.kind === 'list' ? sizes.items : method === 'randint' ? [undefined] : positional
  const shape = given.map(numberOf)
  return shape.every((each) => each !== undefined) ? shape : undefined
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
