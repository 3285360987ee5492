/** The change of a program that trains by `fit` of Keras: a callback that saves the whole state, and `initial_epoch`. */
import type { Facts } from '../facts'
import { externalBase } from '../members'
import { nodesOf, type SourceFile, type SyntaxNode } from '../syntax'
import { alternatives, constantOf, constructionOf, numberOf, type CallEvent, type Value } from '../values'
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
import { checkHooks } from './hooks'
import { checkSeeds } from './random'
import { refuse, refuseCall } from './refusal'
import type { Line, Writing } from './writing'

/** Writes both halves; answers when the changed program saves. */
export function writeKeras({ facts }: { facts: Facts }, writingOf: (source: SourceFile) => Writing): string {
  const [{ event: fit }] = facts.training as [Facts['training'][number]]
  checkFit(fit)
  checkData(fit)
  checkModel(facts, fit)
  checkProgram(facts, fit)
  const writing = writingOf(fit.file)
  const os = writing.module('os')
  const names = { checkpoint: writing.free('Checkpoint'), variable: writing.free('checkpoint') }
  const { statement, siblings } = statementOf(fit.file, fit.node)
  writing.classBefore(topStatement(fit.file, fit.node), callback(writing, names.checkpoint, facts))
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
    refuseCall(fit, 'trains one epoch, and Keras cannot take up the data in the middle of it')
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
  ...['LearningRateScheduler', 'TensorBoard', 'CSVLogger', 'TerminateOnNaN', 'LambdaCallback'],
  ...['ModelCheckpoint', 'ProgbarLogger', 'History', 'RemoteMonitor'],
])

const KEEPING: Readonly<Record<string, string>> = {
  EarlyStopping: 'counts epochs without progress, which no checkpoint of Keras holds',
  ReduceLROnPlateau: 'counts epochs without progress, which no checkpoint of Keras holds',
  BackupAndRestore: 'resumes already, without the state of random numbers',
  SwapEMAWeights: 'swaps the weights, so that a save in between holds the wrong ones',
}

/** Functions whose results are arrays, or that read them. */
const ARRAYS = [
  ...[
    'numpy.',
    'pandas.',
    'sklearn.',
    'scipy.',
    'h5py.',
    'jax.numpy.',
    'keras.datasets.',
    'keras.utils.to_categorical',
  ],
  ...[
    'keras.preprocessing.sequence.pad_sequences',
    'keras.utils.pad_sequences',
    'tensorflow.keras.datasets.',
    'cv2.',
  ],
]

/** Arrays are shuffled anew in each epoch; generators and pipelines have a place of their own. */
function checkData(fit: CallEvent): void {
  const data = fit.positional[0] ?? fit.named.get('x')
  const all =
    data === undefined
      ? []
      : alternatives(data).flatMap((each) => (each.kind === 'list' ? each.items : [each]))
  if (all.length === 0 || !all.every(isArray))
    refuseCall(
      fit,
      'is given data that is not surely an array; the place in a generator or pipeline cannot be saved',
    )
}

function isArray(value: Value): boolean {
  const calls = value.kind === 'made' ? [value.call] : value.origins.map(({ call }) => call)
  const isOfArrays = ({ name }: CallEvent): boolean => ARRAYS.some((prefix) => name.startsWith(prefix))
  return (
    calls.length > 0 &&
    calls.some(isOfArrays) &&
    !calls.some(({ name }) => PIPELINES.some((part) => name.includes(part)))
  )
}

const PIPELINES = [
  'tensorflow.data',
  'tensorflow_datasets',
  'torch.',
  'Sequence',
  'PyDataset',
  '_from_directory',
  'grain.',
]

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

/** The expression by which a file reaches Keras, which it imports if it does not yet. */
function kerasIn(writing: Writing): string {
  const { root } = writing.source
  const names = new Map([
    ['keras', 'keras'],
    ['tensorflow.keras', 'tensorflow.keras'],
    ['tensorflow', 'tf'],
  ])
  for (const module of names.keys()) {
    const found = [...nodesOf(root)].find((node) => bindsModule(node, module))
    if (found === undefined) continue
    const alias = found.children.find(({ field }) => field === 'name')!
    const name =
      alias.children.length > 1 && alias.type === 'aliased_import' ? alias.children[1]!.text : alias.text
    return module === 'tensorflow' ? `${name}.keras` : name
  }
  return writing.module('keras')
}

