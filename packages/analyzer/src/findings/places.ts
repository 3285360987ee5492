/** Where the program saves, and the options that make it continue from there. */
import { openedPath } from '../files'
import type { Guard } from '../flow'
import { joined } from '../project'
import { argument, evidenceOf, isHuggingFaceTrainer, lastPart, nameOf, spelled, type Facts } from '../facts'
import { joinedPath } from '../operators'
import { isTrainingArguments } from '../options/dataclasses'
import { CERTAIN, found, notKnown, type Findings } from '../report'
import {
  alternatives,
  constant,
  constantOf,
  constructionOf,
  setting,
  textOf,
  type CallEvent,
  type Option,
  type Value,
} from '../values'
import type { Load } from './load'
import type { Save } from './save'

/** Returns a path as far as it is known, or that of an open file. */
export function pathText(value: Value | undefined): string | undefined {
  const path = openedPath(value)
  return path === undefined ? undefined : (textOf(path) ?? (path.kind === 'unknown' ? path.text : undefined))
}

/** Whether a path comes from Crucible, which gives the program its checkpoint folder and its last checkpoint. */
export const isGivenByCrucible = (text: string | undefined): boolean =>
  text?.startsWith('os.environ[CRUCIBLE_') === true

/** Whether an option names the place of a save, so that the program continues from there without another option. */
export function namesPlace(save: Save, option: Option): boolean {
  const place = placeOfSave(save).path
  const value = textOf(option.given ?? option.default)
  if (place?.options.has(option) !== true || value === undefined || value === '') return false
  return pathText(place)?.startsWith(value) === true
}

export interface Place {
  path: Value | undefined
  /** Whether the path is that of a folder, not of a file in it. */
  isFolder: boolean
}

const UNKNOWN_PLACE: Place = { path: undefined, isFolder: true }

/** The folder that holds everything that is saved while training. */
export function findDirectory(
  { run, launch }: Facts,
  saves: readonly Save[],
): Findings['checkpointDirectory'] {
  if (saves.length === 0) return notKnown<string>('nothing is saved while it trains')
  if (run.changesFolder) return notKnown<string>('it changes its working directory')
  const folders = saves.map((save) => folderOf(save, launch.folder))
  const [first, ...others] = folders
  if (first === undefined || others.includes(undefined))
    return notKnown<string>('the path is known only at run time')
  if (folders.some((folder) => isOutside(folder!)))
    return notKnown<string>(`it saves outside its working directory, to ${first.join('/')}`)
  const common = folders.reduce((left, right) => left!.slice(0, sharedLength(left!, right!)))!
  if (common.length === 0) return notKnown<string>('it saves next to its own files, not into a folder')
  return found(common.join('/'), {
    confidence: CERTAIN,
    evidence: saves.map(({ event }) => evidenceOf(event)),
  })
}

/** An absolute path, one of a home folder, one above the working directory, or an address such as `s3://bucket`. */
const isOutside = ([first, ...others]: readonly string[]): boolean =>
  first !== undefined && (['', '~', '..'].includes(first) || first.includes(':') || others.includes('..'))

/** Returns the names of a folder's path, as far as they are constant; `undefined` if nothing is known. */
function folderOf(save: Save, start: string): string[] | undefined {
  const { path, isFolder } = placeOfSave(save)
  const folders = (path === undefined ? [] : alternatives(path)).map((each) =>
    folderIn(pathText(each), { isFolder, start }),
  )
  return folders.length === 0 || folders.includes(undefined)
    ? undefined
    : folders.reduce((left, right) => left!.slice(0, sharedLength(left!, right!)))
}

function folderIn(
  text: string | undefined,
  { isFolder, start }: { isFolder: boolean; start: string },
): string[] | undefined {
  if (text === undefined) return undefined
  const names = text.split('/').filter((name, at) => name !== '.' && (name !== '' || at === 0))
  const folders = isFolder ? names : names.slice(0, -1)
  const open = folders.findIndex((name) => /[{}$]/.test(name) || name.includes('os.environ['))
  if (open === 0) return undefined
  const known = open === -1 ? folders : folders.slice(0, open)
  const isRelative = known[0] !== '' && known[0] !== '~' && known[0]?.includes(':') !== true
  return isRelative && start !== '' ? joined(start, known.join('/')).split('/').filter(Boolean) : known
}

