/** Precision, batch size, epochs and steps. */
import { evidenceOf, isCalled, lastPart, nameOf, type Facts } from '../facts'
import { CERTAIN, found, LIKELY, notKnown, POSSIBLE, type Findings } from '../report'
import type { Loop } from '../flow'
import { constantOf, constructionOf, numberOf, setting, textOf, type CallEvent, type Value } from '../values'
import { isMegatronTraining, megatronOption } from '../options/megatron'
import { settingsOf } from './devices'
import { endOf, leftAfter } from '../rounds'
import { isOuter } from './saves'

type Precision = NonNullable<Findings['precision']['value']>
type SettingFindings = Pick<
  Findings,
  'precision' | 'batchSize' | 'epochs' | 'steps' | 'gradientCheckpointing'
>

export function findSettings(facts: Facts): SettingFindings {
  const events = facts.events.filter(isCalled)
  return {
    precision: findPrecision(facts, events),
    batchSize: findBatchSize(facts, events),
    ...findLength(facts),
    gradientCheckpointing: findGradientCheckpointing(facts, events),
  }
}

function findPrecision(facts: Facts, events: readonly CallEvent[]): Findings['precision'] {
  // A program may convert models that it does not train, so statements about the computation take precedence.
  const ofEvent = (of: (event: CallEvent) => Precision | undefined): Findings['precision'] | undefined => {
    for (const event of events) {
      const value = of(event)
      if (value !== undefined) return found(value, { confidence: CERTAIN, evidence: [evidenceOf(event)] })
    }
    return undefined
  }
  const computed = ofEvent((event) => precisionOf(event, facts))
  if (computed !== undefined) return computed
  const fromLauncher = launcherPrecision(facts)
  if (fromLauncher !== undefined) return found(fromLauncher, { confidence: CERTAIN })
  const fromFile = deepSpeedConfig(facts)
  for (const [key, name] of [
    ['bf16', 'bf16-mixed'],
    ['fp16', 'fp16-mixed'],
  ] as const) {
    if (constantOf(setting(setting(fromFile, key), 'enabled')) === true)
      return found(name, { confidence: CERTAIN - 0.03 })
  }
  return ofEvent(conversionOf) ?? found('fp32', { confidence: LIKELY + 0.1 })
}

/** Precision of `accelerate launch`, from its option or configuration file. */
function launcherPrecision({ launch, launchConfig }: Facts): Precision | undefined {
  if (launch.launcher !== 'accelerate') return undefined
  return mixedName(launch.settings.get('mixed_precision') ?? textOf(setting(launchConfig, 'mixed_precision')))
}

/** The configuration of DeepSpeed: of the command line, or an argument. */
export function deepSpeedConfig({ run, events }: Facts): Value | undefined {
  // `--deepspeed` may also be a flag without a value.
  const words = run.args.flatMap((arg) => arg.split('='))
  const at = words.findIndex(
    (word, index) =>
      (word === '--deepspeed_config' || word === '--deepspeed') &&
      words[index + 1]?.endsWith('.json') === true,
  )
  if (at !== -1) return run.project.data(words[at + 1]!, run.entry)
  const given = events.find(({ name }) => name === 'deepspeed.initialize')?.named.get('config')
  const file = textOf(given)
  return file === undefined ? given : run.project.data(file, run.entry)
}

function mixedName(text: string | undefined): Precision | undefined {
  if (text === undefined) return undefined
  if (text === 'bf16-true') return 'bf16'
  if (text === '16-true') return 'fp16'
  if (text.startsWith('bf16')) return 'bf16-mixed'
  return text === '16' || text === 'fp16' || text === '16-mixed' ? 'fp16-mixed' : undefined
}

function precisionOf(event: CallEvent, facts: Facts): Precision | undefined {
  const { name, method, named } = event
  if (name === 'lightning.Trainer' || name.endsWith('Fabric') || name.endsWith('Accelerator')) {
    const value = constantOf(named.get('precision') ?? named.get('mixed_precision'))
    return value === undefined || value === null ? undefined : mixedName(String(value))
  }
  if (event === settingsOf(facts)?.event || name.endsWith('TrainingArguments')) {
    if (constantOf(named.get('bf16')) === true) return 'bf16-mixed'
    return constantOf(named.get('fp16')) === true ? 'fp16-mixed' : undefined
  }
  if (isMegatronTraining(event)) {
    const isGiven = (key: string): boolean => constantOf(megatronOption(facts.run, key)) === true
    return isGiven('bf16') ? 'bf16-mixed' : isGiven('fp16') ? 'fp16-mixed' : undefined
  }
  if (method === 'autocast') return autocastPrecision(event)
  if (method === 'set_global_policy' || method === 'set_policy') {
    const policy = textOf(event.positional[0]) ?? ''
    if (policy.includes('bfloat16')) return 'bf16-mixed'
    return policy.includes('float16') ? 'fp16-mixed' : undefined
  }
  if (method === 'MixedPrecision' || method === 'MixedPrecisionPolicy')
    return nameOf(named.get('param_dtype')).endsWith('bfloat16') ? 'bf16-mixed' : 'fp16-mixed'
  return undefined
}

