/** Rules for the files to pack: ignore files, and files that are useless on another machine. */
import ignore from 'ignore'
import { readFile } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'
import { hasCode } from './file-errors'
import { GIT_FOLDER, repositoryOf } from './git/files'

const GIT_IGNORE = '.gitignore'
export const OWN_IGNORE = '.crucibleignore'
/** Rules of one copy of a repository, which are not in its files. */
const GIT_EXCLUDE = 'info/exclude'

/** Version control: large, and may hold credentials. An ignore file cannot include these folders. */
const NEVER = new Set([GIT_FOLDER, '.hg', '.svn'])

/** Regenerated wherever they are needed; a `!` line can include them. */
const DEFAULTS = [
  '__pycache__/',
  '*.pyc',
  'node_modules/',
  '.ipynb_checkpoints/',
  '.pytest_cache/',
  '.mypy_cache/',
  '.ruff_cache/',
  '.DS_Store',
]

/** Marks a folder as a Python virtual environment (PEP 405). */
const VENV_MARK = 'pyvenv.cfg'

/** The ignore files of one folder; paths are matched relative to it. */
interface Level {
  /** The folder, with a slash at its end; empty for the root and for folders above it. */
  folder: string
  /** For a folder above the root: the way from it to the root, with a slash at its end. */
  down: string
  all: ignore.Ignore
  own: ignore.Ignore
}

/** The rules of a folder: its own ignore files and those of its parents, innermost last. */
export type Rules = readonly Level[]

/** The decision of the rules on a path. */
export interface Ruling {
  isPacked: boolean
  /** The rules inside, for a folder. */
  inside: Rules
}

/** Returns the rules from above a root: from the ignore files of its parents up to that of its repository; none outside one. */
export async function rulesAbove(root: string): Promise<Rules> {
  const top = await repositoryOf(root)
  if (top === undefined || top === root) return top === undefined ? [] : excludeLevel(top, '')
  const names = relative(top, root).split(sep)
  let above = await excludeLevel(top, `${names.join('/')}/`)
  for (const depth of names.keys()) {
    const folder = join(top, ...names.slice(0, depth))
    above = await withLevel(above, folder, { folder: '', down: `${names.slice(depth).join('/')}/`, more: [] })
  }
  // Rules that name the root itself were not written for somebody who sends it.
  return ruleOn('', above).isPacked ? above : []
}

async function excludeLevel(top: string, down: string): Promise<Rules> {
  const lines = await readLinesOf(join(top, GIT_FOLDER, GIT_EXCLUDE))
  return lines.length === 0 ? [] : [{ folder: '', down, all: rules(lines), own: rules([]) }]
}

/** Returns the rules of a folder in the tree. */
export async function rulesOf(root: string, folder: string, outer: Rules): Promise<Rules> {
  return withLevel(outer, join(root, folder), { folder, down: '', more: folder === '' ? DEFAULTS : [] })
}

async function withLevel(
  outer: Rules,
  path: string,
  { folder, down, more }: { folder: string; down: string; more: readonly string[] },
): Promise<Rules> {
  const [git, own] = await Promise.all([GIT_IGNORE, OWN_IGNORE].map((name) => readLinesOf(join(path, name))))
  if (more.length === 0 && git!.length === 0 && own!.length === 0) return outer
  return [...outer, { folder, down, all: rules([...more, ...git!, ...own!]), own: rules(own!) }]
}

const rules = (lines: readonly string[]): ignore.Ignore => ignore({ ignorecase: false }).add([...lines])

/** A path of the tree as the ignore files of a level see it. */
function seenFrom({ folder, down }: Level, path: string): string {
  return `${down}${path.slice(folder.length)}`
}

/** Whether a path may never be packed. */
export function isNeverPacked(path: string): boolean {
  return NEVER.has(path.replace(/\/$/, '').split('/').at(-1)!)
}

/** Whether a path is packed: the innermost ignore file that mentions it decides. Folders end in a slash. */
export function ruleOn(path: string, of: Rules): Ruling {
  if (isNeverPacked(path)) return { isPacked: false, inside: of }
  for (let depth = of.length - 1; depth >= 0; depth--) {
    const level = of[depth]!
    const { ignored, unignored } = level.all.test(seenFrom(level, path))
    if (ignored) return { isPacked: false, inside: of }
    // Outer rules that exclude the folder itself must not exclude its content.
    if (unignored) return { isPacked: true, inside: of.slice(depth) }
  }
  return { isPacked: true, inside: of }
}

/** The decision of the `.crucibleignore` files on a path, the innermost one first; `undefined` if none mentions it. */
export function ownRulingOn(path: string, of: Rules): 'packed' | 'left out' | undefined {
  for (const level of of.toReversed()) {
    const { ignored, unignored } = level.own.test(seenFrom(level, path))
    if (ignored) return 'left out'
    if (unignored) return 'packed'
  }
  return undefined
}

const BY_DEFAULT = rules(DEFAULTS)

/** Whether a path is left out because it is useless elsewhere, unless an ignore file asks for it. */
export function isLeftOutByDefault(path: string, of: Rules): boolean {
  return BY_DEFAULT.ignores(path) && !ruleOn(path, of).isPacked
}

/** Returns true when a `!` line of a `.crucibleignore` names this exact path. */
export function isAskedFor(path: string, of: Rules): boolean {
  return of.some((level) => level.own.test(seenFrom(level, path)).unignored)
}

/** Returns true for a virtual environment, which works only where it was created. */
export function isEnvironment(names: readonly string[]): boolean {
  return names.includes(VENV_MARK)
}

async function readLinesOf(path: string): Promise<string[]> {
  try {
    const text = await readFile(path, 'utf8')
    return text.replace(/^\uFEFF/, '').split(/\r?\n/)
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'EISDIR', 'ENOTDIR')) return []
    throw error
  }
}