/** `import keras`, `import tensorflow as tf`, `from tensorflow import keras` */
function bindsModule(node: SyntaxNode, module: string): boolean {
  const names = node.children
    .filter(({ field }) => field === 'name')
    .map((each) => (each.type === 'aliased_import' ? each.children[0]! : each).text)
  if (node.type === 'import_statement') return names.length === 1 && names[0] === module
  const from =
    node.type === 'import_from_statement'
      ? node.children.find(({ field }) => field === 'module_name')?.text
      : undefined
  return module === 'keras' && from === 'tensorflow' && names.length === 1 && names[0] === 'keras'
}

/** The variables of a model include the state of the random numbers of its layers, which `save_weights` leaves out. */
const PARTS = [
  { key: 'model', variables: 'self.model.variables' },
  { key: 'optimizer', variables: 'self.model.optimizer.variables' },
]

function callback(writing: Writing, name: string, { run }: Facts): Line[] {
  const keras = kerasIn(writing)
  const [os, pickle, random] = ['os', 'pickle', 'random'].map((module) => writing.module(module)) as [
    string,
    string,
    string,
  ]
  const numpy = writing.module('numpy', 'np')
  const torch = run.imports.has('torch') ? writing.module('torch') : undefined
  const draws: [key: string, saved: string, restore: string][] = [
    ['python_random', `${random}.getstate()`, `${random}.setstate`],
    ['numpy_random', `${numpy}.random.get_state()`, `${numpy}.random.set_state`],
    ...(torch === undefined
      ? []
      : [['torch_random', `${torch}.get_rng_state()`, `${torch}.set_rng_state`] as [string, string, string]]),
  ]
  return [
    [0, `class ${name}(${keras}.callbacks.Callback):`],
    [1, '"""Saves everything after each epoch, and restores what an earlier run has saved."""'],
    [0, ''],
    [1, 'def __init__(self, folder, resume_from):'],
    [2, 'super().__init__()'],
    [2, `${os}.makedirs(folder, exist_ok=True)`],
    [2, `self.path = ${os}.path.join(folder, "checkpoint.pkl")`],
    [2, 'self.saved, self.logs = None, []'],
    [2, 'if resume_from:'],
    [3, 'with open(resume_from, "rb") as file:'],
    [4, `self.saved = ${pickle}.load(file)`],
    [3, 'self.logs = self.saved["logs"]'],
    [2, 'self.first_epoch = self.saved["epoch"] + 1 if self.saved else 0'],
    [0, ''],
    [1, 'def on_train_begin(self, logs=None):'],
    [2, 'if not self.saved:'],
    [3, 'return'],
    [2, 'if not self.model.optimizer.built:'],
    [3, 'self.model.optimizer.build(self.model.trainable_variables)'],
    ...PARTS.flatMap(({ key, variables }): Line[] => [
      [2, `for variable, value in zip(${variables}, self.saved["${key}"]):`],
      [3, 'variable.assign(value)'],
    ]),
    ...draws.map(([key, , restore]) => [2, `${restore}(self.saved["${key}"])`] as const),
    [0, ''],
    [1, 'def on_epoch_end(self, epoch, logs=None):'],
    [2, 'self.logs.append(dict(logs or {}))'],
    [2, 'state = {'],
    [3, '"epoch": epoch,'],
    [3, '"logs": self.logs,'],
    ...PARTS.map(({ key, variables }): Line => [
      3,
      `"${key}": [${keras}.ops.convert_to_numpy(variable) for variable in ${variables}],`,
    ]),
    ...draws.map(([key, saved]): Line => [3, `"${key}": ${saved},`]),
    [2, '}'],
    [2, 'with open(self.path + ".tmp", "wb") as file:'],
    [3, `${pickle}.dump(state, file)`],
    [3, 'file.flush()'],
    [3, `${os}.fsync(file.fileno())`],
    [2, `${os}.replace(self.path + ".tmp", self.path)`],
    [0, ''],
    [1, 'def on_train_end(self, logs=None):'],
    [2, '# What fit returns also has the epochs of the earlier run.'],
    [2, `history = self.model.history = ${keras}.callbacks.History()`],
    [2, 'history.epoch = list(range(len(self.logs)))'],
    [2, 'for each in self.logs:'],
    [3, 'for key, value in each.items():'],
    [4, 'history.history.setdefault(key, []).append(value)'],
  ]
}