/** Returns the precision of converted weights. */
function conversionOf(event: CallEvent): Precision | undefined {
  const { method, named } = event
  if (method === 'bfloat16' && event.receiver !== undefined) return 'bf16'
  if (method === 'half' && event.receiver !== undefined && event.positional.length === 0) return 'fp16'
  if (method === 'to') return typeName([...event.positional, ...named.values()])
  return undefined
}

function typeName(values: readonly Value[]): Precision | undefined {
  const names = values.map(nameOf)
  if (names.includes('torch.bfloat16')) return 'bf16'
  return names.includes('torch.float16') || names.includes('torch.half') ? 'fp16' : undefined
}

function autocastPrecision({ positional, named }: CallEvent): Precision | undefined {
  if (constantOf(named.get('enabled')) === false) return undefined
  const type = nameOf(named.get('dtype') ?? positional[1])
  if (type.endsWith('bfloat16') || textOf(named.get('device_type') ?? positional[0]) === 'cpu')
    return 'bf16-mixed'
  return type.endsWith('float32') ? undefined : 'fp16-mixed'
}

function findBatchSize(facts: Facts, events: readonly CallEvent[]): Findings['batchSize'] {
  const settings = settingsOf(facts)
  if (settings?.library === 'hugging-face') {
    const given = settings.event.named.get('per_device_train_batch_size')
    const size = given === undefined ? 8 : numberOf(given)
    if (size !== undefined && size >= 1)
      return found(size, { confidence: CERTAIN, evidence: [evidenceOf(settings.event)] })
  }
  const config = facts.events.some(({ name }) => name === 'deepspeed.initialize')
    ? deepSpeedConfig(facts)
    : undefined
  const configured = ['train_batch_size', 'train_micro_batch_size_per_gpu']
    .map((key) => numberOf(setting(config, key)))
    .find((size) => size !== undefined)
  if (configured !== undefined) return found(configured, { confidence: CERTAIN - 0.03 })
  for (const event of events) {
    const size = batchOf(event)
    if (size !== undefined && Number.isInteger(size) && size >= 1)
      return found(size, { confidence: CERTAIN - 0.03, evidence: [evidenceOf(event)] })
  }
  const keras = facts.training.find(({ engine }) => engine === 'keras')
  if (keras?.event.method === 'fit' && keras.event.positional.length > 1)
    return found(32, { confidence: LIKELY, evidence: [evidenceOf(keras.event)] })
  return batchByName(facts)
}

function batchOf(event: CallEvent): number | undefined {
  const { name, method, named } = event
  if (method === 'DataLoader' || method === 'fit' || method === 'StatefulDataLoader') {
    if (isForTest(event)) return undefined
    const data = constructionOf(event.positional[0])
    // `keras.utils.image_dataset_from_directory`
    if (data !== undefined && data.method.includes('_dataset_from_'))
      return numberOf(data.named.get('batch_size'))
    return numberOf(named.get('batch_size') ?? (method === 'DataLoader' ? event.positional[1] : undefined))
  }
  if (method === 'batch' && event.receiver !== undefined && !name.startsWith('dict'))
    return numberOf(event.positional[0])
  return undefined
}

/** Whether a call is for a test: loaders for validation have their own batch sizes. */
function isForTest({ argumentTexts, within }: CallEvent): boolean {
  const text = [argumentTexts[0] ?? '', ...within].join(' ').toLowerCase()
  return ['val_', '_val', 'valid', 'test', 'eval'].some((word) => text.includes(word))
}

/** Returns an option or a constant whose name denotes a batch size. */
function batchByName({ run }: Facts): Findings['batchSize'] {
  const options = run.options.filter(({ key }) => isBatchName(key))
  for (const option of options) {
    const size = numberOf(option.given ?? option.default)
    const place = { file: option.file, line: Math.max(1, option.line), text: option.name }
    if (size !== undefined && Number.isInteger(size) && size >= 1)
      return found(size, { confidence: LIKELY, evidence: [place] })
  }
  const attributes = [...run.instances].flatMap((each) => [...each.attributes])
  for (const [kind, value] of [
    ...run.constants.map((each) => [each.kind, each.value] as const),
    ...attributes,
  ]) {
    const size = numberOf(value)
    if (isBatchName(kind) && size !== undefined && Number.isInteger(size) && size >= 1)
      return found(size, { confidence: LIKELY })
  }
  return notKnown<number>('the program sets no batch size')
}

function isBatchName(name: string): boolean {
  const bare = lastPart(name.toLowerCase())
  if (['batch', 'batch_size', 'bs', 'batchsize'].includes(bare)) return true
  return bare.endsWith('_batch_size') && !['val', 'test', 'eval', 'infer'].some((word) => bare.includes(word))
}

