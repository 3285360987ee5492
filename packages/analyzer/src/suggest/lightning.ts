/** The change of a program whose loop is the `Trainer` of Lightning, which saves all but the state of random numbers. */
import type { Facts } from '../facts'
import { externalBase } from '../members'
import { childAt, nodesOf, type SourceFile } from '../syntax'
import { alternatives, constantOf, constructionOf, textOf, type CallEvent, type Value } from '../values'
import {
  addArgument,
  addCallbacks,
  callbackCall,
  callbacksOf,
  checkWritten,
  isOwnCallback,
  isUnset,
  namedNode,
  positionalNodes,
  setArgument,
  statementOf,
  topStatement,
} from './calls'
import { checkHooks } from './hooks'
import { checkSeeds, checkWorkers, isLoaderPart, isRandom } from './random'
import { refuse, refuseCall } from './refusal'
import type { Line, Writing } from './writing'

/** Writes both halves; answers when the changed program saves. */
export function writeLightning(
  { facts, isNumpy }: { facts: Facts; isNumpy: boolean },
  writingOf: (source: SourceFile) => Writing,
): string {
  const [{ event: fit }] = facts.training as [Facts['training'][number]]
  const trainer = trainerOf(fit)
  checkFit(fit)
  checkTrainer(trainer)
  checkProgram(facts)
  const saving = ownSaving(facts, trainer)
  const writing = writingOf(trainer.file)
  const os = writing.module('os')
  const lightning = packageIn(writing)
  const random = writing.free('ResumeState')
  writing.classBefore(
    topStatement(trainer.file, trainer.node),
    randomState(writing, { lightning, random, isNumpy }),
  )
  if (saving === undefined) {
    const name = writing.free('checkpoint')
    const { statement, siblings } = statementOf(trainer.file, trainer.node)
    writing.before(statement, siblings, [
      [0, `${name} = ${lightning}.callbacks.ModelCheckpoint(`],
      [1, `dirpath=${os}.environ.get("CRUCIBLE_CHECKPOINT_DIR", "checkpoints"),`],
      [1, 'filename="{epoch}-{step}",'],
      [1, 'save_on_train_epoch_end=True,'],
      [0, ')'],
    ])
    addCallbacks(writing, trainer, [name, `${random}()`])
  } else {
    const own = writingOf(saving.file)
    if (!saving.named.has('save_on_train_epoch_end')) addArgument(own, saving, 'save_on_train_epoch_end=True')
    const folder = namedNode(saving, 'dirpath') ?? positionalNodes(saving)[0]
    const given = folder === undefined || folder.type === 'none' ? '"checkpoints"' : folder.text
    const place = `${own.module('os')}.environ.get("CRUCIBLE_CHECKPOINT_DIR", ${given})`
    if (folder === undefined) addArgument(own, saving, `dirpath=${place}`)
    else own.replace(folder, place)
    addCallbacks(writing, trainer, [`${random}()`])
  }
  if (namedNode(trainer, 'enable_checkpointing') !== undefined)
    setArgument(writing, trainer, { name: 'enable_checkpointing', text: 'True' })
  const starting = writingOf(fit.file)
  setArgument(starting, fit, {
    name: 'ckpt_path',
    text: `${starting.module('os')}.environ.get("CRUCIBLE_RESUME_FROM")`,
  })
  return saving === undefined
    ? 'after each epoch'
    : `at the interval of the ModelCheckpoint at ${saving.file.path}:${saving.node.line}`
}

function trainerOf(fit: CallEvent): CallEvent {
  const trainer = constructionOf(fit.receiver)
  if (fit.method !== 'fit' || trainer?.method !== 'Trainer' || trainer.node.type !== 'call')
    refuseCall(fit, 'is a Trainer whose settings are not written in the program')
  checkWritten(trainer)
  if (positionalNodes(trainer).length > 0)
    refuseCall(trainer, 'gives the Trainer settings without their names')
  return trainer
}

function checkFit(fit: CallEvent): void {
  checkWritten(fit)
  if (fit.loops.length > 0) refuseCall(fit, 'trains again in each round of a loop')
  if (positionalNodes(fit).length > 4 || !isUnset(fit.named.get('ckpt_path')))
    refuseCall(fit, 'is given a checkpoint already (ckpt_path), which decides where it resumes')
}

/** One process: the state of random numbers of the others is in no checkpoint. */
const ONE: readonly unknown[] = [1, '1', 'auto']

