/** The change of a program that trains by `fit` of Keras: a callback that saves the whole state, and `initial_epoch`. */
import type { Facts } from '../facts'
import { externalBase } from '../members'
import type { SourceFile } from '../syntax'
import { constantOf, constructionOf, numberOf, type CallEvent, type Value } from '../values'
import {
  addCallbacks,
  callbackCall,
  callbacksOf,
  checkWritten,
  isOwnCallback,
  isUnset,
  positionalNodes,
  setArgument,
  statementOf,
  topStatement,
} from './calls'
import { checkArrays } from './arrays'
import { checkHooks } from './hooks'
import { checkpointClass } from './keras-class'
import { checkSeeds } from './random'
import { refuse, refuseCall } from './refusal'
import type { Writing } from './writing'

/** Writes both halves; answers when the changed program saves. */
export function writeKeras({ facts }: { facts: Facts }, writingOf: (source: SourceFile) => Writing): string {
  const [{ event: fit }] = facts.training as [Facts['training'][number]]
  checkFit(fit)
  checkArrays(facts, fit)
  checkModel(facts, fit)
  checkProgram(facts, fit)
  const writing = writingOf(fit.file)
  const os = writing.module('os')
  const names = { checkpoint: writing.free('Checkpoint'), variable: writing.free('checkpoint') }
  const { statement, siblings } = statementOf(fit.file, fit.node)
  writing.classBefore(topStatement(fit.file, fit.node), checkpointClass(writing, names.checkpoint, facts))
  writing.before(statement, siblings, [
    [0, `${names.variable} = ${names.checkpoint}(`],
    [
      1,
      `${os}.environ.get("CRUCIBLE_CHECKPOINT_DIR", "checkpoints"), ${os}.environ.get("CRUCIBLE_RESUME_FROM")`,
    ],
    [0, ')'],
  ])
  addCallbacks(writing, fit, [names.variable])
  setArgument(writing, fit, { name: 'initial_epoch', text: `${names.variable}.first_epoch` })
  const isOfTensorflow = [...facts.run.imports.keys()].some((name) => name.startsWith('tensorflow'))
  return isOfTensorflow
    ? 'after each epoch; it needs Keras 3, which TensorFlow has since 2.16'
    : 'after each epoch'
}

function checkFit(fit: CallEvent): void {
  checkWritten(fit)
  if (fit.loops.length > 0) refuseCall(fit, 'trains again in each round of a loop')
  if (positionalNodes(fit).length > 5 || !isUnset(fit.named.get('initial_epoch'), 0))
    refuseCall(fit, 'is given a first epoch already (initial_epoch)')
  if (!isUnset(fit.named.get('steps_per_epoch')))
    refuseCall(
      fit,
      'continues in its data from one epoch to the next (steps_per_epoch), and that place cannot be saved',
    )
  const epochs = fit.named.get('epochs') ?? fit.positional[3]
  if (epochs === undefined || numberOf(epochs) === 1)
    refuseCall(fit, 'trains one epoch, and Keras cannot resume in mid-epoch')
  for (const item of callbacksOf(fit)) {
    const call = callbackCall(item)
    const why = call === undefined ? undefined : KEEPING[call.method]
    if (why !== undefined) refuseCall(call!, why)
    if (call === undefined || (!isOwnCallback(item) && !CALLBACKS.has(call.method)))
      refuseCall(call ?? fit, 'is a callback whose state this analysis does not know')
    if (call.method === 'ModelCheckpoint' && !isUnset(call.named.get('save_best_only'), false))
      refuseCall(call, 'keeps the best value of earlier epochs, which no checkpoint of Keras holds')
  }
}

/** Callbacks without a state that a run depends on. */
const CALLBACKS = new Set([
  'LearningRateScheduler',
  'TensorBoard',
  'CSVLogger',
  'TerminateOnNaN',
  'LambdaCallback',
  'ModelCheckpoint',
  'ProgbarLogger',
  'History',
  'RemoteMonitor',
])

const KEEPING: Readonly<Record<string, string>> = {
  EarlyStopping: 'counts epochs without progress, which no checkpoint of Keras holds',
  ReduceLROnPlateau: 'counts epochs without progress, which no checkpoint of Keras holds',
  BackupAndRestore: 'resumes already, without the state of random numbers',
  SwapEMAWeights: 'swaps the weights, so that a save in between holds the wrong ones',
}

function checkModel({ events, run }: Facts, fit: CallEvent): void {
  const model = fit.receiver
  const construction = constructionOf(model)
  if (model === undefined || construction === undefined)
    refuseCall(fit, 'trains a model that is not made in the program')
  const isBuilt =
    events.some(
      ({ name, method, named }) =>
        name.startsWith('keras.') &&
        (['Input', 'InputLayer', 'build'].includes(method) ||
          ['input_shape', 'input_dim', 'batch_input_shape'].some((each) => named.has(each)) ||
          name.startsWith('keras.applications.')),
    ) && isFunctional(model, construction)
  if (!isBuilt)
    refuseCall(
      construction,
      'makes its variables in the first step only, after a checkpoint would be restored: give the model a keras.Input',
    )
  const own = [...run.instances].find(
    ({ definition }) =>
      externalBase(definition)?.startsWith('keras.') === true && definition.members.has('compile'),
  )
  if (own !== undefined)
    refuse(
      own.definition.file.path,
      own.definition.node,
      'has optimizers of its own, which this analysis does not find',
    )
}

/** A model whose layers are given, rather than made by a method of its own. */
const isFunctional = (model: Value, { positional, named }: CallEvent): boolean =>
  model.kind === 'made' ||
  (model.kind === 'instance' &&
    !model.definition.members.has('call') &&
    (positional.length >= 2 || named.has('inputs')))

function checkProgram(facts: Facts, fit: CallEvent): void {
  checkSeeds(facts.events)
  checkHooks(facts, 'Keras')
  for (const event of facts.events) {
    if (event.name.includes('.distribute.') || event.name.includes('keras.distribution'))
      refuseCall(event, 'trains on several devices, whose state this analysis does not save')
    const isInHook = event.within.includes('call') || event.within.includes('train_step')
    if (event.name.startsWith('keras.random.') && isInHook && !event.named.has('seed'))
      refuseCall(event, "draws from Keras's own generator, which no model holds: give it a SeedGenerator")
    if (event.name.startsWith('keras.random.SeedGenerator') && event.within.length === 0)
      refuseCall(event, 'makes a generator of random numbers that no model holds')
  }
  const isLoaded = constantOf(fit.receiver) === undefined && fit.receiver?.kind === 'unknown'
  if (isLoaded) refuseCall(fit, 'trains a model that is not made in the program')
}
