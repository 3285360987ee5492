import { readdirSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { ProjectFiles } from '../../packages/analyzer/src/analyze'
import { formatBytes } from '../../core/resources'

/** A larger file is data, not a program. */
const SCRIPT_BYTES_MAX = 5 * 1024 * 1024
/** Notebooks contain pictures and other outputs too. */
const NOTEBOOK_BYTES_MAX = 256 * 1024 * 1024
/** A larger folder is looked through in part: the program is near its top. */
const ENTRIES_MAX = 5_000
const DEPTH_MAX = 8

/** Folders that hold other people's code. */
const FOREIGN = new Set(['node_modules', 'site-packages', '__pycache__', 'venv', 'env', 'build', 'dist'])

const ENDINGS = ['.py', '.ipynb', '.sh', '.yaml', '.yml', '.json', '.toml', '.txt', '.cfg']

/** The files below a folder, read when they are needed. */
export function projectFiles(root: string): ProjectFiles {
  const texts = new Map<string, string | undefined>()
  const problems = new Map<string, string>()
  let paths: string[] | undefined
  return {
    read: (path) => {
      if (!texts.has(path)) {
        const read = readScript(join(root, path))
        texts.set(path, 'text' in read ? read.text : undefined)
        if ('problem' in read) problems.set(path, read.problem)
      }
      return texts.get(path)
    },
    problemOf: (path) => problems.get(path),
    list: () => (paths ??= walk(root)),
  }
}

/** Returns a text, the reason why it cannot be read, or neither if the file does not exist. The problem completes "<file> ...". */
export function readScript(path: string): { text: string } | { problem: string } | Record<never, never> {
  try {
    const found = statSync(path)
    if (!found.isFile()) return {}
    const { size } = found
    const most = path.endsWith('.ipynb') ? NOTEBOOK_BYTES_MAX : SCRIPT_BYTES_MAX
    if (size > most)
      return { problem: `is ${formatBytes(size)}, and no script is larger than ${formatBytes(most)}` }
    return textOf(readFileSync(path), path.endsWith('.py'))
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') return {}
    if (code === 'ELOOP') return { problem: 'is a symbolic link that leads back to itself' }
    if (code === 'EACCES') return { problem: 'cannot be read: permission denied' }
    return { problem: `cannot be read (${code ?? String(error)})` }
  }
}

/** Decodes a program and keeps its byte order mark, because a diff has to repeat its first line unchanged. */
function textOf(bytes: Buffer, ignoreBOM: boolean): { text: string } | { problem: string } {
  if (bytes.includes(0)) return { problem: 'is a binary file' }
  try {
    return { text: new TextDecoder('utf-8', { fatal: true, ignoreBOM }).decode(bytes) }
  } catch {
    return { problem: 'is not UTF-8 text; save it as UTF-8' }
  }
}

/** Links to folders are not followed, so that a walk ends. */
function walk(root: string): string[] {
  const found: string[] = []
  const visit = (folder: string, depth: number): void => {
    if (depth > DEPTH_MAX) return
    for (const entry of entriesOf(join(root, folder))) {
      if (found.length >= ENTRIES_MAX) return
      if (entry.name.startsWith('.') || FOREIGN.has(entry.name)) continue
      const path = folder === '' ? entry.name : `${folder}/${entry.name}`
      if (entry.isDirectory()) visit(path, depth + 1)
      else if (ENDINGS.some((ending) => entry.name.endsWith(ending))) found.push(path)
    }
  }
  visit('', 0)
  return found.sort()
}

function entriesOf(folder: string): { name: string; isDirectory(): boolean }[] {
  try {
    return readdirSync(realpathSync(folder), { withFileTypes: true })
  } catch {
    return []
  }
}
