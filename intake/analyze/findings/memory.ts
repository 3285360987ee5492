/** The memory of one GPU that a training run needs. */
import { argument, evidenceOf, isCalled, type Facts } from '../facts'
import {
  exactly,
  GIB,
  keptBytes,
  memoryOf,
  passingBytes,
  scaled,
  sum,
  transformerTensors,
  type Components,
  type Interval,
  type Precision,
  type Tensors,
} from '../memory/arithmetic'
import { lengthOf, sideOf } from '../memory/inputs'
import { isAdapter, type ModelUse, type ModelsUsed } from '../memory/models'
import { tensorsOfPicture } from '../memory/pictures'
import {
  computesInHalf,
  convertedBytes,
  copiesOf,
  loadedBytes,
  mainGradients,
  optimizerOf,
  shardingOf,
} from '../memory/training'
import { megatronOption } from '../options/megatron'
import { found, notKnown, type Evidence, type Findings } from '../report'
import { numberOf, textOf } from '../values'

/** What other findings say, and this one builds on. */
type Known = Pick<Findings, 'precision' | 'batchSize' | 'gpuUse' | 'gpuCount' | 'gradientCheckpointing'>

/** Values between which a script's own most often are, for what it does not say. */
const USUAL_BATCH = { low: 1, high: 64 }
const USUAL_LENGTH = { low: 128, high: 1024 }
const USUAL_SIDE = { low: 128, high: 512 }

/** A range whose ends differ by more than this chooses no GPU. */
const RATIO_MAX = 2.5

interface Context {
  facts: Facts
  known: Known
  precision: Precision
  missing: Set<string>
}

export function findMemory(facts: Facts, known: Known, { models, unknown }: ModelsUsed): Findings['memory'] {
  const precision = known.precision.value ?? 'fp32'
  const missing = new Set<string>()
  const context = { facts, known, precision, missing }
  if (models.length === 0)
    return notKnown(
      unknown.length > 0
        ? `the size of ${unknown.join(', ')}`
        : 'the size of the model, which no known library defines here',
    )
  if (
    models.every(({ isFrozen }) => isFrozen) &&
    !facts.events.some((event) => isCalled(event) && isAdapter(event))
  )
    missing.add('which of the models are trained')
  for (const name of unknown) missing.add(`the size of ${name}`)
  if (models.some(({ parameters, split }) => split !== undefined && split.parameters.low < parameters.low))
    missing.add('how much of the activations the GPUs share')
  const components = componentsOf(models, context)
  const total = totalOf(components)
  if (!Number.isFinite(total.high))
    return notKnown<NonNullable<Findings['memory']['value']>>('the sizes of some layers', ...missing)
  // What a program's own layers keep is counted from the text of their forward pass, in which one step that is not understood is much.
  const isNarrow =
    total.high / total.low <= RATIO_MAX &&
    models.every(({ kept, split }) => kept === undefined && split === undefined)
  const evidence = evidenceFor(models, context)
  const isRough = models.some((model) => model.isRough === true)
  const confidence = missing.size > 0 || isRough ? POOR : isNarrow ? GOOD : FAIR
  return found(inGiB(components), { confidence, evidence, missing: [...missing] })
}

const totalOf = ({ weights, gradients, optimizer, activations, context }: Components): Interval =>
  sum(weights, gradients, optimizer, activations, context)

/** Of narrow ranges of published models, the share that held the truth in `npm run bench:memory`, with whose cases the rules were made. */
const GOOD = 0.9
/** Of 12 networks that were written after the rules, 2 ranges held before the rules changed because of them, and 11 after it. An estimate. */
const FAIR = 0.7
const POOR = 0.4

function componentsOf(models: readonly ModelUse[], context: Context): Components {
  const { facts, known, precision, missing } = context
  const optimizer = optimizerOf(facts)
  if (!optimizer.isKnown) missing.add('the optimizer')
  const sharding = shardingOf(facts, known.gpuCount.value)
  if (sharding.stage > 0 && sharding.ways.low !== sharding.ways.high) missing.add('the number of GPUs')
  const trained = models.filter(({ isFrozen }) => !isFrozen)
  return memoryOf({
    trained: sum(
      ...trained.map(({ split, parameters }) => split?.parameters ?? parameters),
      adapterParameters(models, facts),
    ),
    frozenBytes: sum(
      ...models.filter(({ isFrozen }) => isFrozen).map((model) => frozenBytes(model, context)),
    ),
    precision: trainedPrecision(trained, precision),
    keepsMaster: computesInHalf(facts),
    mainGradients: mainGradients(facts),
    optimizer: optimizer.bytes,
    copies: copiesOf(facts),
    sharding,
    activations: activationsOf(models, context),
    usesGpu: known.gpuUse.value !== 'none',
  })
}

/** Weights that are loaded in half precision are trained in it. */
function trainedPrecision(trained: readonly ModelUse[], precision: Precision): Precision {
  const [first] = trained
  const bytes = first?.event === undefined ? undefined : loadedBytes(first.event)
  return bytes?.low === 2 && precision !== 'fp16' ? 'bf16' : precision
}

