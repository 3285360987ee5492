/** Which devices the program uses, and how many. */
import { evidenceOf, isCalled, nameOf, type Facts } from '../facts'
import { CERTAIN, found, LIKELY, notKnown, type Evidence, type Findings } from '../report'
import type { Guard } from '../flow'
import {
  alternatives,
  constantOf,
  constructionOf,
  numberOf,
  setting,
  textOf,
  type CallEvent,
  type Value,
} from '../values'
import { isMegatronTraining } from '../options/megatron'
import type { ModelsUsed } from '../memory/models'
import { findHeaviness } from './heaviness'
import { trainingArguments } from './implied-saves'

type DeviceFindings = Pick<
  Findings,
  'gpuUse' | 'needsGpu' | 'multiGpu' | 'multiGpuStyle' | 'gpuCount' | 'cannotRun'
>

type Known = Pick<Findings, 'data' | 'epochs' | 'steps' | 'batchSize'>

export function findDevices(facts: Facts, known: Known, models: ModelsUsed): DeviceFindings {
  const cannotRun = findObstacles(facts)
  const called = facts.events.filter(isCalled)
  const hard = called.flatMap((event) =>
    needsCuda(event) && event.guards.filter(isFallback).every((guard) => isEitherWay(guard, event, called))
      ? [evidenceOf(event)]
      : [],
  )
  const stops = [...stopsWithoutGpu(facts), ...launchStops(facts)]
  const soft = facts.events.flatMap((event) =>
    mayUseGpu(event) && !isSwitchedOff(event) ? [evidenceOf(event)] : [],
  )
  const styles = stylesOf(facts)
  const use = gpuUse(facts, {
    hard: [...stops, ...hard],
    soft,
    heaviness: () => findHeaviness(facts, known, models) ?? dividedWork(facts, styles),
    isOther: cannotRun.value?.some((each) => each === 'tpu' || each === 'ipu') ?? false,
  })
  const isGpu = use.value !== 'none'
  return {
    gpuUse: use,
    needsGpu: { ...use, value: use.value === 'hard' || use.value === 'practical' },
    multiGpu: multiGpu(facts, styles, isGpu),
    multiGpuStyle: found([...styles.keys()].sort(), { confidence: CERTAIN, evidence: [...styles.values()] }),
    gpuCount: gpuCount(facts, use),
    cannotRun,
  }
}

/** Returns the number of GPUs that the command or the library's settings name; one if no part of the program uses several. */
function gpuCount(facts: Facts, use: Findings['gpuUse']): Findings['gpuCount'] {
  if (use.value === 'none') return notKnown<number>('it uses no GPU')
  const { processes, from } = facts.launch
  if (processes !== undefined)
    return found(processes, { evidence: from === undefined ? [] : [from], confidence: CERTAIN - 0.03 })
  const set = facts.events.find((event) => devicesOf(event) !== undefined)
  const devices = set === undefined ? undefined : devicesOf(set)
  if (set !== undefined && devices !== undefined && Number.isInteger(devices) && devices > 0)
    return found(devices, { evidence: [evidenceOf(set)], confidence: CERTAIN - 0.03 })
  const { launcher } = facts.launch
  if (launcher !== 'python') return notKnown<number>(`${launcher} starts as many processes as there are GPUs`)
  const second = facts.events.find((event) => isCalled(event) && usesSecondGpu(event))
  if (second !== undefined) return notKnown<number>('how many devices it names')
  return found(1, { confidence: CERTAIN - 0.03, evidence: use.evidence })
}

const usesSecondGpu = ({ positional, named }: CallEvent): boolean =>
  [positional[0], named.get('device')].some((value) => isSecondGpu(value))

const isCuda = (text: string | undefined): boolean =>
  text !== undefined && (text === 'cuda' || text.startsWith('cuda:') || text === 'gpu')

/** Whether the condition asks for a GPU, so that the program also works without one. */
function isFallback(guard: Guard): boolean {
  if (guard.truth !== undefined) return false
  const text = guard.text.toLowerCase()
  return (
    asksForCuda(guard.condition) ||
    ['cuda', 'gpu', 'device', 'cpu', 'distributed', 'ddp'].some((word) => text.includes(word))
  )
}

/** Whether the program makes a call on both sides of a condition, as with one process and with several. */
function isEitherWay(
  { file, line, text }: Guard,
  { node }: CallEvent,
  called: readonly CallEvent[],
): boolean {
  const isOpposite = (other: Guard): boolean =>
    other.file === file &&
    other.line === line &&
    (other.text === `not (${text})` || text === `not (${other.text})`)
  return called.some((other) => other.node === node && other.guards.some(isOpposite))
}