function sharedLength(left: readonly string[], right: readonly string[]): number {
  const end = left.findIndex((name, at) => name !== right[at])
  return end === -1 ? left.length : end
}

export const placeOfSave = ({ event, path, place }: Save): Place => place ?? placeOf(event, path)

/** Returns the place at which a call of a library saves or loads; without a rule for the call, the place is `path`. */
export function placeOf(event: CallEvent, path: Value | undefined): Place {
  const { name, receiver } = event
  const last = lastPart(name)
  if (name.startsWith('torch.distributed.checkpoint.'))
    return { path: argument(event, 'checkpoint_id', 1), isFolder: true }
  if (last.startsWith('save_checkpoint') && name.startsWith('flax.'))
    return { path: argument(event, 'ckpt_dir', 0), isFolder: true }
  if (name.startsWith('tensorflow.train.Checkpoint()'))
    return { path: argument(event, 'file_prefix', 0), isFolder: false }
  if (name.startsWith('keras.') && last === 'ModelCheckpoint')
    return { path: argument(event, 'filepath', 0), isFolder: false }
  if (name.startsWith('keras.') && last === 'BackupAndRestore')
    return { path: argument(event, 'backup_dir', 0), isFolder: true }
  if (isFabricCall(event)) return { path: argument(event, 'path', 0), isFolder: false }
  if (name === 'safetensors.torch.save_model')
    return { path: argument(event, 'filename', 1), isFolder: false }
  if (isTrainingArguments(name)) return { path: argument(event, 'output_dir', 0), isFolder: true }
  const manager = constructionOf(receiver)
  if (manager?.name === 'timm.utils.CheckpointSaver')
    return { path: argument(manager, 'checkpoint_dir', 7), isFolder: true }
  if (manager !== undefined && manager.name.endsWith('CheckpointManager')) {
    const at = manager.name.startsWith('tensorflow.') ? 1 : 0
    return { path: argument(manager, 'directory', at), isFolder: true }
  }
  switch (last) {
    case 'save_state':
      return isAccelerator(event)
        ? { path: argument(event, 'output_dir', 0) ?? projectFolder(event), isFolder: true }
        : UNKNOWN_PLACE
    case 'save_checkpoint':
      return isDeepSpeedEngine(event)
        ? { path: argument(event, 'save_dir', 0), isFolder: true }
        : UNKNOWN_PLACE
    case 'save_pretrained':
      return { path: argument(event, 'save_directory', 0), isFolder: true }
    case 'save_weights':
      return { path: argument(event, 'filepath', 0), isFolder: false }
    case 'tree_serialise_leaves':
      return { path: argument(event, 'path_or_file', 0), isFolder: false }
    case 'save_model':
    case 'save_lora_weights':
    case 'save_lora_adapter':
      return UNKNOWN_PLACE
    default:
      return { path: isHuggingFaceTrainer(receiver) ? undefined : path, isFolder: false }
  }
}

/** The folder of an Accelerator that names its checkpoints itself. Source: https://huggingface.co/docs/accelerate/usage_guides/checkpoint */
function projectFolder({ receiver }: CallEvent): Value | undefined {
  const project = constructionOf(constructionOf(receiver)?.named.get('project_config'))
  const folder = project?.named.get('project_dir')
  if (folder === undefined || constantOf(project?.named.get('automatic_checkpoint_naming')) !== true)
    return undefined
  return joinedPath([folder, constant('checkpoints')])
}

/** A call of a Fabric object of Lightning. */
export const isFabricCall = ({ name, receiver, receiverText }: CallEvent): boolean =>
  nameOf(receiver).includes('Fabric') || (name.startsWith('?') && lastPart(receiverText) === 'fabric')

export const isAccelerator = ({ name, receiver, receiverText }: CallEvent): boolean =>
  nameOf(receiver).includes('Accelerator') ||
  (name.startsWith('?') && lastPart(receiverText) === 'accelerator')

export const isDeepSpeedEngine = ({ receiver, receiverText }: CallEvent): boolean =>
  nameOf(receiver).startsWith('deepspeed') || lastPart(receiverText).includes('engine')

/** Folder in which Lightning saves by default. */
const LIGHTNING_FOLDER = 'lightning_logs'
/** Loggers that keep the checkpoints in their own folder. */
const LOGGERS = ['TensorBoardLogger', 'CSVLogger']