function checkTrainer(trainer: CallEvent): void {
  const get = (name: string): Value | undefined => trainer.named.get(name)
  const refuseSetting = (name: string, why: string): never => refuseCall(trainer, `has ${name}, ${why}`)
  const devices = get('devices') ?? get('gpus')
  const isOne = devices?.kind === 'list' ? devices.items.length === 1 : isUnset(devices, ...ONE)
  if (!isOne || !isUnset(get('num_nodes'), 1) || !isUnset(get('strategy'), 'auto', 'single_device'))
    refuseSetting(
      'devices or a strategy',
      'so that it may train in several processes, each with a state of its own',
    )
  if (!isUnset(get('max_steps'), -1))
    refuseSetting('max_steps', 'after which some versions of Lightning resume with other batches')
  if (constantOf(get('max_epochs')) === 1)
    refuseSetting('max_epochs=1', 'and Lightning cannot resume in mid-epoch')
  if (!isUnset(get('reload_dataloaders_every_n_epochs'), 0))
    refuseSetting('reload_dataloaders_every_n_epochs', 'so that the data depends on when it was loaded')
  if (!isUnset(get('resume_from_checkpoint')))
    refuseSetting('resume_from_checkpoint', 'which decides where it resumes')
  if (!isUnset(get('fast_dev_run'), false)) refuseSetting('fast_dev_run', 'which trains for a test only')
}

/** Callbacks whose state is in each checkpoint, or that have none. */
const CALLBACKS = new Set([
  'EarlyStopping',
  'ModelCheckpoint',
  'LearningRateMonitor',
  'DeviceStatsMonitor',
  'LambdaCallback',
  'TQDMProgressBar',
  'RichProgressBar',
  'ModelSummary',
  'RichModelSummary',
  'GradientAccumulationScheduler',
])

function checkProgram(facts: Facts): void {
  checkSeeds(facts.events)
  checkHooks(facts, 'Lightning')
  for (const event of facts.events) {
    const { name, method, named } = event
    if (method === 'ReduceLROnPlateau')
      refuseCall(
        event,
        'lowers the learning rate after Lightning has saved, so that a resumed run lowers it elsewhere',
      )
    if (
      name.startsWith('torchmetrics.') &&
      ['MaxMetric', 'MinMetric', 'Running'].some((each) => method.startsWith(each))
    )
      refuseCall(event, 'keeps a value of earlier epochs, which Lightning does not save')
    if (method === 'Tuner' && name.startsWith('lightning.'))
      refuseCall(event, 'tunes settings before the training, and a resumed run would tune them again')
    if (method === 'StatefulDataLoader') refuseCall(event, 'saves its own position in the data')
    if (isLoaderPart(event)) {
      checkWorkers(event)
      if ([...named.values()].some(isRandom))
        refuseCall(event, 'draws its order from a generator whose state Lightning does not save')
    }
  }
  for (const { definition } of facts.run.instances) {
    if (definition.members.has('configure_callbacks'))
      refuse(definition.file.path, definition.node, 'chooses callbacks of its own (configure_callbacks)')
    if (externalBase(definition)?.endsWith('LightningModule') !== true) continue
    checkParameters(facts, definition)
  }
  checkManual(facts)
}

/** PyTorch since 2.6 loads only plain values, so that hyperparameters must be such. */
function checkParameters({ run }: Facts, definition: Definition): void {
  const saves = [...nodesOf(definition.node)].find(
    ({ type, text }) => type === 'call' && text.startsWith('self.save_hyperparameters('),
  )
  if (saves === undefined) return
  const own = [...run.instances].find((each) => each.definition === definition)
  const construction = constructionOf(own)
  const given = construction === undefined ? [] : [...construction.positional, ...construction.named.values()]
  const isPlain = (value: Value): boolean =>
    alternatives(value).every(
      ({ kind }) => kind === 'constant' || kind === 'list' || kind === 'dict' || kind === 'unknown',
    )
  if (!given.every(isPlain))
    refuse(
      definition.file.path,
      saves,
      'saves objects among the hyperparameters, which newer versions of Lightning do not load',
    )
}

type Definition = Parameters<typeof externalBase>[0]

/** With optimization of its own, a program may leave gradients to the next epoch. */
function checkManual({ events }: Facts): void {
  const steps = events.filter(({ method }) => method === 'manual_backward')
  const clears = events.filter(({ method }) => method === 'zero_grad')
  const isAlways = ({ guards }: CallEvent): boolean =>
    guards.every(
      ({ truth, line, file }) =>
        truth === true ||
        steps.some((step) => step.guards.some((own) => own.line === line && own.file === file)),
    )
  const [step] = steps
  if (step !== undefined && !clears.some(isAlways))
    refuseCall(clears[0] ?? step, 'leaves gradients to the next epoch, which no checkpoint holds')
}

