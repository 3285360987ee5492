/** Whether a run on a CPU would take days, because of large models and data sets. */
import { evidenceOf, isCalled, lastPart, type Facts } from '../facts'
import type { Evidence } from '../report'
import { isPretrained, modelName } from './models'

/** Data sets of hundreds of thousands of pictures, or of billions of words. */
const LARGE_DATA = ['imagefolder', 'imagenet', 'cocodetection', 'places365', 'lsun', 'librispeech']
/** Classes whose models have hundreds of millions of parameters. */
const LARGE_MODELS = [
  'UNet2DConditionModel',
  'StableDiffusionPipeline',
  'LlamaForCausalLM',
  'WhisperForConditionalGeneration',
  'ControlNetModel',
]
const SMALL_MODELS = ['tiny', 'mini', 'nano', 'test']

/** The call that makes the work large; `undefined` if none does. */
export function findHeaviness({ events, training }: Facts): Evidence | undefined {
  const isTrainer = training.some(({ engine }) => engine === 'hugging-face')
  const event = events.filter(isCalled).find((each) => {
    const last = lastPart(each.name)
    if (LARGE_DATA.includes(last.toLowerCase())) return true
    if (LARGE_MODELS.some((name) => each.name.includes(name))) return true
    if (!isPretrained(each) && !isTrainer) return false
    const name = modelName(each)
    return name !== undefined && !SMALL_MODELS.some((word) => name.toLowerCase().includes(word))
  })
  return event === undefined ? undefined : evidenceOf(event)
}
