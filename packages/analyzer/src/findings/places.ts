/** Where the program saves, and the options that make it continue from there. */
import { openedPath } from '../files'
import { argument, evidenceOf, isHuggingFaceTrainer, lastPart, spelled, type Facts } from '../facts'
import { CERTAIN, found, notKnown, type Findings } from '../report'
import { constantOf, constructionOf, textOf, type CallEvent, type Option, type Value } from '../values'
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
export function namesPlace({ event, path }: Save, option: Option): boolean {
  const place = placeOf(event, path).path
  const value = textOf(option.given ?? option.default)
  return (
    place?.options.has(option) === true && value !== undefined && pathText(place)?.startsWith(value) === true
  )
}

interface Place {
  path: Value | undefined
  /** Whether the path is that of a folder, not of a file in it. */
  isFolder: boolean
}

/** The folder that holds everything that is saved while training. */
export function findDirectory(saves: readonly Save[]): Findings['checkpointDirectory'] {
  if (saves.length === 0) return notKnown<string>('nothing is saved while it trains')
  const folders = saves.map(folderOf)
  const [first, ...others] = folders
  if (first === undefined || others.includes(undefined))
    return notKnown<string>('the path is known only at run time')
  if (folders.some((folder) => folder![0] === '' || folder![0] === '..'))
    return notKnown<string>(`it saves outside its working directory, to ${first.join('/')}`)
  const common = folders.reduce((left, right) => left!.slice(0, sharedLength(left!, right!)))!
  if (common.length === 0) return notKnown<string>('it saves next to its own files, not into a folder')
  return found(common.join('/'), {
    confidence: CERTAIN,
    evidence: saves.map(({ event }) => evidenceOf(event)),
  })
}

/** Returns the names of a folder's path, as far as they are constant; `undefined` if nothing is known. */
function folderOf({ event, path }: Save): string[] | undefined {
  const place = placeOf(event, path)
  const text = pathText(place.path)
  if (text === undefined) return undefined
  const names = text.split('/').filter((name, at) => name !== '.' && (name !== '' || at === 0))
  const folders = place.isFolder ? names : names.slice(0, -1)
  const open = folders.findIndex((name) => name.includes('{') || name.includes('os.environ['))
  if (open === 0) return undefined
  return open === -1 ? folders : folders.slice(0, open)
}

function sharedLength(left: readonly string[], right: readonly string[]): number {
  const end = left.findIndex((name, at) => name !== right[at])
  return end === -1 ? left.length : end
}

/** Arguments that name the place, by the last part of the call's name. */
const PLACES: Readonly<Record<string, { name: string; at: number; isFolder: boolean }>> = {
  save_state: { name: 'output_dir', at: 0, isFolder: true },
  save_checkpoint: { name: 'save_dir', at: 0, isFolder: true },
  save_pretrained: { name: 'save_directory', at: 0, isFolder: true },
  save_weights: { name: 'filepath', at: 0, isFolder: false },
  BackupAndRestore: { name: 'backup_dir', at: 0, isFolder: true },
  TrainingArguments: { name: 'output_dir', at: 0, isFolder: true },
  tree_serialise_leaves: { name: 'path_or_file', at: 0, isFolder: false },
}

export function placeOf(event: CallEvent, path: Value | undefined): Place {
  const { name, receiver } = event
  const last = lastPart(name)
  if (name.startsWith('torch.distributed.checkpoint.'))
    return { path: argument(event, 'checkpoint_id', 1), isFolder: true }
  if (last === 'save_checkpoint' && name.startsWith('flax.'))
    return { path: argument(event, 'ckpt_dir', 0), isFolder: true }
  if (last === 'ModelCheckpoint' && name.startsWith('keras.'))
    return { path: argument(event, 'filepath', 0), isFolder: false }
  if (name.startsWith('lightning.')) return placeOfLightning(event)
  const manager = constructionOf(receiver)
  if (manager !== undefined && manager.name.endsWith('CheckpointManager')) {
    const at = manager.name.startsWith('tensorflow.') ? 1 : 0
    return { path: argument(manager, 'directory', at), isFolder: true }
  }
  const known = PLACES[last]
  if (known !== undefined) return { path: argument(event, known.name, known.at), isFolder: known.isFolder }
  return { path: isHuggingFaceTrainer(receiver) ? undefined : path, isFolder: false }
}

/** Folder in which Lightning saves by default. */
const LIGHTNING_FOLDER = 'lightning_logs'

function placeOfLightning({ named }: CallEvent): Place {
  const given = named.get('dirpath') ?? named.get('default_root_dir')
  if (given !== undefined && constantOf(given) !== null) return { path: given, isFolder: true }
  const isOwn = !named.has('logger') && !named.has('dirpath')
  return {
    path: isOwn ? { kind: 'constant', value: LIGHTNING_FOLDER, options: new Set(), origins: [] } : undefined,
    isFolder: true,
  }
}

/** An option and its value for the shell; `undefined` if its value is not known. */
export function optionWords(facts: Facts, load: Load, option: Option): string | undefined {
  const text = spelled(option, load.event.guards)
  if (text !== option.name) return text
  const initial = constantOf(option.default)
  if (typeof initial === 'boolean') return initial ? undefined : flagWords(facts, option)
  const isPath = load.path?.options.has(option) === true && !isNumber(option)
  if (!isPath || (typeof initial === 'string' && initial !== '')) return undefined
  const { style } = facts.run
  const isAssigned = ['hydra', 'configurator', 'absl'].includes(style) || !option.name.startsWith('--')
  return `${option.name}${isAssigned ? '=' : ' '}"$CRUCIBLE_RESUME_FROM"`
}

const isNumber = ({ name, type }: Option): boolean =>
  type === 'int' || type === 'float' || ['step', 'epoch', 'iter'].some((word) => name.includes(word))

/** `--resume`, or `resume=true` where options are keys. */
function flagWords({ run }: Facts, { name }: Option): string {
  return run.style === 'hydra' || run.style === 'configurator' ? `${name}=True` : name
}
