import { readFileSync, readdirSync, statSync, type Dirent } from 'node:fs'
import { join } from 'node:path'

const SOURCE = /\.(?:py|sh|ya?ml|toml|json)$/
const LEFT_OUT = new Set(['.git', 'node_modules', '__pycache__', 'site-packages', '.venv', 'venv'])
const FILES_MAX = 300
const FILE_BYTES_MAX = 512 * 1024
/** Pattern for a number in a file name of source code: `%d`, `%06d`, `{step}`, `{step:04d}`, `0`. */
const NUMBER = String.raw`(?:\d+|%[0-9]*d|%s|\{[^{}]*\})`
const WRITES = /\bsave|\bdump|\bwrite|open\([^()]*,\s*(?:mode=)?['"][wax]/i

/**
 * The line of the job's code that names a file, such as `train.py:8`, found by its name in a string literal. `undefined` if none
 * or several match.
 */
export function lineThatNames(path: string, code: string): string | undefined {
  const name = path.split('/').at(-1)!
  const parts = name.split(/\d+/).map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`))
  // Names of digits only, or of one letter, would match anywhere.
  if (parts.join('').length < 3) return undefined
  const literal = new RegExp(String.raw`(?:['"/\s:=])${parts.join(NUMBER)}(?:['"\s]|$)`)
  const found = sourcesIn(code).flatMap(({ file, lines }) =>
    lines.flatMap((text, index) =>
      !isComment(text) && literal.test(text) ? [{ at: `${file}:${index + 1}`, text }] : [],
    ),
  )
  const writing = found.filter(({ text }) => WRITES.test(text))
  if (found.length === 1) return found[0]!.at
  return writing.length === 1 ? writing[0]!.at : undefined
}

/** A line that is prose: a comment, or the one-line docstring of a module or function. */
function isComment(text: string): boolean {
  return /^\s*(?:#|"""|''')/.test(text)
}

function sourcesIn(code: string): { file: string; lines: string[] }[] {
  const found: { file: string; lines: string[] }[] = []
  const waiting = ['']
  for (let at = waiting.shift(); at !== undefined && found.length < FILES_MAX; at = waiting.shift()) {
    for (const entry of entriesOf(join(code, at))) {
      const file = at === '' ? entry.name : `${at}/${entry.name}`
      if (entry.isDirectory() && !LEFT_OUT.has(entry.name)) waiting.push(file)
      if (entry.isFile() && SOURCE.test(entry.name)) {
        const text = textOf(join(code, file))
        if (text !== undefined) found.push({ file, lines: text.split('\n') })
      }
    }
  }
  return found
}

/** Empty if the folder does not exist. */
function entriesOf(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1))
  } catch {
    return []
  }
}

/** `undefined` for a file that is too large to be source, or unreadable. */
function textOf(path: string): string | undefined {
  try {
    return statSync(path).size > FILE_BYTES_MAX ? undefined : readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}
