/** Rules for the files to pack: ignore files, and files that are useless on another machine. */
import ignore from 'ignore'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { hasCode } from './file-errors'

const GIT_IGNORE = '.gitignore'
export const OWN_IGNORE = '.crucibleignore'

/** Version control: large, and may hold credentials. An ignore file cannot include these folders. */
const NEVER = new Set(['.git', '.hg', '.svn'])

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
  /** The folder, with a slash at its end; empty for the root. */
  folder: string
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

/** Returns the rules of a folder in the tree. */
export async function rulesOf(root: string, folder: string, outer: Rules): Promise<Rules> {
  const [git, own] = await Promise.all(
    [GIT_IGNORE, OWN_IGNORE].map((name) => readLinesOf(join(root, folder, name))),
  )
  const defaults = folder === '' ? DEFAULTS : []
  if (defaults.length === 0 && git!.length === 0 && own!.length === 0) return outer
  const rules = (lines: string[]): ignore.Ignore => ignore({ ignorecase: false }).add(lines)
  return [...outer, { folder, all: rules([...defaults, ...git!, ...own!]), own: rules(own!) }]
}

/** Whether a path is packed: the innermost ignore file that mentions it decides. Folders end in a slash. */
export function ruleOn(path: string, rules: Rules): Ruling {
  const name = path.replace(/\/$/, '').split('/').at(-1)!
  if (NEVER.has(name)) return { isPacked: false, inside: rules }
  for (let depth = rules.length - 1; depth >= 0; depth--) {
    const { folder, all } = rules[depth]!
    const { ignored, unignored } = all.test(path.slice(folder.length))
    if (ignored) return { isPacked: false, inside: rules }
    // Outer rules that exclude the folder itself must not exclude its content.
    if (unignored) return { isPacked: true, inside: rules.slice(depth) }
  }
  return { isPacked: true, inside: rules }
}

/** Returns true when a `!` line of a `.crucibleignore` names this exact path. */
export function isAskedFor(path: string, rules: Rules): boolean {
  return rules.some(({ folder, own }) => own.test(path.slice(folder.length)).unignored)
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
    if (hasCode(error, 'ENOENT', 'EISDIR')) return []
    throw error
  }
}
