/** How a program trains: its optimizer, and how several GPUs share the state. */
import { argument, isCalled, lastPart, nameOf, type Facts } from '../facts'
import { deepSpeedConfig } from '../findings/settings'
import { settingsOf } from '../findings/devices'
import { constantOf, numberOf, setting, textOf, type CallEvent, type Value } from '../values'
import { exactly, NO_SHARDING, type Interval, type Precision, type Sharding } from './arithmetic'

/** Bytes of state per parameter in fp32, as each optimizer's paper or documentation has it; SGD and RMSprop depend on their arguments. */
const STATES: Readonly<Record<string, Interval>> = {
  Adam: exactly(8),
  AdamW: exactly(8),
  FusedAdam: exactly(8),
  DeepSpeedCPUAdam: exactly(8),
  Adamax: exactly(8),
  NAdam: exactly(8),
  RAdam: exactly(8),
  SparseAdam: exactly(8),
  Adadelta: exactly(8),
  Rprop: exactly(8),
  ASGD: exactly(8),
  LAMB: exactly(8),
  Lamb: exactly(8),
  FusedLAMB: exactly(8),
  Adagrad: exactly(4),
  Lion: exactly(4),
  LARS: exactly(4),
  // Rows and columns of each matrix; a first moment only if it is asked for.
  Adafactor: { low: 0.01, high: 0.2 },
  // Two states of 8 bits with their scales; small tensors stay in 32 bits.
  AdamW8bit: { low: 2, high: 2.2 },
  Adam8bit: { low: 2, high: 2.2 },
  PagedAdamW8bit: { low: 0, high: 2.2 },
  PagedAdam8bit: { low: 0, high: 2.2 },
  PagedAdamW: { low: 0, high: 8 },
  Lion8bit: { low: 1, high: 1.1 },
  // Of the last steps and gradients, 100 each if nothing else is given.
  LBFGS: { low: 8, high: 808 },
}

/** Of the argument `optim` of TrainingArguments. */
const STATES_BY_NAME: readonly (readonly [string, string])[] = [
  ['paged_adamw_8bit', 'PagedAdamW8bit'],
  ['paged_adamw', 'PagedAdamW'],
  ['8bit', 'AdamW8bit'],
  ['adafactor', 'Adafactor'],
  ['sgd', 'SGD'],
  ['adagrad', 'Adagrad'],
  ['lion', 'Lion'],
  ['adam', 'AdamW'],
]

export interface OptimizerUse {
  bytes: Interval
  event: CallEvent | undefined
  isKnown: boolean
}

/** The state that the optimizer keeps for each parameter; between nothing and that of Adam if no known optimizer is named. */
export function optimizerOf(facts: Facts): OptimizerUse {
  const events = facts.events.filter(isCalled)
  const named = events.flatMap((event) => {
    const bytes = stateOf(event)
    return bytes === undefined ? [] : [{ bytes, event }]
  })
  if (named.length > 0)
    return {
      bytes: {
        low: Math.min(...named.map(({ bytes }) => bytes.low)),
        high: Math.max(...named.map(({ bytes }) => bytes.high)),
      },
      event: named[0]!.event,
      isKnown: true,
    }
  // Keras knows them by name: `model.compile(optimizer='adam')`.
  for (const event of events) {
    const name =
      event.name.startsWith('keras.') && event.method === 'compile'
        ? textOf(argument(event, 'optimizer', 0))
        : undefined
    const bytes = KERAS_STATES[name?.toLowerCase() ?? '']
    if (bytes !== undefined) return { bytes: exactly(bytes), event, isKnown: true }
  }
  const configured = textOf(setting(setting(deepSpeedConfig(facts), 'optimizer'), 'type'))
  const ofConfig = configured === undefined ? undefined : STATES[configured]
  if (ofConfig !== undefined) return { bytes: ofConfig, event: undefined, isKnown: true }
  const settings = settingsOf(facts)
  if (settings?.library === 'hugging-face') {
    const name = textOf(settings.event.named.get('optim'))
    const found = STATES_BY_NAME.find(([part]) => (name ?? 'adamw_torch').includes(part))
    const bytes = found?.[1] === 'SGD' ? exactly(0) : STATES[found?.[1] ?? '']
    if (bytes !== undefined) return { bytes, event: settings.event, isKnown: true }
  }
  // A program of JAX that names no library of optimizers updates its parameters itself, and most such updates keep nothing.
  const takesGradients = events.some(({ name }) => name === 'jax.grad' || name === 'jax.value_and_grad')
  if (takesGradients && !events.some(({ name }) => /^(?:optax|jaxopt|flax|keras)\./.test(name)))
    return { bytes: exactly(0), event: undefined, isKnown: true }
  return { bytes: { low: 0, high: 8 }, event: undefined, isKnown: false }
}