function findGradientCheckpointing(
  { run }: Facts,
  events: readonly CallEvent[],
): Findings['gradientCheckpointing'] {
  const event = events.find((each) => {
    const { name, method, named } = each
    if (isMegatronTraining(each)) return textOf(megatronOption(run, 'recompute_granularity')) === 'full'
    if (GRADIENT_CHECKPOINTING.has(method)) return true
    if (QUANTIZED.has(method)) return constantOf(named.get('use_gradient_checkpointing')) !== false
    if (constantOf(named.get('gradient_checkpointing')) === true) return true
    return name === 'torch.utils.checkpoint.checkpoint' || name === 'jax.checkpoint' || name === 'jax.remat'
  })
  return event === undefined
    ? found(false, { confidence: LIKELY + 0.1 })
    : found(true, { confidence: CERTAIN, evidence: [evidenceOf(event)] })
}

const GRADIENT_CHECKPOINTING = new Set([
  'gradient_checkpointing_enable',
  'enable_gradient_checkpointing',
  'apply_activation_checkpointing',
  'checkpoint_sequential',
  'set_grad_checkpointing',
])

/** Functions of PEFT that turn gradient checkpointing on. Source: https://huggingface.co/docs/peft/developer_guides/quantization */
const QUANTIZED = new Set(['prepare_model_for_int8_training', 'prepare_model_for_kbit_training'])

function findLength(facts: Facts): Pick<Findings, 'epochs' | 'steps'> {
  const nothing = {
    epochs: notKnown<number>('the number of epochs'),
    steps: notKnown<number>('the number of steps'),
  }
  const settings = settingsOf(facts)
  if (settings !== undefined) return { ...nothing, ...lengthOfLibrary(settings) }
  const megatron = facts.training.find(({ engine }) => engine === 'megatron')
  if (megatron !== undefined) {
    const steps = numberOf(megatronOption(facts.run, 'train_iters'))
    const evidence = [evidenceOf(megatron.event)]
    return steps === undefined ? nothing : { ...nothing, steps: found(steps, { evidence }) }
  }
  const keras = facts.training.find(({ engine }) => engine === 'keras')
  if (keras !== undefined) {
    const epochs =
      numberOf(keras.event.named.get('epochs') ?? keras.event.positional[3]) ??
      (keras.event.named.has('epochs') ? undefined : 1)
    return {
      ...nothing,
      ...(epochs === undefined ? {} : { epochs: found(epochs, { evidence: [evidenceOf(keras.event)] }) }),
    }
  }
  const named = (loop: Loop): number => (loop.variable.toLowerCase().includes('epoch') ? 0 : 1)
  const outer = [...facts.loops].sort((a, b) => named(a) - named(b) || a.id - b.id)
  for (const loop of outer) {
    const end = endOf(loop)
    if (end === undefined || end <= 0) continue
    const evidence = [{ file: loop.file, line: loop.line, text: loop.variable }]
    const confidence = facts.loops.size > 3 ? POSSIBLE : CERTAIN - 0.03
    const counted = found(end, { confidence, evidence })
    return isEpochLoop(loop, facts) ? { ...nothing, epochs: counted } : { ...nothing, steps: counted }
  }
  return { ...nothing, ...stepsOfBreak(outer) }
}

/** Steps after which the program leaves a loop over its data. */
function stepsOfBreak(loops: readonly Loop[]): Partial<Pick<Findings, 'steps'>> {
  for (const loop of loops.filter(({ kind }) => kind === 'for')) {
    const steps = leftAfter(loop)
    if (steps !== undefined && steps > 0)
      return {
        steps: found(steps, {
          confidence: LIKELY,
          evidence: [{ file: loop.file, line: loop.line, text: loop.variable }],
        }),
      }
  }
  return {}
}

function lengthOfLibrary({
  library,
  event,
}: {
  library: 'hugging-face' | 'lightning'
  event: CallEvent
}): Partial<Pick<Findings, 'epochs' | 'steps'>> {
  const evidence = [evidenceOf(event)]
  const steps = numberOf(event.named.get('max_steps'))
  if (steps !== undefined && steps > 0) return { steps: found(steps, { evidence }) }
  const given = event.named.get(library === 'lightning' ? 'max_epochs' : 'num_train_epochs')
  const epochs = given === undefined ? (library === 'lightning' ? 1000 : 3) : numberOf(given)
  return epochs === undefined || epochs < 0
    ? {}
    : { epochs: found(epochs, { evidence, confidence: given === undefined ? LIKELY : CERTAIN }) }
}

function isEpochLoop(loop: Loop, facts: Facts): boolean {
  const name = loop.variable.toLowerCase()
  if (name.includes('epoch') || name === 'ep' || name === 'e') return true
  if (name === 'it' || ['step', 'iter', 'it ', 'episode'].some((word) => name.includes(word))) return false
  return loop.kind === 'for' && isOuter(loop.id, facts)
}
