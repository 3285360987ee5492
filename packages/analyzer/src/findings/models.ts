/** The model and the data that the program names. */
import { argument, evidenceOf, isCalled, lastPart, type Facts } from '../facts'
import { CERTAIN, found, LIKELY, notKnown, type Findings } from '../report'
import { findPublishedModel } from '../memory/published-models'
import { textOf, type CallEvent, type Value } from '../values'

export const isPretrained = ({ method }: CallEvent): boolean => method === 'from_pretrained'

/** Classes whose `from_pretrained` gives no model to train. */
const NO_MODELS = ['Tokenizer', 'Processor', 'Config', 'Scheduler', 'FeatureExtractor', 'GenerationConfig']

/** The name of a published model that a call makes; `undefined` for other calls. */
export function modelName(event: CallEvent): string | undefined {
  const { name, method } = event
  if (isPretrained(event)) {
    if (NO_MODELS.some((word) => name.includes(word))) return undefined
    return textOf(argument(event, 'pretrained_model_name_or_path', 0))
  }
  if (name.startsWith('timm.') && method === 'create_model') return textOf(argument(event, 'model_name', 0))
  // Classes of torchvision, such as `ResNet`, are parts of models.
  if (name.startsWith('torchvision.models.') && !name.includes('()'))
    return /^[a-z]/.test(method) ? method : undefined
  if (
    name.startsWith('keras.applications.') &&
    method.charAt(0) === method.charAt(0).toUpperCase() &&
    !name.includes('()')
  )
    return method
  if (name === 'sentence_transformers.SentenceTransformer')
    return textOf(argument(event, 'model_name_or_path', 0))
  if (name === 'torch.hub.load') return textOf(event.positional[1])
  if (name.startsWith('trl.') && name.endsWith('Trainer')) return textOf(event.named.get('model'))
  return undefined
}

export function findModel(facts: Facts): Pick<Findings, 'model' | 'modelParams'> {
  const named = facts.events.filter(isCalled).flatMap((event) => {
    const name = modelName(event)
    return name === undefined ? [] : [{ name, event }]
  })
  if (named.length === 0)
    return {
      model: notKnown<string[]>('the model is defined by the program'),
      modelParams: notKnown<number>('the model is defined by the program'),
    }
  const names = [...new Set(named.map(({ name }) => name))]
  const evidence = named.map(({ event }) => evidenceOf(event))
  const parameters = names.length === 1 ? findPublishedModel(names[0]!)?.parameters : undefined
  return {
    model: found(names, { confidence: CERTAIN, evidence }),
    modelParams:
      parameters === undefined
        ? notKnown<number>('the number of parameters of this model is not in our table')
        : found(parameters, { confidence: LIKELY, evidence }),
  }
}

export function findData(facts: Facts): Findings['data'] {
  const named = facts.events.filter(isCalled).flatMap((event) => {
    const name = dataName(event)
    return name === undefined ? [] : [{ name, event }]
  })
  const names = [...new Set(named.map(({ name }) => name))]
  if (names.length === 0) return notKnown<string[]>('no known data set or file is named')
  return found(names, { confidence: CERTAIN, evidence: named.map(({ event }) => evidenceOf(event)) })
}

function dataName(event: CallEvent): string | undefined {
  const { name, method } = event
  if (name.startsWith('torchvision.datasets.') || name.startsWith('torchaudio.datasets.'))
    return name.includes('()') ? undefined : lastPart(name)
  if (name === 'datasets.load_dataset') return known(event, event.positional[0])
  if (name === 'tensorflow_datasets.load' || name === 'tensorflow_datasets.builder')
    return known(event, argument(event, 'name', 0))
  if (method === 'load_data' && name.startsWith('keras.datasets.')) return name.split('.').at(-2)
  if (name.startsWith('sklearn.datasets.')) return method
  if (FILE_READERS.has(name)) return textOf(event.positional[0])
  return undefined
}

/** Readers of tables and arrays. */
const FILE_READERS = new Set([
  'pandas.read_csv',
  'pandas.read_parquet',
  'numpy.load',
  'numpy.memmap',
  'numpy.loadtxt',
])

/** `load_dataset('json', data_files='x.json')` names the files. */
function known(event: CallEvent, value: Value | undefined): string | undefined {
  const name = textOf(value)
  const files = textOf(event.named.get('data_files'))
  return name !== undefined && ['json', 'csv', 'parquet', 'text'].includes(name) ? (files ?? name) : name
}
