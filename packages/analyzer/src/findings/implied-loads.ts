/** Calls with which a library restores a run on its own: Lightning, Hugging Face's Trainer, Keras, Megatron, boosted trees. */
import { argument, isHuggingFaceTrainer, type Facts, type TrainingCall } from '../facts'
import { truthOfGuards } from '../interpreter'
import { valueOfOption } from '../options/option'
import { alternatives, constantOf, constructionOf, type CallEvent, type Value } from '../values'
import type { Part } from './contents'
import { callbackOf } from './implied-saves'
import { situation, WHOLE, type Load } from './load'
import { isGivenByCrucible, pathText } from './places'

export function impliedLoads({ engine, event }: TrainingCall, facts: Facts): Load[] {
  if (engine === 'lightning') return lightningLoad(event)
  if (engine === 'hugging-face') return huggingFaceLoad(event)
  if (engine === 'megatron') return megatronLoad(event, facts)
  if (engine === 'estimator') return boosterLoad(event)
  return engine === 'keras' ? kerasLoad(event) : []
}

/** `--load` of Megatron. */
function megatronLoad(event: CallEvent, { run }: Facts): Load[] {
  const option = run.options.find(({ key }) => key === 'load')
  return option === undefined ? [] : wholeLoad(event, valueOfOption(option))
}

/** Boosting that continues with the trees of an earlier model, rather than with those that this run trained; it knows its position if it asks for the rest only. */
function boosterLoad(event: CallEvent): Load[] {
  const model = event.named.get('xgb_model') ?? event.named.get('init_model')
  const isGiven =
    model !== undefined &&
    (isGivenByCrucible(pathText(model)) ||
      alternatives(model).some(
        (each) => (each.kind === 'made' && each.call.method !== event.method) || each.origins.length > 0,
      ))
  if (!isGiven) return []
  const rounds =
    argument(event, 'num_boost_round', 2) ?? constructionOf(event.receiver)?.named.get('n_estimators')
  const isRest = rounds !== undefined && rounds.origins.length > 0
  return [
    {
      ...situation(event),
      path: model,
      isWhole: isRest,
      parts: new Set<Part>(isRest ? ['model', 'step'] : ['model']),
    },
  ]
}

/** `ckpt_path=` of `fit`, or `resume_from_checkpoint=` of an older Trainer. */
function lightningLoad(fit: CallEvent): Load[] {
  const trainer = constructionOf(fit.receiver)
  const value = fit.named.get('ckpt_path') ?? trainer?.named.get('resume_from_checkpoint')
  return wholeLoad(fit, value)
}

function huggingFaceLoad(train: CallEvent): Load[] {
  return isHuggingFaceTrainer(train.receiver)
    ? wholeLoad(train, argument(train, 'resume_from_checkpoint', 0))
    : []
}

/** Returns the load of a library that continues where a given checkpoint ends. */
function wholeLoad(event: CallEvent, value: Value | undefined): Load[] {
  if (value === undefined) return []
  const known = alternatives(value).map(constantOf)
  const isNothing = known.every((each) => each === null || each === false || each === '')
  if (isNothing && value.options.size === 0 && value.origins.length === 0) return []
  return [
    {
      event,
      parts: new Set<Part>([...WHOLE, 'step']),
      isWhole: true,
      options: isNothing
        ? [...value.options]
        : [...value.options].filter(({ given }) => given === undefined && isNothing),
      truth: isNothing ? false : truthOfGuards(event.guards),
      path: value,
    },
  ]
}

function kerasLoad(fit: CallEvent): Load[] {
  const backup = callbackOf(fit, 'BackupAndRestore')
  if (backup === undefined) return []
  return [{ ...situation(backup), parts: new Set<Part>([...WHOLE, 'step']), isWhole: true, path: undefined }]
}
