/** Whether a run on a CPU would take days: its operations, by parameters and samples. */
import { evidenceOf, type Facts } from '../facts'
import { lengthOf, namedNumber, sideOf } from '../memory/inputs'
import type { ModelUse, ModelsUsed } from '../memory/models'
import { DATA_SAMPLES, OPERATIONS_OF_DAY } from '../memory/work'
import type { Evidence, Findings } from '../report'
import { multiplicationsOf } from './run-time'

type Known = Pick<Findings, 'data' | 'epochs' | 'steps' | 'batchSize'>

/**
 * Assumed sizes of a program that does not show its own. Some are wrong by a factor of ten, which rarely matters, because the work of
 * hours and that of weeks differ by more.
 */
const USUAL = { samples: 50_000, parameters: 10e6, parametersOfPretrained: 100e6, length: 512, epochs: 1 }

/** Samples in the smallest usual part of data sets that have several parts, or that are folders of pictures. */
const USUAL_SAMPLES: Readonly<Record<string, number>> = { LIBRISPEECH: 28_539, ImageFolder: 100_000 }

/** The call that makes the work large; `undefined` if it is done within a day. */
export function findHeaviness(facts: Facts, known: Known, used: ModelsUsed): Evidence | undefined {
  // Twice for each multiplication and addition, three times for the passes forward and backward.
  const operations = 2 * 3 * multiplicationsOfSample(facts, known, used) * samplesOfRun(facts, known)
  if (operations < OPERATIONS_OF_DAY) return undefined
  const [model] = used.models
  const evidence = [...known.data.evidence, ...known.steps.evidence, ...known.epochs.evidence]
  return model === undefined ? evidence[0] : evidenceOf(model.event)
}

/** Names of the number of batches in a step. */
const ACCUMULATION = [
  'gradient_accumulation_steps',
  'gradient_accumulate_every',
  'grad_accum_steps',
  'accumulation_steps',
  'accum_steps',
]

function samplesOfRun(facts: Facts, { data, epochs, steps, batchSize }: Known): number {
  if (steps.value !== null && steps.value > 0)
    return steps.value * (batchSize.value ?? 1) * (namedNumber(facts, ACCUMULATION) ?? 1)
  const sizes = (data.value ?? [])
    .map((name) => DATA_SAMPLES[name] ?? USUAL_SAMPLES[name])
    .filter((size) => size !== undefined)
  return (sizes.length === 0 ? USUAL.samples : Math.max(...sizes)) * (epochs.value ?? USUAL.epochs)
}

function multiplicationsOfSample(facts: Facts, known: Known, { models, unknown }: ModelsUsed): number {
  const positions = positionsOfSample(facts, known)
  const working = models.filter(({ passesGradients }) => passesGradients)
  const counts = working.map(
    (model) => multiplicationsOf(model, facts) ?? model.parameters.high * (positions ?? usualOf(model)),
  )
  const others = unknown.map((name) => parametersInName(name) * (positions ?? USUAL.length))
  const own = working.length + unknown.length === 0 ? [USUAL.parameters * (positions ?? 1)] : []
  return [...counts, ...others, ...own].reduce((sum, count) => sum + count, 0)
}

const usualOf = ({ transformer }: ModelUse): number => (transformer === undefined ? 1 : USUAL.length)

/** Parameters that the name of a model says: `opt-125m`, `Qwen2.5-0.5B`. */
function parametersInName(name: string): number {
  const size = /(?<![\d.])(\d+(?:\.\d+)?)([bm])(?![a-z])/i.exec(name.slice(name.lastIndexOf('/') + 1))
  if (size !== null) return Number(size[1]) * (size[2]!.toLowerCase() === 'b' ? 1e9 : 1e6)
  return /tiny|mini|nano|test/i.test(name) ? USUAL.parameters : USUAL.parametersOfPretrained
}

/** Places of a picture of 224 pixels at which a convolutional network uses a weight: 4.1e9 multiplications of 26e6 in a ResNet-50. */
const PLACES_OF_PICTURE = { side: 224, places: 160 }
/** Frames of some seconds of speech. */
const FRAMES_OF_SPEECH = 500

/** How often a sample uses each parameter; `undefined` if nothing shows that it is more than once. */
function positionsOfSample(facts: Facts, { data }: Known): number | undefined {
  const { events } = facts
  if (events.some(({ name }) => name.startsWith('torchaudio.datasets.'))) return FRAMES_OF_SPEECH
  const known = (data.value ?? []).map((name) => SIDES[name]).find((size) => size !== undefined)
  if (known === undefined && !usesPictures(facts)) return lengthOf(facts)
  const { side, places } = PLACES_OF_PICTURE
  return places * ((sideOf(facts) ?? known ?? side) / side) ** 2
}

const usesPictures = ({ events }: Facts): boolean =>
  events.some(
    ({ name }) => name.startsWith('torchvision.datasets.') || name.startsWith('torchvision.models.'),
  )

/** Pixels of a side of published data sets of pictures of `DATA_SAMPLES`, of libraries other than torchvision. */
const SIDES: Readonly<Record<string, number>> = {
  mnist: 28,
  fashion_mnist: 28,
  cifar10: 32,
  cifar100: 32,
  food101: 224,
  'imagenet-1k': 224,
  imagenet2012: 224,
}