/** Whether an option without a value, or with a negative number, keeps the program from a call. */
const isSwitchedOff = ({ guards }: CallEvent): boolean =>
  guards.some(({ truth, wants }) => {
    if (truth !== false || wants === undefined || wants.option.given !== undefined) return false
    const initial = constantOf(wants.option.default)
    return initial === null || (typeof initial === 'number' && initial < 0)
  })

/** Functions that report whether there is a GPU. */
const QUESTIONS = new Set([
  'torch.cuda.is_available',
  'torch.cuda.device_count',
  'torch.accelerator.is_available',
  'torch.accelerator.device_count',
  'tensorflow.test.is_gpu_available',
])

/** Whether a value depends on whether there is a GPU, also through functions of the project. */
function asksForCuda(value: Value | undefined): boolean {
  if (value === undefined) return false
  if (value.kind === 'made')
    return (
      QUESTIONS.has(value.call.name) ||
      (value.call.name === 'bool' && value.call.positional.some(asksForCuda))
    )
  if (value.kind === 'either') return value.values.some(asksForCuda)
  return value.kind === 'unknown' && (value.of ?? []).some(asksForCuda)
}

/** A device that is certainly a GPU: `cuda`, `cuda:1`, or the ordinal of one. */
function isCudaDevice(value: Value | undefined): boolean {
  if (value === undefined) return false
  return alternatives(value).every((each) => {
    if (each.kind === 'unknown') return each.text?.startsWith('cuda') === true
    if (each.kind === 'made' && each.call.method === 'device') return isCudaDevice(each.call.positional[0])
    const ordinal = numberOf(each)
    return isCuda(textOf(each)) || (ordinal !== undefined && Number.isInteger(ordinal) && ordinal >= 0)
  })
}

/** Functions that make a device and stop if it is missing, unlike `torch.device`. */
const DEVICES = new Set(['torchtune.utils.get_device'])

function needsCuda(event: CallEvent): boolean {
  if (isMegatronTraining(event)) return true
  const { name, method, positional, named } = event
  if (method === 'cuda' && !name.startsWith('torch.backends')) return true
  if (method === 'to' || DEVICES.has(name)) return isCudaDevice(positional[0] ?? named.get('device'))
  if (name === 'torch.cuda.set_device') return true
  if (method === 'init_process_group') return textOf(named.get('backend') ?? positional[0]) === 'nccl'
  if (name.startsWith('deepspeed.initialize')) return true
  if (name === 'lightning.Trainer' || name.endsWith('Fabric'))
    return isCuda(textOf(named.get('accelerator'))) || isSomeGpus(named.get('gpus'))
  if (name.endsWith('TrainingArguments') || name.startsWith('trl.'))
    return constantOf(named.get('fp16')) === true
  if (name.endsWith('BitsAndBytesConfig')) return true
  // Source: https://huggingface.co/docs/accelerate/package_reference/accelerator (fp16 mixed precision requires a GPU)
  if (name.endsWith('Accelerator')) return textOf(named.get('mixed_precision')) === 'fp16'
  return isCudaDevice(named.get('device')) && name.startsWith('torch.')
}

/** `deepspeed` stops without a GPU, and `accelerate launch` if its settings are several GPUs or fp16. */
function launchStops({ launch: { launcher, settings, entry, from }, launchConfig }: Facts): Evidence[] {
  if (launcher === 'deepspeed') return [from ?? { file: entry, line: 1, text: launcher }]
  if (launcher !== 'accelerate') return []
  const type = textOf(setting(launchConfig, 'distributed_type')) ?? ''
  const isMulti = ['MULTI_GPU', 'FSDP', 'DEEPSPEED'].includes(type) || settings.get('multi_gpu') === 'true'
  const precision = settings.get('mixed_precision') ?? textOf(setting(launchConfig, 'mixed_precision'))
  const path = settings.get('config_file')
  if (!isMulti && precision !== 'fp16') return []
  return path === undefined ? [] : [{ file: path, line: 1, text: isMulti ? type : 'mixed_precision: fp16' }]
}

/** `gpus=2`, `gpus=[0, 1]`, and `gpus=-1` for all. */
const isSomeGpus = (value: Value | undefined): boolean =>
  value?.kind === 'list' ? value.items.length > 0 : (numberOf(value) ?? 0) !== 0

/** Places where the program certainly stops if there is no GPU: no other condition is on the way. */
function stopsWithoutGpu({ run }: Facts): Evidence[] {
  return run.stops.flatMap(({ kind, guards, condition, text, file, line }) => {
    const place = { file, line, text }
    const asking = kind === 'assert' ? undefined : guards.findIndex(isNoGpu)
    if (asking === -1) return []
    const others = guards.filter((_, at) => at !== asking)
    const isCertain = others.every(({ truth }) => truth === true)
    const isStop = kind !== 'assert' || asksForCuda(condition)
    return isCertain && isStop ? [place] : []
  })
}

