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
  convertedBytes,
  copiesOf,
  isDeepSpeed,
  loadedBytes,
  optimizerOf,
  shardingOf,
} from '../memory/training'
import { found, notKnown, type Evidence, type Findings } from '../report'
import { numberOf } from '../values'
import { activationsOf, type Context, type OtherFindings } from './activations'

/** A range whose ends differ by more than this chooses no GPU. */
const RATIO_MAX = 2.5

export function findMemory(
  facts: Facts,
  known: OtherFindings,
  { models, unknown }: ModelsUsed,
): Findings['memory'] {
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
  if (addsLayers(facts)) missing.add('the size of the layers that it adds')
  const components = componentsOf(models, context)
  const total = totalOf(components)
  const isNarrow = total.high / total.low <= RATIO_MAX
  const evidence = evidenceFor(models, context)
  const confidence = missing.size > 0 ? POOR : isNarrow ? GOOD : FAIR
  return found(inGiB(components), { confidence, evidence, missing: [...missing] })
}

const totalOf = ({ weights, gradients, optimizer, activations, context }: Components): Interval =>
  sum(weights, gradients, optimizer, activations, context)

/** Of narrow ranges, the share that held the truth in `test/published-memory.test.ts`, with whose cases the rules were made. */
const GOOD = 0.9
const FAIR = 0.7
const POOR = 0.4

/** A new last layer or two, which are small next to a published model. */
const HEAD_LAYERS_MAX = 2
const LAYER =
  /^(?:torch\.nn|(?:tensorflow\.)?keras\.layers)\.(?:Linear|Dense|Conv|Embedding|LSTM|GRU|RNN|Transformer|Multi[Hh]ead)/

/** Whether the program adds layers of its own to a published model, whose size nothing shows. */
function addsLayers({ events }: Facts): boolean {
  const layers = events.filter(
    (event) => isCalled(event) && LAYER.test(event.name) && !event.name.includes('()'),
  )
  return (
    layers.length > HEAD_LAYERS_MAX || layers.some(({ method }) => method !== 'Linear' && method !== 'Dense')
  )
}

function componentsOf(models: readonly ModelUse[], context: Context): Components {
  const { facts, known, precision, missing } = context
  const optimizer = optimizerOf(facts)
  if (!optimizer.isKnown) missing.add('the optimizer')
  const sharding = shardingOf(facts, known.gpuCount.value)
  if (sharding.stage > 0 && sharding.ways.low !== sharding.ways.high) missing.add('the number of GPUs')
  const trained = models.filter(({ isFrozen }) => !isFrozen)
  return memoryOf({
    trained: sum(...trained.map(({ parameters }) => parameters), adapterParameters(models, facts)),
    frozenBytes: sum(
      ...models.filter(({ isFrozen }) => isFrozen).map((model) => frozenBytes(model, context)),
    ),
    precision: trainedPrecision(trained, precision),
    keepsMaster: isDeepSpeed(facts),
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
  const bytes = first === undefined ? undefined : loadedBytes(first.event)
  return bytes?.low === 2 && precision !== 'fp16' ? 'bf16' : precision
}

/** With mixed precision, weights that are only used are often kept in half precision. */
function frozenBytes({ parameters, event }: ModelUse, { facts, precision }: Context): Interval {
  const loaded = loadedBytes(event) ?? convertedBytes(event, facts, precision)
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
