/** The models that a program trains or uses: published ones by their names, those of a configuration, and its own. */
import { argument, isCalled, lastPart, type Facts } from '../facts'
import { isPretrained, modelName } from '../findings/models'
import { alternatives, constantOf, numberOf, unknown, type CallEvent, type Value } from '../values'
import { exactly, type Interval } from './arithmetic'
import { configuredModel } from './configurations'
import { keptByForward, type Kept } from './forward'
import { batchShape, headsOf } from './inputs'
import { flaxModel } from './flax'
import { jaxParameters } from './jax-parameters'
import { kerasModel } from './keras'
import { layerName } from './layers'
import { megatronModel, type MegatronModel } from './megatron'
import type { BuiltModel } from './results'
import { forwardCalls, networksOf, type Network } from './networks'
import {
  findPublishedModel,
  STABLE_DIFFUSION,
  type Pictures,
  type PublishedModel,
  type Transformer,
} from './published-models'

/** A model with what is known of its size. */
export interface ModelUse {
  event: CallEvent | undefined
  parameters: Interval
  transformer?: Transformer
  pictures?: Pictures
  /** Of a model of the program's own: what autograd keeps of a batch. */
  kept?: Kept
  isFrozen: boolean
  /** Whether it has adapters, which are trained. */
  isAdapted: boolean
  /** Whether gradients pass through it, which keeps its activations. */
  passesGradients: boolean
  /** Whether what is kept is only the size of the layers' results, not counted by the rules of the library. */
  isRough?: boolean
  /** Of a model that GPUs share by Megatron's options: the parameters of one GPU, and the GPUs that share each layer. */
  split?: { parameters: Interval; tensorWays: number }
}

export interface ModelsUsed {
  models: readonly ModelUse[]
  /** Those that the program builds of layers. */
  networks: readonly Network[]
  /** Names of models whose size is not known. */
  unknown: string[]
}

export function modelsOf(facts: Facts): ModelsUsed {
  const networks = networksOf(facts)
  return { ...usesOf(facts, networks), networks }
}

function usesOf(facts: Facts, networks: readonly Network[]): Omit<ModelsUsed, 'networks'> {
  const megatron = megatronModel(facts)
  if (megatron === null)
    return { models: [], unknown: ['the model, whose options the command does not give'] }
  if (megatron !== undefined) return { models: [megatronUse(facts, megatron)], unknown: [] }
  const published = publishedModels(facts)
  const own = ownModels(facts, networks)
  if (published.models.length === 0) {
    const built =
      own.length === 0 ? (kerasModel(facts) ?? flaxModel(facts) ?? jaxParameters(facts)) : undefined
    const models = built === undefined ? own : [builtUse(built)]
    return published.unknown.length > 0 ? published : { models, unknown: [] }
  }
  // Layers around a published model are small next to it, and so is what they keep.
  const added = own.filter(({ parameters }) => Number.isFinite(parameters.high))
  const beside = added.map((model) => ({ ...model, passesGradients: model.kept !== undefined }))
  return { ...published, models: [...published.models, ...beside] }
}

function megatronUse(
  { training }: Facts,
  { transformer, parameters, perGpu, tensorWays }: MegatronModel,
): ModelUse {
  return {
    ...{ event: training.find(({ engine }) => engine === 'megatron')?.event, transformer },
    parameters: exactly(parameters),
    split: { parameters: perGpu, tensorWays },
    ...TRAINED,
  }
}

function builtUse({ parameters, kept, first }: BuiltModel): ModelUse {
  return {
    ...{ event: first, parameters: exactly(parameters), isRough: true },
    ...(kept !== undefined && { kept }),
    ...TRAINED,
  }
}

const TRAINED = { isFrozen: false, isAdapted: false, passesGradients: true }

function publishedModels(facts: Facts): Omit<ModelsUsed, 'networks'> {
  const used = facts.events.filter(isCalled).flatMap((event) => {
    const found = publishedModel(event)
    return found === undefined ? [] : [{ event, ...found }]
  })
  // A program often loads one model twice: to train it, and to evaluate what it saved.
  const distinct = used.filter(({ name }, at) => used.findIndex((other) => other.name === name) === at)
  const known = distinct.filter(({ model }) => model !== undefined)
  const adapted = adaptedModels(facts)
  const isAdapted = (event: CallEvent): boolean => adapted === 'any' || adapted.includes(event)
  const isFrozen = (event: CallEvent): boolean => isAdapted(event) || isFrozenModel(facts, event)
  // What comes before a frozen network is trained by gradients that pass through it.
  const trainsInput = known.some(
    ({ event }) =>
      ['ControlNetModel', 'CLIPTextModel'].some((part) => event.name.includes(part)) && !isFrozen(event),
  )
  return {
    models: known.map(({ event, model }) => ({
      event,
      parameters: exactly(withHead(facts, event, model!)),
      ...(model!.transformer !== undefined && { transformer: model!.transformer }),
      ...(model!.pictures !== undefined && { pictures: model!.pictures }),
      isFrozen: isFrozen(event),
      isAdapted: isAdapted(event),
      passesGradients:
        !isFrozenModel(facts, event) || isAdapted(event) || (trainsInput && event.name.includes('UNet')),
    })),
    unknown: distinct.filter(({ model }) => model === undefined).map(({ name }) => name),
  }
}

const IMAGENET_CLASSES = 1000

/** The parameters with a last layer for other classes, if the program replaces it; that layer is counted separately. */
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
    ) || run.frozen.some(isModel)
  )
}

const isLayer = (value: Value): boolean => value.kind === 'made' && layerName(value.call) !== undefined

/** What is kept is that of one sample. */
function ownModels(facts: Facts, networks: readonly Network[]): ModelUse[] {
  const input = unknown(undefined, 'batch')
  return networks.flatMap((network) => {
    if (network.known === 0) return []
    const calls = forwardCalls(facts.run, network.root, input)
    // The layer that gets the data may not be the first one that is made.
    const entered = calls.find(
      ({ receiver, positional }) => receiver?.kind === 'made' && positional[0] === input && isLayer(receiver),
    )?.receiver
    const first = entered?.kind === 'made' ? [entered.call] : []
    const shape = batchShape(facts, [...first, ...network.layers], 1)
    const kept =
      shape === undefined
        ? undefined
        : keptByForward(calls, {
            ...{ input, shape, training: facts.loops, heads: headsOf(facts) },
          })
    const { parameters } = network
    return [
      {
        event: network.layers[0],
        parameters:
          parameters === undefined ? { low: network.knownParameters, high: Infinity } : exactly(parameters),
        ...(kept !== undefined && kept.plain > 0 && { kept }),
        ...TRAINED,
      },
    ]
  })
}
