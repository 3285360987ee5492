/** Finds the family of work, which decides how much faster one GPU type is than another. */
import type { WorkFamily } from '../../../../core/speed'
import { evidenceOf, isCalled, lastPart, type Facts } from '../facts'
import type { ModelsUsed } from '../memory/models'
import { findPublishedModel } from '../memory/published-models'
import { CERTAIN, found, LIKELY, notKnown, POSSIBLE, type Findings } from '../report'
import { constantOf, textOf, type CallEvent } from '../values'
import { isPretrained, modelName } from './models'
import { multiplicationsOf } from './run-time'

type OtherFindings = Pick<Findings, 'precision' | 'gpuUse' | 'batchSize'>
type Kind = Exclude<WorkFamily, 'fp32'>

/** A call that shows a kind of model, and how sure that is. */
interface Sign {
  kind: Kind | 'mixed'
  confidence: number
  event: CallEvent
}

const OWN = LIKELY + 0.1

/** Returns the family. A program that trains models of several kinds, or in fp32 without TF32, is like none of the measured families. */
export function findWorkFamily(facts: Facts, known: OtherFindings, used: ModelsUsed): Findings['workFamily'] {
  if (known.gpuUse.value === 'none') return notKnown<WorkFamily>('it uses no GPU')
  const precision = known.precision.value
  if (precision === null) return notKnown<WorkFamily>('the precision')
  const signs = facts.events.filter(isCalled).flatMap(signOf)
  const kinds = new Set(signs.map(({ kind }) => kind))
  const [kind] = kinds
  if (kind === undefined || kind === 'mixed' || kinds.size > 1)
    return notKnown<WorkFamily>('what kind of model it trains')
  const isSized = used.models.length > 0 || used.unknown.length > 0
  if (!isSized && known.gpuUse.value === 'optional') return notKnown<WorkFamily>('how large its model is')
  if (isSmall(facts, known.batchSize.value, used))
    return notKnown<WorkFamily>('its steps are too small to keep a GPU busy')
  if (precision === 'fp32' && !usesTf32(facts, kind))
    return notKnown<WorkFamily>('training in fp32 without TF32 was not measured')
  return found<WorkFamily>(precision === 'fp32' ? 'fp32' : kind, {
    confidence: Math.min(
      isSized ? CERTAIN : POSSIBLE,
      known.precision.confidence,
      ...signs.map(({ confidence }) => confidence),
    ),
    evidence: [...signs.map(({ event }) => evidenceOf(event)), ...known.precision.evidence],
  })
}

/** Layers of PyTorch and of Keras. */
const LAYERS: readonly (readonly [Kind, readonly string[]])[] = [
  ['convolution', ['Conv2d', 'Conv3d', 'ConvTranspose2d', 'ConvTranspose3d']],
  ['convolution', ['Conv2D', 'Conv3D', 'Conv2DTranspose', 'SeparableConv2D', 'DepthwiseConv2D']],
  ['recurrent', ['LSTM', 'GRU', 'RNN', 'LSTMCell', 'GRUCell', 'RNNCell', 'SimpleRNN', 'ConvLSTM2D']],
  [
    'transformer',
    [
      'MultiheadAttention',
      'MultiHeadAttention',
      'Transformer',
      'TransformerEncoder',
      'TransformerEncoderLayer',
      'TransformerDecoder',
      'TransformerDecoderLayer',
    ],
  ],
  ['recommendation', ['EmbeddingBag']],
]

const KIND_OF_LAYER = new Map(LAYERS.flatMap(([kind, names]) => names.map((name) => [name, kind])))

function signOf(event: CallEvent): Sign[] {
  const kind = kindOfLayer(event)
  if (kind !== undefined) return [{ kind, confidence: OWN, event }]
  const { name } = event
  if (name === 'torch.nn.functional.scaled_dot_product_attention')
    return [{ kind: 'transformer', confidence: OWN, event }]
  // U-Nets of diffusion are half convolution, half attention.
  if (name.startsWith('diffusers.') && lastPart(name.replace('.from_pretrained', '')).includes('UNet'))
    return [{ kind: 'mixed', confidence: OWN, event }]
  // Passing messages along edges gathers and scatters memory.
  if (name.startsWith('torch_geometric.nn.') || name.startsWith('dgl.nn.'))
    return [{ kind: 'memory-bound', confidence: POSSIBLE, event }]
  if (name.startsWith('torchrec.')) return [{ kind: 'recommendation', confidence: OWN, event }]
  return signOfModel(event)
}