/** With mixed precision, weights that are only used are often kept in half precision. */
function frozenBytes({ parameters, event }: ModelUse, { facts, precision }: Context): Interval {
  const loaded =
    event === undefined ? undefined : (loadedBytes(event) ?? convertedBytes(event, facts, precision))
  const bytes =
    loaded ?? (precision === 'fp32' ? exactly(4) : { low: 2, high: precision.endsWith('mixed') ? 4 : 2 })
  return { low: parameters.low * bytes.low, high: parameters.high * bytes.high }
}

/**
 * Two matrices of the adapter's rank for each adapted matrix. Of the parameters of a model, that is between a ten-thousandth and a thousandth
 * for each rank, by the number of adapted matrices and their width.
 */
function adapterParameters(models: readonly ModelUse[], facts: Facts): Interval {
  const adapter = facts.events.find(
    (event) => isCalled(event) && isAdapter(event) && event.method.endsWith('Config'),
  )
  if (adapter === undefined) return exactly(0)
  const rank = numberOf(argument(adapter, 'r')) ?? 8
  const base = sum(...models.map(({ parameters }) => parameters))
  return { low: base.low * rank * 1e-5, high: base.high * rank * 1e-3 }
}

/** Of all models; the backward pass is at one operation of one of them at a time. */
function activationsOf(models: readonly ModelUse[], context: Context): Interval {
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
  const counted =
    model.isRough === true ? 'by-results' : model.pictures === undefined ? 'by-rules' : 'on-model'
  const low = (keptBytes(least, precision, counted).low * batch.low) / (model.split?.tensorWays ?? 1)
  const high = keptBytes(most, precision, counted).high * batch.high
  return { kept: { low, high }, passing: passingBytes(most, precision) * batch.high }
}

/** DeepSpeed and Megatron compute in half precision throughout, without autocast (Accelerate 0.30.1, `accelerator.py`). */
const computedPrecision = ({ facts, precision }: Context): Precision =>
  precision.endsWith('mixed') && computesInHalf(facts) ? 'fp16' : precision

function batchOf({ known, missing }: Context): Interval {
  const { value } = known.batchSize
  if (value === null) missing.add('the batch size')
  return value === null ? USUAL_BATCH : exactly(value)
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
  if (model.kept === undefined) return undefined
  if (!model.kept.isComplete) context.missing.add('the shapes of some layers')
  return recomputes && end === 'low' ? thinned(model.kept, 0.1) : model.kept
}

/** Whether gradient checkpointing is on for a model: if the program names models, for those. */
function isRecomputed({ event }: ModelUse, { facts, known }: Context): boolean {
  if (known.gradientCheckpointing.value !== true) return false
  const named = facts.events.filter(isCalled).flatMap(({ method, receiver }) => {
    const isOn = method === 'enable_gradient_checkpointing' || method === 'gradient_checkpointing_enable'
    return isOn && receiver?.kind === 'made' ? [receiver.call] : []
  })
  return named.length === 0 || event === undefined || named.includes(event)
}

interface Size {
  what: string
  value: number | undefined
  /** Where it most often is. */
  usual: Interval
  end: 'low' | 'high'
}

function usualOr({ what, value, usual, end }: Size, { missing }: Context): number {
  if (value !== undefined) return value
  missing.add(what)
  return usual[end]
}

/** Fused attention keeps no scores; it is what libraries use since 2023 unless a program asks otherwise, or the model has none. */
function scoresKept(
  { event, transformer, split }: ModelUse,
  { events, run }: Facts,
  end: 'low' | 'high',
): boolean {
  if (split !== undefined) return end === 'high' && megatronOption(run, 'use_flash_attn') === undefined
  const asked = events
    .map(({ named }) => textOf(named.get('attn_implementation')))
    .find((each) => each !== undefined)
  if (asked !== undefined) return asked === 'eager'
  if (transformer?.length !== undefined) return end === 'high'
  const text = `${event?.name ?? ''} ${event?.argumentTexts.join(' ') ?? ''}`.toLowerCase()
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

const thinned = (tensors: Tensors, part: number): Tensors => ({
  ...tensors,
  plain: tensors.plain * part,
  full: tensors.full * part,
  masks: tensors.masks * part,
})

function evidenceFor(models: readonly ModelUse[], { facts, known }: Context): Evidence[] {
  const events = [...models.map(({ event }) => event), optimizerOf(facts).event]
  return [
    ...events.flatMap((event) => (event === undefined ? [] : [evidenceOf(event)])),
    ...known.batchSize.evidence,
  ]
}

function inGiB(components: Components): NonNullable<Findings['memory']['value']> {
  const range = (bytes: Interval): { lowGiB: number; highGiB: number } => {
    const { low, high } = scaled(bytes, 1 / GIB)
    return { lowGiB: Number(low.toPrecision(4)), highGiB: Number(high.toPrecision(4)) }
  }
  return {
    ...range(totalOf(components)),
    components: {
      weights: range(components.weights),
      gradients: range(components.gradients),
      optimizer: range(components.optimizer),
      activations: range(components.activations),
      context: range(components.context),
    },
  }
}