/**
 * Where a Trainer of Lightning saves: in the folder of its callback, of its logger, or of its own default. Source:
 * https://lightning.ai/docs/pytorch/stable/api/lightning.pytorch.callbacks.ModelCheckpoint.html (`dirpath`)
 */
export function placeOfLightning(trainer: CallEvent, callback: CallEvent | undefined): Place {
  const folder = (path: Value | undefined): Place => ({ path, isFolder: true })
  const isGiven = (value: Value | undefined): value is Value =>
    value !== undefined && constantOf(value) !== null
  const dirpath = callback === undefined ? undefined : argument(callback, 'dirpath', 0)
  if (isGiven(dirpath)) return folder(dirpath)
  // Lightning before 1.0 takes a pattern of file names.
  const filepath = callback?.named.get('filepath')
  if (isGiven(filepath)) return { path: filepath, isFolder: false }
  // `Trainer(**settings)` may name anything.
  if ([trainer, callback].some((call) => call?.argumentTexts.some((text) => text.startsWith('*'))))
    return UNKNOWN_PLACE
  const configured = configuredFolder(trainer.named.get('callbacks'))
  if (configured !== undefined) return configured
  const logger = trainer.named.get('logger')
  const root = trainer.named.get('default_root_dir')
  const makes = constructionOf(logger)
  if (makes !== undefined && LOGGERS.includes(makes.method)) return folder(argument(makes, 'save_dir', 0))
  if (isGiven(logger) && typeof constantOf(logger) !== 'boolean') return UNKNOWN_PLACE
  if (isGiven(root)) return folder(root)
  return folder(constant(constantOf(logger) === false ? 'checkpoints' : LIGHTNING_FOLDER))
}

/** The variable of the shell with the path of the restored checkpoint. */
export const RESTORED = '$CRUCIBLE_RESUME_FROM'

/** The folder of a ModelCheckpoint in a configuration file; a callback that is not known may save anywhere. */
function configuredFolder(callbacks: Value | undefined): Place | undefined {
  const items = callbacks?.kind === 'list' ? callbacks.items : callbacks === undefined ? [] : [callbacks]
  for (const item of items) {
    if (item.kind === 'dict') {
      const path = setting(setting(item, 'init_args'), 'dirpath')
      if (path !== undefined && constantOf(path) !== null) return { path, isFolder: true }
    } else if (constructionOf(item) === undefined && item.kind !== 'instance' && constantOf(item) !== null)
      return UNKNOWN_PLACE
  }
  return undefined
}

/** The conditions on the way to a load, and to the call that reads its file. */
export const guardsOf = ({ event, source }: Load): readonly Guard[] => [
  ...event.guards,
  ...(source?.guards ?? []),
]

/** An option and its value for the shell; `undefined` if its value is not known. */
export function optionWords(facts: Facts, load: Load, option: Option): string | undefined {
  const text = spelled(option, guardsOf(load))
  if (text !== option.name) return text
  const initial = constantOf(option.default)
  if (option.isFlag) return initial === true ? undefined : flagWords(facts, option)
  const isPath = load.path?.options.has(option) === true && !isNumber(option)
  const isEmpty = initial === undefined || initial === null || initial === '' || initial === false
  if (isPath && isEmpty && option.type !== 'bool')
    return `${option.name}${isAssigned(facts, option) ? '=' : ' '}"${RESTORED}"`
  return initial === false ? flagWords(facts, option) : undefined
}

const isNumber = ({ name, type }: Option): boolean =>
  type === 'int' || type === 'float' || ['step', 'epoch', 'iter'].some((word) => name.includes(word))

/** Whether an option is given as `name=value`. */
const isAssigned = ({ run: { style } }: Facts, { name }: Option): boolean =>
  ['hydra', 'configurator', 'absl'].includes(style) || !name.startsWith('--')

/** `--resume`, or `resume=True` where the option has a value; `undefined` if that would be a text. */
function flagWords(facts: Facts, option: Option): string | undefined {
  if ((option.isFlag || option.standsAlone) && facts.run.style !== 'configurator') return option.name
  const isText = facts.run.style === 'argparse' && (option.type === undefined || option.type === 'str')
  return isText ? undefined : `${option.name}=True`
}