/** `if not torch.cuda.is_available()`, `if torch.cuda.device_count() == 0` */
const isNoGpu = ({ condition, text, truth }: Guard): boolean =>
  truth === undefined &&
  asksForCuda(condition) &&
  ['not ', '== 0', '< 1', '== False', 'is False'].some((sign) => text.includes(sign))

function mayUseGpu({ name, method, argumentTexts }: CallEvent): boolean {
  // `torch.device('cuda' if args.gpu else 'cpu')`
  if (name === 'torch.device' && argumentTexts.some((text) => text.includes('cuda'))) return true
  if (name.startsWith('torch.cuda.') || name.startsWith('torch.accelerator')) return true
  if (AUTOMATIC.some((prefix) => name.startsWith(prefix))) return true
  return (
    method === 'cuda' ||
    name.endsWith('Accelerator') ||
    name.endsWith('Fabric') ||
    name.endsWith('device_count') ||
    name === 'torch_geometric.device'
  )
}

/** Where the program divides its work among GPUs: it has much of it. */
function dividedWork({ launch }: Facts, styles: ReadonlyMap<string, Evidence>): Evidence | undefined {
  const { processes = 1, from, entry, launcher } = launch
  if (processes > 1) return from ?? { file: entry, line: 1, text: launcher }
  return [...styles].find(([style]) => DIVIDING_STYLES.has(style))?.[1]
}

/** Styles of programs that are written for several GPUs, unlike `DataParallel`, which takes one line. */
const DIVIDING_STYLES = new Set(['ddp', 'fsdp', 'deepspeed', 'pmap', 'sharding'])

/** Libraries that use a GPU if one is available. */
const AUTOMATIC = ['lightning.Trainer', 'keras.', 'tensorflow.', 'jax.', 'flax.']

interface Signs {
  hard: Evidence[]
  soft: Evidence[]
  /** The call that makes a run on a CPU take days. */
  heaviness: () => Evidence | undefined
  isOther: boolean
}

function gpuUse(facts: Facts, { hard, soft, heaviness: find, isOther }: Signs): Findings['gpuUse'] {
  if (isOther) return found('none', { confidence: LIKELY })
  if (hard.length > 0) return found('hard', { confidence: CERTAIN, evidence: hard })
  const isAutomatic = facts.training.some(({ engine }) => engine === 'hugging-face')
  if (soft.length === 0 && !isAutomatic) return found('none', { confidence: LIKELY + 0.1 })
  const heaviness = find()
  if (heaviness !== undefined)
    return found('practical', { confidence: LIKELY, evidence: [heaviness, ...soft] })
  return found('optional', { confidence: LIKELY, evidence: soft, missing: ['how long a run takes on a CPU'] })
}

function stylesOf(facts: Facts): Map<string, Evidence> {
  const styles = new Map<string, Evidence>()
  for (const event of facts.events) {
    const style = isSwitchedOff(event) ? undefined : styleOf(event)
    if (style !== undefined && !styles.has(style)) styles.set(style, evidenceOf(event))
  }
  for (const definition of facts.run.calls.keys()) {
    const decorator = definition.decorators.find(({ text }) => text.includes('pmap'))
    if (decorator !== undefined)
      styles.set('pmap', { file: definition.file.path, line: decorator.line, text: decorator.text })
  }
  const [ofLauncher, place] = styleOfLauncher(facts) ?? []
  if (ofLauncher !== undefined && !styles.has(ofLauncher)) styles.set(ofLauncher, place!)
  if (styles.has('ddp')) styles.delete('dp')
  // Frameworks with their own launcher take their settings from it.
  if (styles.has('deepspeed')) styles.delete('accelerate')
  return styles
}

/** The style that the settings of `deepspeed` or `accelerate launch` choose for the program. */
function styleOfLauncher({ launch, launchConfig }: Facts): [string, Evidence] | undefined {
  const { launcher, from, entry, settings } = launch
  if (launcher === 'deepspeed') return ['deepspeed', from ?? { file: entry, line: 1, text: launcher }]
  const style = { DEEPSPEED: 'deepspeed', FSDP: 'fsdp' }[
    textOf(setting(launchConfig, 'distributed_type')) ?? ''
  ]
  return style === undefined
    ? undefined
    : [style, { file: settings.get('config_file')!, line: 1, text: style }]
}

const STYLES: Readonly<Record<string, string>> = {
  DistributedDataParallel: 'ddp',
  DataParallel: 'dp',
  data_parallel: 'dp',
  FullyShardedDataParallel: 'fsdp',
  fully_shard: 'fsdp',
  Accelerator: 'accelerate',
  MirroredStrategy: 'mirrored',
  MultiWorkerMirroredStrategy: 'mirrored',
  pmap: 'pmap',
  shard_map: 'sharding',
  NamedSharding: 'sharding',
  DistributedOptimizer: 'horovod',
}

