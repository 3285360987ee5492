/** Estimates the training time from its work. */
import { evidenceOf, type Facts } from '../facts'
import { exactly, scaled, sum, type Interval } from '../memory/arithmetic'
import { lengthOf, namedNumber, sideOf } from '../memory/inputs'
import type { ModelUse, ModelsUsed } from '../memory/models'
import { DATA_SAMPLES, REFERENCE, secondsOf, transformerMultiplications } from '../memory/work'
import { found, notKnown, POSSIBLE, type Findings } from '../report'

type OtherFindings = Pick<
  Findings,
  'precision' | 'batchSize' | 'epochs' | 'steps' | 'gpuUse' | 'gpuCount' | 'gradientCheckpointing' | 'data'
>
type RunTime = NonNullable<Findings['runTime']['value']>

const HOUR_SECONDS = 3600

export function findRunTime(
  facts: Facts,
  known: OtherFindings,
  { models, unknown }: ModelsUsed,
): Findings['runTime'] {
  if (known.gpuUse.value === 'none') return notKnown<RunTime>('it uses no GPU')
  const batch = known.batchSize.value
  if (batch === null) return notKnown<RunTime>('the batch size')
  const gpus = known.gpuCount.value
  if (gpus === null) return notKnown<RunTime>('the number of GPUs')
  const samples = samplesOf(facts, known, { batch, gpus })
  if (samples === undefined) return notKnown<RunTime>('the number of steps, or of epochs and samples')
  const working = models.filter(({ passesGradients }) => passesGradients)
  const counts = working.map((model) => multiplicationsOf(model, facts))
  const multiplications = counts.reduce<number>((total, count) => total + (count ?? NaN), 0)
  if (unknown.length > 0 || !(multiplications > 0))
    return notKnown<RunTime>('the work of one step of the model')
  const seconds = secondsOf({
    multiplications,
    samples,
    batch,
    precision: known.precision.value ?? 'fp32',
    recomputes: known.gradientCheckpointing.value === true,
  })
  const { low, high } = scaled(sum(seconds), 1 / HOUR_SECONDS)
  const length = known.steps.value === null ? known.epochs : known.steps
  return found(
    {
      class: classOf(Math.sqrt(low * high)),
      lowHours: rounded(low),
      highHours: rounded(high),
      accelerator: REFERENCE,
      gpus,
    },
    {
      // The range is wide and most often right, but other parts of the program may take time too.
      confidence: POSSIBLE,
      evidence: [...length.evidence, ...working.map(({ event }) => evidenceOf(event))],
      missing: ['a few measured steps'],
    },
  )
}

const rounded = (hours: number): number => Number(hours.toPrecision(2))

function classOf(hours: number): RunTime['class'] {
  if (hours < 1) return 'minutes'
  if (hours < 24) return 'hours'
  return hours < 7 * 24 ? 'days' : 'weeks'
}

const ACCUMULATION = ['gradient_accumulation_steps', 'accumulate_grad_batches', 'grad_accum_steps']

/** Samples of each GPU. */
function samplesOf(
  facts: Facts,
  { steps, epochs, data }: OtherFindings,
  { batch, gpus }: { batch: number; gpus: number },
): Interval | undefined {
  if (steps.value !== null && steps.value > 0) {
    const accumulated = namedNumber(facts, ACCUMULATION) ?? 1
    const whole = steps.value * batch * accumulated
    // Some programs divide the batches of a step among the GPUs.
    return accumulated > 1 ? { low: whole / Math.min(gpus, accumulated), high: whole } : exactly(whole)
  }
  const sizes = (data.value ?? []).map((name) => DATA_SAMPLES[name])
  const [size] = sizes
  if (sizes.length !== 1 || size === undefined || epochs.value === null) return undefined
  return exactly((size * epochs.value) / gpus)
}

/** Multiplications of a forward pass of one sample. */
export function multiplicationsOf(model: ModelUse, facts: Facts): number | undefined {
  const { transformer, pictures, parameters } = model
  if (pictures?.gigaMultiplications !== undefined) {
    const side = sideOf(facts) ?? pictures.side
    return pictures.gigaMultiplications * 1e9 * (side / pictures.side) ** 2
  }
  if (transformer !== undefined) {
    const length = transformer.length ?? lengthOf(facts)
    return length === undefined
      ? undefined
      : transformerMultiplications(transformer, { parameters: parameters.high, length })
  }
  return undefined
}
