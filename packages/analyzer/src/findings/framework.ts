/** Which libraries the program trains with, and how its options are given. */
import { evidenceOf, isCalled, isHuggingFaceTrainer, nameOf, type Facts } from '../facts'
import { canonicalName } from '../names'
import { CERTAIN, found, LIKELY, POSSIBLE, type Evidence, type Findings } from '../report'
import type { Option, Value } from '../values'

/** Packages, and the framework that an import of each means. */
const PACKAGES: readonly (readonly [string, string])[] = [
  ['torch', 'pytorch'],
  ['torchvision', 'pytorch'],
  ['torchaudio', 'pytorch'],
  ['lightning.fabric', 'fabric'],
  ['lightning_fabric', 'fabric'],
  ['lightning', 'lightning'],
  ['pytorch_lightning', 'lightning'],
  ['accelerate', 'accelerate'],
  ['transformers', 'transformers'],
  ['trl', 'trl'],
  ['peft', 'peft'],
  ['diffusers', 'diffusers'],
  ['timm', 'timm'],
  ['deepspeed', 'deepspeed'],
  ['megatron', 'megatron'],
  ['fairseq', 'fairseq'],
  ['keras', 'keras'],
  ['tensorflow.keras', 'keras'],
  ['tf_keras', 'keras'],
  ['tensorflow', 'tensorflow'],
  ['jax', 'jax'],
  ['flax', 'flax'],
  ['haiku', 'haiku'],
  ['equinox', 'equinox'],
  ['sklearn', 'sklearn'],
  ['xgboost', 'xgboost'],
  ['lightgbm', 'lightgbm'],
  ['catboost', 'catboost'],
  ['horovod', 'horovod'],
  ['ray', 'ray'],
  ['mxnet', 'mxnet'],
  ['paddle', 'paddle'],
  ['stable_baselines3', 'stable-baselines3'],
]

export function findFramework({ run, events, training, launch }: Facts): Findings['framework'] {
  const called = frameworksOf(events)
  const places = new Map<string, Evidence>()
  for (const [name, place] of run.imports) {
    // Programs of other frameworks write for TensorBoard with it.
    if (name.startsWith('torch.utils.tensorboard')) continue
    const entry = PACKAGES.find(([prefix]) => name === prefix || name.startsWith(`${prefix}.`))
    // Other modules may import a library for functions that the program does not call, such as exports.
    if (place.file !== run.entry && entry !== undefined && !called.has(entry[1])) continue
    if (entry !== undefined && !places.has(entry[1])) places.set(entry[1], place)
    if (name.startsWith('tensorflow.keras')) places.set('tensorflow', places.get('tensorflow') ?? place)
  }
  const keras = events.find(
    ({ name }) =>
      name.startsWith('keras.') &&
      !name.startsWith('keras.datasets') &&
      !OPTIMIZER_ONLY.some((part) => name.startsWith(part)),
  )
  const tensorflow = places.get('tensorflow')
  if (keras !== undefined && tensorflow !== undefined && !places.has('keras')) places.set('keras', tensorflow)
  const fabric = events.some(({ name }) => name.includes('Fabric'))
  if (fabric && places.has('lightning') && !training.some(({ engine }) => engine === 'lightning')) {
    places.set('fabric', places.get('fabric') ?? places.get('lightning')!)
    places.delete('lightning')
  }
  const trainer = events.find(({ receiver }) => isHuggingFaceTrainer(receiver))
  // The Trainer of TRL is named by its library.
  if (trainer !== undefined && !nameOf(trainer.receiver).startsWith('trl.')) {
    const place = places.get('transformers') ?? evidenceOf(trainer)
    places.delete('transformers')
    places.set('transformers-trainer', place)
  }
  if (places.has('trl') || places.has('peft')) places.delete('transformers')
  if (launch.launcher === 'deepspeed' && !places.has('deepspeed')) places.set('deepspeed', startOf(launch))
  const names = [...places.keys()].sort()
  if (names.length === 0)
    return found<string[]>([], { confidence: POSSIBLE, missing: ['no known framework is imported'] })
  const isCertain = training.length > 0
  return found(names, { confidence: isCertain ? CERTAIN : LIKELY, evidence: [...places.values()] })
}

/** The place that names the program's launcher. */
const startOf = ({ from, entry, launcher }: Facts['launch']): Evidence =>
  from ?? { file: entry, line: 1, text: launcher }

/** Frameworks that the program calls. */
function frameworksOf(events: Facts['events']): ReadonlySet<string> {
  // Helpers of Lightning, such as those that find the first process, train nothing.
  const called = events.filter((event) => isCalled(event) && !event.name.startsWith('lightning.utilities.'))
  const tops = new Set(called.map(({ name }) => name.split(/[.(]/)[0]!))
  return new Set(
    PACKAGES.filter(([prefix]) => tops.has(canonicalName(`${prefix}.`).split('.')[0]!)).map(
      ([, framework]) => framework,
    ),
  )
}

/** Parts of Keras that programs with their own loop use. */
const OPTIMIZER_ONLY = ['keras.optimizers', 'keras.losses', 'keras.metrics', 'keras.utils']

export function findCli({ run }: Facts): Findings['cli'] {
  const options = run.options.map((option) => ({
    name: option.name,
    default: plainValue(option.default),
    given: option.given === undefined ? null : plainValue(option.given),
    isRequired: option.isRequired,
    file: option.file,
    line: Math.max(1, option.line),
  }))
  const style = run.style
  const evidence = run.options
    .slice(0, 2)
    .map(({ file, line, name }) => ({ file, line: Math.max(1, line), text: name }))
  const readsArgs = style === 'none' && run.events.some(({ file }) => file.text.includes('sys.argv'))
  return found({ style, options }, { confidence: readsArgs ? LIKELY : CERTAIN, evidence })
}

/** Returns a value as JSON: `null` if it is not a constant. */
function plainValue(value: Option['default']): unknown {
  if (value.kind === 'constant') return value.value
  if (value.kind === 'list') return value.items.map((item: Value) => plainValue(item))
  return null
}
