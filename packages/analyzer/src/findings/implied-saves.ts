/** Checkpoints that a library saves by its own settings: Lightning, Hugging Face's Trainer, Keras. */
import { argument, lastPart, optionsOf } from '../facts'
import { truthOfGuards, type Interpreter } from '../interpreter'
import { constant, constantOf, constructionOf, numberOf, textOf, type CallEvent } from '../values'
import type { Part } from './contents'
import { placeOfLightning } from './places'
import { ALL, inWords, WEIGHTS, type Save } from './save'

function implied(
  event: CallEvent,
  { parts, every, truth }: { parts: ReadonlySet<Part>; every: string | undefined; truth?: boolean },
): Save {
  return {
    event,
    parts,
    isPeriodic: true,
    truth: truth ?? truthOfGuards(event.guards),
    options: optionsOf(event),
    every,
    path: undefined,
  }
}

/** Lightning saves at each epoch unless a setting of the Trainer turns it off. */
export function lightningSaves(fit: CallEvent): Save[] {
  const trainer = constructionOf(fit.receiver)
  if (trainer === undefined) return []
  const enabled = constantOf(
    trainer.named.get('enable_checkpointing') ?? trainer.named.get('checkpoint_callback'),
  )
  if (enabled === false || constantOf(trainer.named.get('fast_dev_run')) === true) return []
  const callback = callbackOf(trainer, 'ModelCheckpoint')
  const place = placeOfLightning(trainer, callback)
  if (callback === undefined) return [{ ...implied(trainer, { parts: ALL, every: '1 epoch' }), place }]
  const isWeights = constantOf(callback.named.get('save_weights_only')) === true
  const every = everyOfCallback(callback)
  return [{ ...implied(callback, { parts: isWeights ? WEIGHTS : ALL, every }), place }]
}

function everyOfCallback(callback: CallEvent): string | undefined {
  const steps = numberOf(callback.named.get('every_n_train_steps'))
  if (steps !== undefined && steps > 0) return inWords(steps, 'step')
  if (callback.named.has('train_time_interval')) return undefined
  const epochs = callback.named.get('every_n_epochs')
  if (epochs !== undefined)
    return numberOf(epochs) === undefined ? undefined : inWords(numberOf(epochs)!, 'epoch')
  return inWords(1, 'epoch')
}

export function callbackOf(event: CallEvent, name: string): CallEvent | undefined {
  // Lightning before 1.2 takes the callback that saves separately.
  const given = [event.named.get('callbacks'), event.named.get('checkpoint_callback')]
  const items = given.flatMap((each) => (each?.kind === 'list' ? each.items : (each ?? [])))
  return items.map(constructionOf).find((call) => call !== undefined && lastPart(call.name) === name)
}

/** The TrainingArguments of a Trainer. */
export function trainingArguments(train: CallEvent): CallEvent | undefined {
  const trainer = constructionOf(train.receiver)
  const given = trainer?.named.get('args') ?? trainer?.positional[1]
  return constructionOf(given)
}

export function huggingFaceSaves(train: CallEvent): Save[] {
  const settings = trainingArguments(train)
  const strategy = settings === undefined ? 'steps' : (textOf(settings.named.get('save_strategy')) ?? 'steps')
  if (strategy === 'no') return []
  const isWeights = settings !== undefined && constantOf(settings.named.get('save_only_model')) === true
  const steps = settings?.named.get('save_steps')
  const every =
    strategy === 'epoch'
      ? '1 epoch'
      : strategy !== 'steps'
        ? undefined
        : steps === undefined
          ? '500 steps'
          : numberOf(steps) === undefined
            ? undefined
            : inWords(numberOf(steps)!, 'step')
  return [
    implied(settings ?? train, {
      parts: isWeights ? WEIGHTS : ALL,
      every,
      truth: truthOfGuards(train.guards) === false ? false : undefined,
    }),
  ]
}

export function kerasSaves(fit: CallEvent): Save[] {
  const backup = callbackOf(fit, 'BackupAndRestore')
  const checkpoint = callbackOf(fit, 'ModelCheckpoint')
  const saves: Save[] = []
  if (backup !== undefined) {
    const frequency = numberOf(backup.named.get('save_freq'))
    saves.push(
      implied(backup, {
        parts: ALL,
        every: frequency === undefined ? '1 epoch' : inWords(frequency, 'step'),
      }),
    )
  }
  if (checkpoint !== undefined) {
    const isWeights = constantOf(checkpoint.named.get('save_weights_only')) === true
    const frequency = checkpoint.named.get('save_freq')
    const every =
      typeof constantOf(frequency) === 'number' ? inWords(numberOf(frequency)!, 'step') : '1 epoch'
    saves.push(implied(checkpoint, { parts: isWeights ? WEIGHTS : ALL, every }))
  }
  return saves
}

/** Megatron saves to the folder of `--save`, at the end or at each `--save-interval`. */
export function megatronSaves(event: CallEvent, { options }: Interpreter): Save[] {
  const save = options.find(({ key }) => key === 'save')
  const interval = numberOf(options.find(({ key }) => key === 'save_interval')?.given)
  if (save === undefined) return []
  return [
    {
      ...implied(event, {
        parts: ALL,
        every: interval === undefined ? undefined : inWords(interval, 'step'),
        truth: save.given !== undefined,
      }),
      isPeriodic: interval !== undefined,
      options: save.given === undefined ? [save] : [],
      path: save.given,
      place: { path: save.given, isFolder: true },
    },
  ]
}

/** XGBoost's callback, which saves the trees so far; the number of trees is the position. */
export function boosterSaves(train: CallEvent): Save[] {
  const settings = constructionOf(train.receiver) ?? train
  const callback = callbackOf(settings, 'TrainingCheckPoint')
  if (callback === undefined) return []
  const rounds = numberOf(callback.named.get('interval') ?? constant(100))
  const every = rounds === undefined ? undefined : inWords(rounds, 'step')
  const path = argument(callback, 'directory', 0)
  return [{ ...implied(callback, { parts: WEIGHTS, every }), path, place: { path, isFolder: true } }]
}
