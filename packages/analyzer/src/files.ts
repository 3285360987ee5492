/** Files that a program reads: configurations whose contents are known, and paths. */
import type { Frame, Interpreter } from './interpreter'
import { folderOf } from './project'
import { constant, taintOf, textOf, type Value } from './values'

/** Functions that give the contents of a configuration file. */
export const CONFIGURATION_READERS: ReadonlySet<string> = new Set([
  'yaml.safe_load',
  'yaml.load',
  'yaml.full_load',
  'omegaconf.OmegaConf.load',
  ...['json', 'tomllib', 'tomli', 'toml'].flatMap((library) => [`${library}.load`, `${library}.loads`]),
])

/** A configuration file that is opened with a constant name. */
export function loaded(run: Interpreter, value: Value | undefined, frame: Frame): Value | undefined {
  if (value === undefined) return undefined
  const path = textOf(openedPath(value))
  if (path === undefined) return undefined
  const data = run.project.data(path, frame.scope.file.path)
  if (data === undefined) return undefined
  return { ...data, ...taintOf(data, { options: value.options, origins: [] }) }
}

/** The path of a file that is opened or read; of any other value, itself. */
export function openedPath(value: Value | undefined): Value | undefined {
  if (value?.kind !== 'made' || !OPENING.has(value.call.method)) return value
  const { name, method, positional, receiver } = value.call
  return method === 'read' ? openedPath(receiver) : name === 'open' ? positional[0] : receiver
}

const OPENING = new Set(['open', 'read', 'read_text', 'read_bytes'])

/** The folder of a path. */
export function parentOf(path: Value | undefined): Value | undefined {
  const text = textOf(path)
  if (text === undefined) return undefined
  const isUp = text === '' || text === '.' || text.endsWith('..')
  return constant(isUp ? `${text === '' ? '.' : text}/..` : folderOf(text), path)
}
