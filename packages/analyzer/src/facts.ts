/** Facts that all findings share: the calls of the program, and which of them train. */
import type { Interpreter } from './interpreter'
import { truthOfGuards } from './interpreter'
import type { Launch } from './launch'
import type { Evidence } from './report'
import { firstLine } from './interpreter'
import { isMegatronTraining } from './options/megatron'
import type { Guard, Loop } from './flow'
import { STEP_METHODS } from './training-steps'
import {
  alternatives,
  constantOf,
  numberOf,
  setting,
  type CallEvent,
  type Option,
  type Value,
} from './values'

/** Which library runs the loop over the data. */
export type Engine = 'own' | 'lightning' | 'hugging-face' | 'keras' | 'megatron' | 'estimator'

export interface TrainingCall {
  engine: Engine
  event: CallEvent
}

export interface Facts {
  run: Interpreter
  launch: Launch
  /** The configuration file of `accelerate launch`. */
  launchConfig: Value | undefined
  /** Calls that the program can make. */
  events: readonly CallEvent[]
  training: readonly TrainingCall[]
  /** Position of the first training call among the events. */
  firstTraining: number
  /** Loops around training calls. */
  loops: ReadonlySet<Loop>
  /** Facts of the program if its command had these words too; `undefined` if they do not reach the program. */
  again: (words: string) => Facts | undefined
}

export function gatherFacts(run: Interpreter, launch: Launch, again: Facts['again']): Facts {
  const events = run.events
  const training = events.flatMap((event) => {
    const engine = engineOf(event)
    return engine === undefined ? [] : [{ engine, event }]
  })
  const first = training[0]
  const file = launch.launcher === 'accelerate' ? launch.settings.get('config_file') : undefined
  const launchConfig = file === undefined ? undefined : run.project.data(file, run.entry)
  return {
    run,
    launch: {
      ...launch,
      processes: launch.processes ?? numberOf(setting(launchConfig, 'num_processes')),
    },
    launchConfig,
    events,
    training,
    firstTraining: first === undefined ? events.length : events.indexOf(first.event),
    again,
    loops: new Set(training.filter(({ engine }) => engine === 'own').flatMap(({ event }) => event.loops)),
  }
}

function engineOf(event: CallEvent): Engine | undefined {
  const { name, method } = event
  if (isMegatronTraining(event)) return 'megatron'
  // The estimator learns from one part of the data, in a loop of the program.
  if (method === 'partial_fit' && !isPreparation(name)) return 'own'
  if (isHuggingFaceTrainer(event.receiver) && method === 'train') return 'hugging-face'
  if (name.startsWith('lightning.') && (method === 'fit' || method === 'fit_loop')) return 'lightning'
  if (method === 'fit' && (name.startsWith('keras.') || nameOf(event.receiver).startsWith('keras.')))
    return 'keras'
  // Only models of Keras before 3 have this method.
  if (method === 'fit_generator' && (name.startsWith('keras.') || name.startsWith('?'))) return 'keras'
  if (
    ESTIMATORS.some((library) => name.startsWith(`${library}.`)) &&
    ['fit', 'train', 'fit_transform'].includes(method)
  )
    return method === 'fit_transform' || isPreparation(name) ? undefined : 'estimator'
  if (method === 'learn' && (name.startsWith('stable_baselines3.') || name.startsWith('sb3_contrib.')))
    return 'estimator'
  if (isStep(event)) return 'own'
  if (method === 'fit' && event.receiver !== undefined && event.positional.length >= 1)
    return name.startsWith('?') ? 'estimator' : undefined
  return undefined
}

const ESTIMATORS = ['sklearn', 'xgboost', 'lightgbm', 'catboost']
/** Parts of sklearn that prepare data. */
const PREPARATIONS = ['preprocessing', 'feature_extraction', 'decomposition', 'impute', 'compose']
const isPreparation = (name: string): boolean =>
  PREPARATIONS.some((part) => name.startsWith(`sklearn.${part}`))

/** timm's objects that call `backward` and `step` for the program. */
const STEPPING = /^timm\.utils\.(?:Native|Apex)Scaler\(\)\(\)$/

function isStep({ name, method, receiverText }: CallEvent): boolean {
  if (STEP_METHODS.has(method) || STEPPING.test(name)) return true
  if (method === 'grad') return name.startsWith('jax.') || name === 'torch.autograd.grad'
  return (
    method === 'step' &&
    (name.startsWith('torch.optim.') ? !name.includes('lr_scheduler') : isOptimizerName(receiverText))
  )
}

export function isOptimizerName(text: string): boolean {
  const last = lastPart(text).toLowerCase()
  return (
    last.includes('optim') ||
    last === 'opt' ||
    last.startsWith('opt_') ||
    last.endsWith('_opt') ||
    last === 'sgd' ||
    last === 'adam'
  )
}

/** The last name of `self.model.module`. */
export function lastPart(text: string): string {
  return text.slice(text.lastIndexOf('.') + 1)
}

export function nameOf(value: Value | undefined): string {
  if (value === undefined) return ''
  const [first] = alternatives(value)
  if (first === undefined) return ''
  if (first.kind === 'extern') return first.name
  if (first.kind === 'made') return first.call.name
  if (first.kind === 'instance' || first.kind === 'class') {
    const [base] = first.definition.bases
    return base === undefined ? first.definition.name : nameOf(base)
  }
  return ''
}

/** A `Trainer` of transformers or of a library that extends it. */
export function isHuggingFaceTrainer(value: Value | undefined): boolean {
  const name = nameOf(value)
  return (
    name.endsWith('Trainer') &&
    (name.startsWith('transformers.') || name.startsWith('trl.') || name.startsWith('sentence_transformers.'))
  )
}

export function evidenceOf({ file, node }: CallEvent): Evidence {
  return { file: file.path, line: node.line, text: firstLine(node.text).slice(0, TEXT_MAX) }
}

/** Longer lines are cut. */
const TEXT_MAX = 120

/** An argument by its name, or by its position. */
export function argument(event: CallEvent, name: string, position?: number): Value | undefined {
  return event.named.get(name) ?? (position === undefined ? undefined : event.positional[position])
}

export const isCalled = (event: CallEvent): boolean => truthOfGuards(event.guards) !== false

/** Options that a call depends on, by its conditions. */
export function optionsOf(event: CallEvent): Option[] {
  return [
    ...new Set(
      event.guards.filter(({ truth }) => truth !== true).flatMap(({ condition }) => [...condition.options]),
    ),
  ]
}

/** An option as a user gives it: `--resume`, `--init_from=resume`. */
export function spelled(option: Option, guards: readonly Guard[]): string {
  const wanted = guards.find(({ wants }) => wants?.option === option && wants.value !== undefined)?.wants
    ?.value
  const value = constantOf(wanted)
  return value === undefined || value === null || typeof value === 'boolean'
    ? option.name
    : `${option.name}=${String(value)}`
}