/** By the names of Keras. */
const KERAS_STATES: Readonly<Record<string, number>> = {
  adam: 8,
  adamw: 8,
  adamax: 8,
  nadam: 8,
  adadelta: 8,
  adagrad: 4,
  rmsprop: 4,
  lion: 4,
  sgd: 0,
}

const LIBRARIES = [
  'torch.',
  'bitsandbytes.',
  'transformers.',
  'deepspeed.',
  'apex.',
  'timm.',
  'torch_optimizer.',
  'optax.',
  'keras.',
]

function stateOf(event: CallEvent): Interval | undefined {
  const { name, method, named } = event
  if (!LIBRARIES.some((library) => name.startsWith(library)) || name.includes('()')) return undefined
  if (method === 'SGD' || method === 'sgd') {
    // PyTorch's class is given the parameters first.
    const momentum = argument(event, 'momentum', name.startsWith('torch.') ? 2 : 1)
    const value = momentum === undefined ? 0 : numberOf(momentum)
    return value === undefined ? { low: 0, high: 4 } : exactly(value === 0 ? 0 : 4)
  }
  if (method === 'RMSprop') {
    const isCentered = constantOf(named.get('centered')) === true
    return exactly(4 + (isCentered ? 4 : 0) + ((numberOf(named.get('momentum')) ?? 0) > 0 ? 4 : 0))
  }
  const bytes = STATES[name.startsWith('optax.') ? (OPTAX[method] ?? '') : method]
  const keepsMaximum = constantOf(named.get('amsgrad')) === true
  return bytes !== undefined && keepsMaximum ? exactly(12) : bytes
}

const OPTAX: Readonly<Record<string, string>> = {
  adam: 'Adam',
  adamw: 'AdamW',
  adagrad: 'Adagrad',
  adafactor: 'Adafactor',
  lion: 'Lion',
  lamb: 'LAMB',
}

/** Copies of the trained weights: moving averages, and models that are copied whole. */
export function copiesOf({ events }: Facts): number {
  return events.some(
    (event) =>
      isCalled(event) &&
      ['EMAModel', 'ModelEmaV2', 'ModelEmaV3', 'AveragedModel', 'ExponentialMovingAverage'].includes(
        lastPart(event.name),
      ),
  )
    ? 1
    : 0
}

/** How GPUs share weights, gradients and optimizer, as far as the program or its configuration says. */
export function shardingOf(facts: Facts, gpus: number | null): Sharding {
  const ways = gpus === null ? { low: 1, high: 8 } : exactly(gpus)
  const config = deepSpeedConfig(facts)
  const zero = setting(config, 'zero_optimization')
  const stage = numberOf(setting(zero, 'stage'))
  if (stage !== undefined)
    return {
      stage: stageOf(stage),
      ways,
      offloadsOptimizer: isOffloaded(setting(zero, 'offload_optimizer')),
      offloadsWeights: isOffloaded(setting(zero, 'offload_param')),
    }
  const fromAccelerate = acceleratePlugin(facts)
  if (fromAccelerate !== undefined) return { ...fromAccelerate, ways }
  const events = facts.events.filter(isCalled)
  if (events.some(({ method }) => method === 'FullyShardedDataParallel' || method === 'fully_shard'))
    return { ...NO_SHARDING, stage: 3, ways }
  const parallel = events.find(({ method }) => method === 'ModelParallelStrategy')
  if (parallel !== undefined) return { ...NO_SHARDING, stage: 3, ways: waysOf(parallel, ways) }
  const strategies = events
    .map(({ named }) => textOf(named.get('strategy')))
    .filter((each) => each !== undefined)
  if (strategies.some((each) => each.startsWith('fsdp'))) return { ...NO_SHARDING, stage: 3, ways }
  const deepSpeed = strategies.find((each) => each.startsWith('deepspeed'))
  if (deepSpeed === undefined) return NO_SHARDING
  const offloads = deepSpeed.includes('offload')
  const number = Number(deepSpeed.split('_').find((part) => Number(part) >= 1) ?? 2)
  return {
    stage: stageOf(number),
    ways,
    offloadsOptimizer: offloads,
    offloadsWeights: offloads && number === 3,
  }
}

