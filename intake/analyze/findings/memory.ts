/** The memory of one GPU that a training run needs. */
import { argument, evidenceOf, isCalled, type Facts } from '../facts'
import {
  exactly,
  GIB,
  memoryOf,
  scaled,
  sum,
  type Components,
  type Interval,
  type Precision,
} from '../memory/arithmetic'
import { isAdapter, type ModelUse, type ModelsUsed } from '../memory/models'
import {
  computesInHalf,
  convertedBytes,
  copiesOf,
  loadedBytes,
  mainGradients,
  optimizerOf,
  shardingOf,
} from '../memory/training'
import { found, notKnown, type Evidence, type Findings } from '../report'
import { numberOf } from '../values'
import { activationsOf, type Context, type Known } from './activations'

/** A range whose ends differ by more than this chooses no GPU. */
const RATIO_MAX = 2.5

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
/**
 * Of six networks of PyTorch in the second set of `npm run bench:memory` that had this confidence before any rule changed because of them, four ranges held,
 * and of 12 in the set before it, two. After the changes 11 of 12 held in each. An estimate.
 */
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