/** The program's own ModelCheckpoint, if it saves everything at regular ends of epochs. Refuses what cannot be continued. */
function ownSaving({ events }: Facts, trainer: CallEvent): CallEvent | undefined {
  const calls = callbacksOf(trainer).map((item) => {
    const call = callbackCall(item)
    if (call === undefined || (!isOwnCallback(item) && !CALLBACKS.has(call.method)))
      refuseCall(call ?? trainer, 'is a callback whose state this analysis does not know')
    return call
  })
  const saving = calls.filter(({ method }) => method === 'ModelCheckpoint')
  const best = saving.find(({ named }) => !isUnset(named.get('monitor')))
  const use = events.find(
    ({ named, argumentTexts, method }) =>
      textOf(named.get('ckpt_path')) === 'best' ||
      method === 'load_from_checkpoint' ||
      argumentTexts.some((text) => text.includes('best_model')),
  )
  if (best !== undefined && use !== undefined)
    refuseCall(use, 'uses the best model, whose file a resumed run on another machine lacks')
  return saving.find(({ named, node }) => {
    const isRegular = ['monitor', 'every_n_train_steps', 'train_time_interval'].every((name) =>
      isUnset(named.get(name)),
    )
    const saves = constantOf(named.get('save_top_k')) !== 0 && isUnset(named.get('save_weights_only'), false)
    return isRegular && saves && isUnset(named.get('save_on_train_epoch_end'), true) && node.type === 'call'
  })
}

const PACKAGES = ['lightning.pytorch', 'pytorch_lightning', 'lightning']

/** The expression by which a file reaches Lightning, which it imports if it does not yet. */
function packageIn(writing: Writing): string {
  const { root, text } = writing.source
  for (const node of nodesOf(root)) {
    if (node.type !== 'import_statement') continue
    for (const each of node.children) {
      const module = childAt(each, 'name')?.text ?? each.text
      if (!PACKAGES.includes(module)) continue
      const alias = childAt(each, 'alias')?.text ?? module
      return module === 'lightning' ? `${alias}.pytorch` : alias
    }
  }
  return writing.module(text.includes('pytorch_lightning') ? 'pytorch_lightning' : 'lightning.pytorch', 'pl')
}

function randomState(
  writing: Writing,
  { lightning, random: name, isNumpy }: { lightning: string; random: string; isNumpy: boolean },
): Line[] {
  const [random, torch] = [writing.module('random'), writing.module('torch')]
  const numpy = isNumpy ? writing.module('numpy', 'np') : undefined
  return [
    [0, `class ${name}(${lightning}.Callback):`],
    [
      1,
      '"""Saves what the checkpoints of Lightning lack: random numbers, and whether the training has stopped."""',
    ],
    [0, ''],
    [1, 'restored = None'],
    [0, ''],
    [1, 'def on_save_checkpoint(self, trainer, pl_module, checkpoint):'],
    ...(numpy === undefined ? [] : [[2, `generator, numbers, *rest = ${numpy}.random.get_state()`] as const]),
    [2, `checkpoint["${name}"] = {`],
    [3, '"stopped": trainer.should_stop,'],
    [3, `"python": ${random}.getstate(),`],
    ...(numpy === undefined ? [] : [[3, '"numpy": [generator, numbers.tolist(), *rest],'] as const]),
    [3, `"torch": ${torch}.get_rng_state(),`],
    [3, `"cuda": ${torch}.cuda.get_rng_state_all(),`],
    [2, '}'],
    [0, ''],
    [1, 'def on_load_checkpoint(self, trainer, pl_module, checkpoint):'],
    [2, `self.restored = checkpoint["${name}"]`],
    [0, ''],
    [1, 'def on_train_start(self, trainer, pl_module):'],
    [2, 'if self.restored is not None:'],
    [3, 'trainer.should_stop = self.restored["stopped"]'],
    [0, ''],
    [1, 'def on_train_epoch_start(self, trainer, pl_module):'],
    [2, 'if self.restored is not None:'],
    [3, `${random}.setstate(self.restored["python"])`],
    ...(numpy === undefined
      ? []
      : [[3, `${numpy}.random.set_state(tuple(self.restored["numpy"]))`] as const]),
    [3, `${torch}.set_rng_state(self.restored["torch"])`],
    [3, `${torch}.cuda.set_rng_state_all(self.restored["cuda"])`],
    [3, 'if getattr(trainer.fit_loop, "is_resuming", False):'],
    [4, '# Newer versions of Lightning have begun the pass over the data before this.'],
    [4, 'iter(trainer.fit_loop._data_fetcher)'],
    [3, 'self.restored = None'],
  ]
}