function waysOf({ named }: CallEvent, ways: Interval): Interval {
  const sizes = ['data_parallel_size', 'tensor_parallel_size'].map((name) => numberOf(named.get(name)))
  return sizes.every((size) => size !== undefined) ? exactly(sizes[0]! * sizes[1]!) : ways
}

/** Reads the settings of DeepSpeed or FSDP from the configuration of Accelerate. */
function acceleratePlugin({ launch, launchConfig }: Facts): Omit<Sharding, 'ways'> | undefined {
  const deepSpeed = setting(launchConfig, 'deepspeed_config')
  const stage = numberOf(setting(deepSpeed, 'zero_stage')) ?? Number(launch.settings.get('zero_stage') ?? NaN)
  if (Number.isFinite(stage))
    return {
      stage: stageOf(stage),
      offloadsOptimizer: textOf(setting(deepSpeed, 'offload_optimizer_device')) === 'cpu',
      offloadsWeights: textOf(setting(deepSpeed, 'offload_param_device')) === 'cpu',
    }
  const isFsdp =
    setting(launchConfig, 'fsdp_config') !== undefined || launch.settings.get('use_fsdp') === 'true'
  return isFsdp ? { stage: 3, offloadsOptimizer: false, offloadsWeights: false } : undefined
}

const stageOf = (stage: number): Sharding['stage'] => (stage >= 3 ? 3 : stage === 2 ? 2 : stage === 1 ? 1 : 0)

const isOffloaded = (value: Value | undefined): boolean => textOf(setting(value, 'device')) === 'cpu'

/** Whether half precision is that of DeepSpeed: weights in half precision, and a copy in fp32 with the optimizer. */
export function isDeepSpeed(facts: Facts): boolean {
  return (
    facts.events.some(({ name }) => name === 'deepspeed.initialize') ||
    facts.events.some(({ named }) => textOf(named.get('strategy'))?.startsWith('deepspeed') === true) ||
    setting(deepSpeedConfig(facts), 'zero_optimization') !== undefined ||
    (facts.launch.launcher === 'accelerate' &&
      acceleratePlugin(facts)?.stage !== undefined &&
      isAccelerateDeepSpeed(facts))
  )
}

function isAccelerateDeepSpeed({ launch, launchConfig }: Facts): boolean {
  return (
    setting(launchConfig, 'deepspeed_config') !== undefined || launch.settings.get('use_deepspeed') === 'true'
  )
}

/** Bytes per weight that a loading call asks for; `undefined` if it says nothing. */
export function loadedBytes(event: CallEvent): Interval | undefined {
  const quantized = quantizedBytes(event)
  if (quantized !== undefined) return quantized
  const type = event.named.get('torch_dtype') ?? event.named.get('dtype')
  const name = type === undefined ? '' : (textOf(type) ?? nameOf(type))
  if (['bfloat16', 'float16', 'half'].some((half) => name.endsWith(half))) return exactly(2)
  return name.endsWith('float32') ? exactly(4) : undefined
}

/** Weights of 4 and 8 bits with their scales; embeddings and the head stay in half precision. */
function quantizedBytes({ named }: CallEvent): Interval | undefined {
  const config = named.get('quantization_config')
  const settings = config?.kind === 'made' ? config.call.named : named
  if (constantOf(settings.get('load_in_4bit')) === true) return { low: 0.5, high: 0.8 }
  return constantOf(settings.get('load_in_8bit')) === true ? { low: 1, high: 1.3 } : undefined
}

/** Of `model.to(device, dtype=weight_dtype)`, which gives the weights the type of the computation. */
export function convertedBytes(
  model: CallEvent,
  { events }: Facts,
  precision: Precision,
): Interval | undefined {
  const isConverted = events.some(
    ({ method, receiver, named }) =>
      method === 'to' && named.has('dtype') && receiver?.kind === 'made' && receiver.call === model,
  )
  return isConverted ? exactly(precision === 'fp32' ? 4 : 2) : undefined
}
