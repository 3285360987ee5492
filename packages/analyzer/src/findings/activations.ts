/** Estimates the memory that the forward pass of a program's models keeps for the backward pass. */
import { isCalled, type Facts } from '../facts'
import {
  exactly,
  keptBytes,
  passingBytes,
  sum,
  transformerTensors,
  type Interval,
  type Precision,
  type Tensors,
} from '../memory/arithmetic'
import { lengthOf, samplesAtOnce, sideOf } from '../memory/inputs'
import type { ModelUse } from '../memory/models'
import { tensorsOfPicture } from '../memory/pictures'
import { isDeepSpeed } from '../memory/training'
import type { Findings } from '../report'
import { textOf } from '../values'

/** Other findings that this one depends on. */
export type OtherFindings = Pick<
  Findings,
  'precision' | 'batchSize' | 'gpuUse' | 'gpuCount' | 'gradientCheckpointing'
>

/** Values between which a script's own most often are, for what it does not say. */
const USUAL_BATCH = { low: 1, high: 64 }
const USUAL_LENGTH = { low: 128, high: 1024 }
const USUAL_SIDE = { low: 128, high: 512 }

export interface Context {
  facts: Facts
  known: OtherFindings
  precision: Precision
  missing: Set<string>
}

/** Of all models; the backward pass is at one operation of one of them at a time. */
export function activationsOf(models: readonly ModelUse[], context: Context): Interval {
  const parts = models.filter(({ passesGradients }) => passesGradients).map((each) => keptOf(each, context))
  const passing = Math.max(0, ...parts.map((part) => part.passing))
  return sum(...parts.map(({ kept }) => kept), { low: 0, high: passing })
}

function keptOf(model: ModelUse, context: Context): { kept: Interval; passing: number } {
  const batch = batchOf(context)
  const [least, most] = [tensorsOf(model, context, 'low'), tensorsOf(model, context, 'high')]
  if (least === undefined || most === undefined) {
    context.missing.add('the shape of the data')
    // Between the input of one layer and one full set of tensors as large as the weights, for each sample.
    return { kept: { low: 0, high: batch.high * model.parameters.high * 4 }, passing: 0 }
  }
  const precision = computedPrecision(context)
  const counted = model.pictures === undefined ? 'by-sizes' : 'on-model'
  const low = keptBytes(least, precision, counted).low * batch.low
  const high = keptBytes(most, precision, counted).high * batch.high
  return { kept: { low, high }, passing: passingBytes(most, precision) * batch.high }
}

/** DeepSpeed computes in half precision throughout, without autocast (Accelerate 0.30.1, `accelerator.py`). */
const computedPrecision = ({ facts, precision }: Context): Precision =>
  precision.endsWith('mixed') && isDeepSpeed(facts) ? 'fp16' : precision

function batchOf({ facts, known, missing }: Context): Interval {
  const value = known.batchSize.value ?? samplesAtOnce(facts)
  if (value === undefined) missing.add('the batch size')
  return value === undefined ? USUAL_BATCH : exactly(value)
}

/** Tensors of one sample, at one end of the range. */
function tensorsOf(model: ModelUse, context: Context, end: 'low' | 'high'): Tensors | undefined {
  const recomputes = isRecomputed(model, context)
  if (model.pictures !== undefined) return pictureTensors(model, context, end)
  if (model.transformer !== undefined) {
    const { transformer } = model
    const value = transformer.length ?? lengthOf(context.facts)
    const length = usualOr({ what: 'the length of a sequence', value, usual: USUAL_LENGTH, end }, context)
    const keepsScores = scoresKept(model, context.facts, end)
    return transformerTensors(transformer, {
      batch: 1,
      length,
      keepsScores,
      recomputes,
      isFrozen: model.isFrozen,
    })
  }
  return undefined
}

/** Whether gradient checkpointing is on for a model: if the program names models, for those. */
function isRecomputed({ event }: ModelUse, { facts, known }: Context): boolean {
  if (known.gradientCheckpointing.value !== true) return false
  const named = facts.events.filter(isCalled).flatMap(({ method, receiver }) => {
    const isOn = method === 'enable_gradient_checkpointing' || method === 'gradient_checkpointing_enable'
    return isOn && receiver?.kind === 'made' ? [receiver.call] : []
  })
  return named.length === 0 || named.includes(event)
}

interface Size {
  what: string
  value: number | undefined
  /** Interval that contains the size most often. */
  usual: Interval
  end: 'low' | 'high'
}

function usualOr({ what, value, usual, end }: Size, { missing }: Context): number {
  if (value !== undefined) return value
  missing.add(what)
  return usual[end]
}

/** Fused attention keeps no scores; it is what libraries use since 2023 unless a program asks otherwise, or the model has none. */
function scoresKept({ event, transformer }: ModelUse, { events }: Facts, end: 'low' | 'high'): boolean {
  const asked = events
    .map(({ named }) => textOf(named.get('attn_implementation')))
    .find((each) => each !== undefined)
  if (asked !== undefined) return asked === 'eager'
  if (transformer?.length !== undefined) return end === 'high'
  const text = `${event.name} ${event.argumentTexts.join(' ')}`.toLowerCase()
  return UNFUSED.some((name) => text.includes(name))
}

const UNFUSED = ['t5', 'deberta', 'bloom']

function pictureTensors(model: ModelUse, context: Context, end: 'low' | 'high'): Tensors {
  const { facts } = context
  const pictures = model.pictures!
  const value = sideOf(facts) ?? (pictures.attentionMiB === undefined ? undefined : pictures.side)
  return tensorsOfPicture(pictures, {
    side: usualOr({ what: 'the size of a picture', value, usual: USUAL_SIDE, end }, context),
    recomputes: isRecomputed(model, context),
    fusesAttention: fusesAttention(facts, end),
    isFrozen: model.isFrozen,
    // If only an encoder is trained, gradients pass through the second half of a frozen network only.
    passesHalf: model.isFrozen && !model.isAdapted && end === 'low',
    end,
  })
}

/** xFormers, or PyTorch 2, which a program does not show: only the upper end counts on none. */
function fusesAttention({ events }: Facts, end: 'low' | 'high'): boolean {
  return (
    events.some(
      (event) => isCalled(event) && event.method === 'enable_xformers_memory_efficient_attention',
    ) ||
    (end === 'low' && !events.some(({ name }) => name.startsWith('jax.')))
  )
}