function styleOf({ name, method, named }: CallEvent): string | undefined {
  if (name === 'lightning.Trainer' || name.endsWith('Fabric')) {
    const strategy =
      textOf(named.get('strategy') ?? named.get('distributed_backend')) ?? acceleratorStyle(named)
    if (strategy === undefined || strategy === 'auto') return undefined
    return ['fsdp', 'deepspeed', 'ddp', 'dp'].find((style) => strategy.startsWith(style))
  }
  if (name === 'deepspeed.initialize') return 'deepspeed'
  return STYLES[method]
}

/** Lightning before 1.5 takes the style as the accelerator. */
function acceleratorStyle(named: CallEvent['named']): string | undefined {
  const text = textOf(named.get('accelerator'))
  return text?.startsWith('d') === true ? text : undefined
}

function multiGpu(facts: Facts, styles: ReadonlyMap<string, Evidence>, isGpu: boolean): Findings['multiGpu'] {
  if (!isGpu) return found('no', { confidence: LIKELY + 0.1 })
  const { launch } = facts
  const devices = facts.events.map(devicesOf).find((count) => count !== undefined && count > 1)
  if (devices !== undefined) return found('yes', { confidence: LIKELY })
  if (launch.processes !== undefined && launch.processes > 1)
    return found('yes', {
      confidence: LIKELY + 0.1,
      evidence: launch.from === undefined ? [] : [launch.from],
    })
  const second = facts.events.find((event) => isCalled(event) && usesSecondGpu(event))
  if (second !== undefined) return found('yes', { confidence: LIKELY, evidence: [evidenceOf(second)] })
  const isManaged =
    facts.events.some(({ name }) => name === 'lightning.Trainer' || name.endsWith('Fabric')) ||
    facts.training.some(({ engine }) => engine === 'hugging-face')
  if (styles.size > 0)
    return found('optional', { confidence: CERTAIN - 0.03, evidence: [...styles.values()] })
  return isManaged ? found('optional', { confidence: LIKELY }) : found('no', { confidence: LIKELY + 0.1 })
}

function devicesOf(event: CallEvent): number | undefined {
  if (event.name !== 'lightning.Trainer' && !event.name.endsWith('Fabric')) return undefined
  const given = event.named.get('devices') ?? event.named.get('gpus')
  if (given?.kind === 'list') return given.items.length
  // `devices="2"` is a number of GPUs, `devices="0,3"` names two.
  const text = textOf(given) ?? ''
  if (/^\d+$/.test(text)) return Number(text)
  return /^\d+(?:,\d+)+$/.test(text) ? text.split(',').length : numberOf(given)
}

function isSecondGpu(value: Value | undefined): boolean {
  const text = textOf(value)
  return text !== undefined && text.startsWith('cuda:') && Number(text.slice('cuda:'.length)) > 0
}

function findObstacles(facts: Facts): Findings['cannotRun'] {
  const reasons = new Map<'tpu' | 'ipu' | 'never-ending' | 'interactive', Evidence>()
  for (const [name, place] of facts.run.imports) {
    if (name.startsWith('torch_xla')) reasons.set('tpu', place)
    if (name.startsWith('poptorch')) reasons.set('ipu', place)
  }
  for (const event of facts.events) {
    if (nameOf(event.receiver).includes('TPUClusterResolver') || event.method === 'TPUStrategy')
      reasons.set('tpu', evidenceOf(event))
    if (event.name === 'input' && isCalled(event)) reasons.set('interactive', evidenceOf(event))
    const trainer = event.name === 'lightning.Trainer' ? textOf(event.named.get('accelerator')) : undefined
    if (trainer === 'tpu') reasons.set('tpu', evidenceOf(event))
  }
  for (const loop of facts.loops) {
    const isOutermost = facts.training.some(({ event }) => event.loops[0] === loop)
    if (!loop.canEnd && isOutermost)
      reasons.set('never-ending', { file: loop.file, line: loop.line, text: loop.variable })
  }
  return found([...reasons.keys()].sort(), {
    confidence: reasons.size > 0 ? LIKELY : CERTAIN,
    evidence: [...reasons.values()],
  })
}

/** Returns the settings of the training library and its name, for findings about settings. */
export function settingsOf(
  facts: Facts,
): { library: 'hugging-face' | 'lightning'; event: CallEvent } | undefined {
  for (const { engine, event } of facts.training) {
    if (engine === 'hugging-face') {
      const settings = trainingArguments(event)
      return settings === undefined ? undefined : { library: 'hugging-face', event: settings }
    }
    const trainer = engine === 'lightning' ? constructionOf(event.receiver) : undefined
    if (trainer !== undefined) return { library: 'lightning', event: trainer }
  }
  return undefined
}
