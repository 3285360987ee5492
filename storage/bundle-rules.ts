/** Which files of a folder are packed: ignore files, and what is never of use on another machine. */
import ignore from 'ignore'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { hasCode } from './file-errors'

const GIT_IGNORE = '.gitignore'
export const OWN_IGNORE = '.crucibleignore'

/** Version control: large, and may hold credentials. Not to be asked for. */
const NEVER = new Set(['.git', '.hg', '.svn'])

/** Made anew wherever they are needed; a `!` line can ask for them. */
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

/** The ignore files of one folder; paths are matched as seen from it. */
interface Level {
  /** The folder, with a slash at its end; empty for the outermost. */
  folder: string
  all: ignore.Ignore
  own: ignore.Ignore
}

/** What holds in a folder: its own ignore files and those of the folders around it, innermost last. */
export type Rules = readonly Level[]

/** What the rules say of a path. */
export interface Ruling {
  isPacked: boolean
  /** What holds inside, for a folder. */
  inside: Rules
}

/** The rules that hold in a folder of the tree. */
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
    // Outer rules that leave out the folder itself must not leave out what is in it.
    if (unignored) return { isPacked: true, inside: rules.slice(depth) }
  }
  return { isPacked: true, inside: rules }
}

/** True when a `!` line of a `.crucibleignore` asks for this very path. */
export function isAskedFor(path: string, rules: Rules): boolean {
  return rules.some(({ folder, own }) => own.test(path.slice(folder.length)).unignored)
}

/** True for a virtual environment, which works only where it was made. */
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