function kindOfLayer({ name, method }: CallEvent): Kind | undefined {
  const isLayer = ['torch.nn', 'keras.layers', 'tensorflow.keras.layers'].some(
    (library) => name === `${library}.${method}`,
  )
  return isLayer ? KIND_OF_LAYER.get(method) : undefined
}

function signOfModel(event: CallEvent): Sign[] {
  const name = modelName(event)
  const published = name === undefined ? undefined : findPublishedModel(name)
  if (published?.transformer !== undefined) return [{ kind: 'transformer', confidence: CERTAIN, event }]
  if (published?.pictures !== undefined) return [{ kind: 'convolution', confidence: CERTAIN, event }]
  const text = (name ?? '').toLowerCase()
  if (isPretrained(event) && HEADS.some((head) => event.name.includes(head)))
    return [
      { kind: OTHERS.some((word) => text.includes(word)) ? 'mixed' : 'transformer', confidence: OWN, event },
    ]
  if (name !== undefined && event.name.startsWith('sentence_transformers.'))
    return [{ kind: 'transformer', confidence: OWN, event }]
  if (name === undefined || !isOfPictures(event)) return []
  const isConvolutional = CONVOLUTIONAL.some((word) => text.startsWith(word))
  return [{ kind: isConvolutional ? 'convolution' : 'mixed', confidence: OWN, event }]
}

/** Models of text of the library transformers; nearly all are transformers, and the others say so. */
const HEADS = ['ForCausalLM', 'ForSequenceClassification', 'ForMaskedLM', 'ForTokenClassification'].concat([
  'ForQuestionAnswering',
  'ForSeq2SeqLM',
  'ForConditionalGeneration',
])
const OTHERS = ['mamba', 'rwkv', 'recurrent', 'jamba', 'xlstm', 'zamba']

const isOfPictures = ({ name }: CallEvent): boolean =>
  ['torchvision.models.', 'timm.', 'keras.applications.'].some((start) => name.startsWith(start))

/** Beginnings of names of convolutional networks. */
const CONVOLUTIONAL = [
  'resnet',
  'resnext',
  'wide_resnet',
  'seresne',
  'vgg',
  'alexnet',
  'densenet',
  'mobilenet',
  'mnasnet',
  'efficientnet',
  'tf_efficientnet',
  'inception',
  'googlenet',
  'squeezenet',
  'shufflenet',
  'regnet',
  'convnext',
  'xception',
  'fcn',
  'deeplab',
  'fasterrcnn',
  'maskrcnn',
  'retinanet',
  'ssd',
  'fcos',
  'unet',
]

/** TensorFlow and the convolutions of PyTorch use TF32 by default; elsewhere the program must ask for it. */
function usesTf32({ events, run }: Facts, kind: Kind): boolean {
  if ([...run.imports.keys()].some((name) => /^(?:tensorflow|keras|tf_keras)\b/.test(name))) return true
  if (kind === 'convolution') return true
  return events.filter(isCalled).some(({ method, named, positional }) => {
    if (method === 'set_float32_matmul_precision')
      return ['high', 'medium'].includes(textOf(positional[0]) ?? '')
    return constantOf(named.get('tf32')) === true
  })
}

/** Operations of a step that an A100 does while the kernels of one start (`STEP_OVERHEAD`), at 60 % of its 312e12 a second. */
const BUSY_OPERATIONS = 0.002 * 0.6 * 312e12

/** Whether starts of kernels, not the GPU type, decide how fast it trains, as far as the operations of a step are known. */
function isSmall(facts: Facts, batch: number | null, { models, unknown }: ModelsUsed): boolean {
  const counts = models.map((model) => multiplicationsOf(model, facts))
  const multiplications = counts.reduce<number>((sum, count) => sum + (count ?? NaN), 0)
  const areKnown = multiplications > 0 && batch !== null && unknown.length === 0
  return areKnown && 2 * 3 * multiplications * batch < BUSY_OPERATIONS
}
