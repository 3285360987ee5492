/** The published models that a program trains or uses, by their names or by a configuration of Transformers. */
import { argument, isCalled, lastPart, type Facts } from '../facts'
import { isPretrained, modelName } from '../findings/models'
import { alternatives, constantOf, numberOf, type CallEvent, type Value } from '../values'
import { exactly, type Interval } from './arithmetic'
import { configuredModel } from './configurations'
import {
  findPublishedModel,
  STABLE_DIFFUSION,
  type Pictures,
  type PublishedModel,
  type Transformer,
} from './published-models'

/** A model with what is known of its size. */
export interface ModelUse {
  event: CallEvent
  parameters: Interval
  transformer?: Transformer | undefined
  pictures?: Pictures | undefined
  isFrozen: boolean
  /** Whether it has adapters, which are trained. */
  isAdapted: boolean
  /** Whether gradients pass through it, which keeps its activations. */
  passesGradients: boolean
}

export interface ModelsUsed {
  models: readonly ModelUse[]
  /** Names of models whose size is not known. */
  unknown: string[]
}

export function modelsOf(facts: Facts): ModelsUsed {
  if (facts.training.some(({ engine }) => engine === 'megatron'))
    return { models: [], unknown: ['the model that Megatron builds from its options'] }
  const used = facts.events.filter(isCalled).flatMap((event) => {
    const found = publishedModel(event)
    return found === undefined ? [] : [{ event, ...found }]
  })
  const distinct = used.filter((each, at) => {
    const first = used.find(({ name }) => name === each.name)!
    return used.indexOf(first) === at || (isLoadedAnyway(facts, first) && isLoadedAnyway(facts, each))
  })
  const known = distinct.filter(({ model }) => model !== undefined)
  const adapted = adaptedModels(facts)
  const isAdapted = (event: CallEvent): boolean => adapted === 'any' || adapted.includes(event)
  const isFrozen = (event: CallEvent): boolean => isAdapted(event) || isFrozenModel(facts, event)
  // Networks before a frozen one are trained by gradients that pass through it.
  const trainsInput = known.some(
    ({ event }) =>
      ['ControlNetModel', 'CLIPTextModel'].some((part) => event.name.includes(part)) && !isFrozen(event),
  )
  return {
    models: known.map(({ event, model }) => ({
      event,
      parameters: exactly(withHead(facts, event, model!)),
      transformer: model!.transformer,
      pictures: model!.pictures,
      isFrozen: isFrozen(event),
      isAdapted: isAdapted(event),
      passesGradients:
        !isFrozenModel(facts, event) || isAdapted(event) || (trainsInput && event.name.includes('UNet')),
    })),
    unknown: distinct.filter(({ model }) => model === undefined).map(({ name }) => name),
  }
}

/**
 * Whether a model is in memory while the program trains, whatever its options are. A program often loads one model twice: in one of two ways, or
 * again after the training, to evaluate what it saved.
 */
const isLoadedAnyway = ({ events, firstTraining }: Facts, { event }: { event: CallEvent }): boolean =>
  events.indexOf(event) < firstTraining &&
  event.loops.length === 0 &&
  event.guards.every(({ truth }) => truth === true)

const IMAGENET_CLASSES = 1000

/** The parameters with a last layer for other classes, or without one if the program replaces it with a layer of unknown size. */
function withHead({ events }: Facts, event: CallEvent, { parameters, headWidth }: PublishedModel): number {
  if (headWidth === undefined) return parameters
  const classes = numberOf(event.named.get('num_classes'))
  const head = (count: number): number => (headWidth + 1) * count
  if (classes !== undefined) return parameters - head(IMAGENET_CLASSES) + head(classes)
  const replaces = events.some((other) => {
    if (other.name !== 'torch.nn.Linear' || !isCalled(other)) return false
    const inputs = argument(other, 'in_features', 0)
    return inputs?.kind !== 'constant' || numberOf(inputs) === headWidth
  })
  return replaces ? parameters - head(IMAGENET_CLASSES) : parameters
}

interface Named {
  name: string
  model: PublishedModel | undefined
}

function publishedModel(event: CallEvent): Named | undefined {
  const { name, method } = event
  const owner = lastPart(name.slice(0, -method.length - 1))
  const part = STABLE_DIFFUSION[owner]
  if (part !== undefined && (isPretrained(event) || method === 'from_unet'))
    return isFirstGeneration(modelName(event))
      ? { name: owner, model: part }
      : { name: owner, model: undefined }
  if (owner.endsWith('Pipeline')) return undefined
  const configured = configuredModel(event)
  if (configured !== undefined) return { name, model: configured }
  const known = modelName(event)
  return known === undefined ? undefined : { name: known, model: findPublishedModel(known) }
}

/** Whether a name is of the first generation of Stable Diffusion; of an unknown name, most are. */
function isFirstGeneration(name: string | undefined): boolean {
  const text = (name ?? '').toLowerCase()
  return !['xl', 'stable-diffusion-2', 'stable-diffusion-3', 'flux'].some((word) => text.includes(word))
}

/** Models that get adapters: those that the program names, or any if it leaves that to a library. */
function adaptedModels({ events }: Facts): readonly CallEvent[] | 'any' {
  const called = events.filter(isCalled)
  if (!called.some(isAdapter)) return []
  const targets = called.flatMap((event) => {
    const target =
      event.method === 'add_adapter'
        ? event.receiver
        : event.method === 'get_peft_model'
          ? argument(event, 'model', 0)
          : undefined
    return target === undefined ? [] : alternatives(target)
  })
  const models = targets.flatMap((target) => (target.kind === 'made' ? [target.call] : []))
  return models.length === 0 ? 'any' : models
}

export const isAdapter = ({ name, method }: CallEvent): boolean =>
  ['LoraConfig', 'LoraModel', 'AdaLoraConfig', 'IA3Config'].includes(method) || name === 'peft.get_peft_model'

/** Trainers of TRL that compare with a second model, which they do not train. */
const isReferenceTrainer = ({ name }: CallEvent): boolean =>
  /^trl\.\w+$/.test(name) && name.endsWith('Trainer') && /DPO|KTO|GRPO|PPO|Online/.test(name)

function isFrozenModel({ events, run }: Facts, model: CallEvent): boolean {
  const isModel = (value: Value | undefined): boolean =>
    value !== undefined && alternatives(value).some((each) => each.kind === 'made' && each.call === model)
  return (
    events.some(
      (event) =>
        isCalled(event) &&
        event.method === 'requires_grad_' &&
        constantOf(event.positional[0]) === false &&
        isModel(event.receiver),
    ) ||
    run.frozen.some(isModel) ||
    events.some((event) => isReferenceTrainer(event) && isModel(argument(event, 'ref_model', 1)))
  )
}
