/** Files that a job's programs open and that an ignore rule leaves out: a search in texts, which misses some rather than naming wrong ones. */
import { lstat, readFile } from 'node:fs/promises'
import { join, posix } from 'node:path'
import type { JobSpec } from '../../core/job/job'
import type { Tree } from '../../storage/bundle-tree'
import { OWN_IGNORE } from '../../storage/bundle-rules'
import { SOURCE_BYTES_MAX, SOURCE_ENDINGS, SOURCES_MAX } from './sources'

/** Limit on the paths that are looked up. */
const PATHS_MAX = 2_000
const NAMED_MAX = 5

/** A path that a text names. */
interface Mention {
  /** The path in the form in which the text has it. */
  path: string
  /** Whether the text shows that the path is written, or may be. */
  isWritten: boolean
  line: number
}

/** Returns a warning for each path that is named by a sent file or by a command, exists here, and is not sent. */
export async function leftOutWarnings(
  { run, setup = '', checkpoint, inputs, outputs }: JobSpec,
  { root, entries }: { root: string; entries: Tree['entries'] },
): Promise<string[]> {
  const sent = new Set(entries.map(({ path }) => path))
  const own = [checkpoint.directory ?? '', ...inputs.map(({ path }) => path), ...outputs].filter(Boolean)
  const links = entries.filter(({ kind }) => kind === 'link').map(({ path }) => path)
  // The target of a link is looked for under its own path.
  const isOwn = (path: string): boolean =>
    [...own, ...links].some((one) => path === one || path.startsWith(`${one}/`))
  const named = new Map<string, string>()
  const written = new Set<string>()
  const note = (mention: Mention, { by, folders }: { by: string; folders: readonly string[] }): void => {
    for (const folder of folders) {
      const path = posix.join(folder, mention.path).replace(/\/$/, '')
      if (path.startsWith('..') || path === '.' || sent.has(path) || isOwn(path)) continue
      if (mention.isWritten) written.add(path)
      else if (!named.has(path) && named.size < PATHS_MAX)
        named.set(path, `${by}${mention.line === 0 ? '' : `:${mention.line}`}`)
    }
  }
  for (const mention of wordsOf(`${setup}\n${run}`))
    note({ ...mention, line: 0 }, { by: 'The command', folders: ['.'] })
  const sources = entries.filter(
    (entry) =>
      entry.kind === 'file' &&
      SOURCE_ENDINGS.has(posix.extname(entry.path).toLowerCase()) &&
      entry.sizeBytes <= SOURCE_BYTES_MAX,
  )
  for (const { path } of sources.slice(0, SOURCES_MAX)) {
    const text = await readFile(join(root, path), 'utf8').catch(() => '')
    const folders = [...new Set(['.', posix.dirname(path)])]
    const mentions = path.endsWith('.py') || path.endsWith('.ipynb') ? literalsOf(text) : wordsOf(text)
    for (const mention of mentions) note(mention, { by: path, folders })
  }
  const warnings: string[] = []
  for (const [path, by] of named) {
    if (written.has(path) || warnings.length >= NAMED_MAX || !(await exists(join(root, path)))) continue
    warnings.push(
      `${by} names ${path}, which an ignore rule leaves out, so the machine will not have it. If the program reads it, add the line !/${topOf(path, sent)} to ${OWN_IGNORE}, or make it an input.`,
    )
  }
  return warnings
}

async function exists(path: string): Promise<boolean> {
  return lstat(path).then(
    () => true,
    () => false,
  )
}

/** The outermost part of a path that is not sent: a rule that names a folder hides its content. */
function topOf(path: string, sent: ReadonlySet<string>): string {
  const parts = path.split('/')
  const depth = parts.findIndex((_, index) => !sent.has(parts.slice(0, index + 1).join('/')))
  return depth < parts.length - 1 ? `${parts.slice(0, depth + 1).join('/')}/` : path
}

/** Longer lines are data. */
const LINE_CHARS_MAX = 1_000
const PATH = String.raw`[\w@+.-][\w@+./ -]*`
/** Texts that show what follows to be written. */
const WRITES =
  /\b(?:save\w*|dump\w*|to_[a-z]+|makedirs|mkdir|write\w*|export\w*|imwrite|FileHandler|SummaryWriter)\b/i
const WRITTEN_NAME =
  /(?:^|[^a-z])(?:out(?:put)?s?|save[ds]?|logs?|logging|ckpts?|checkpoints?|results?|cache|tmp|to)(?:[^a-z]|$)/i
const OPENS = /\b(?:open|listdir|walk|scandir|load\w*|read\w*|glob|Path|ImageFolder)\(\s*$/

/** Quoted paths of a Python program. */
function literalsOf(text: string): Mention[] {
  const isWrittenName = memoized((name) => isNameWritten(text, name))
  return text.split('\n').flatMap((line, index) => {
    if (line.trimStart().startsWith('#') || line.length > LINE_CHARS_MAX) return []
    return [...line.matchAll(new RegExp(`\\\\?(["'])(${PATH})\\\\?\\1`, 'g'))].flatMap((match): Mention[] => {
      const [whole, , path = ''] = match
      const before = line.slice(0, match.index)
      const after = line.slice(match.index + whole.length)
      if (!isPathLike(path) && !OPENS.test(before)) return []
      return [{ path, isWritten: isWrittenIn({ before, after }, isWrittenName), line: index + 1 }]
    })
  })
}

function memoized(ask: (name: string) => boolean): (name: string) => boolean {
  const known = new Map<string, boolean>()
  return (name) => {
    const answer = known.get(name) ?? ask(name)
    known.set(name, answer)
    return answer
  }
}

function isWrittenIn(
  { before, after }: { before: string; after: string },
  isWrittenName: (name: string) => boolean,
): boolean {
  if (/^\s*,\s*(?:mode\s*=\s*)?\\?["'][rbt+]*[wax]/.test(after)) return true
  if (WRITES.test(before) || WRITTEN_NAME.test(before)) return true
  const name = /(?<!\w)(\w+)\s*=\s*(?:Path\(\s*)?$/.exec(before)?.[1]
  return name !== undefined && isWrittenName(name)
}

/** Whether a program writes to what a variable names. */
function isNameWritten(text: string, name: string): boolean {
  const lines = text.split('\n').filter((line) => line.length <= LINE_CHARS_MAX && line.includes(name))
  const uses = [
    `${WRITES.source}\\([^\\n]*\\b${name}\\b`,
    `\\bopen\\([^\\n]*\\b${name}\\b[^\\n]*["'][rbt+]*[wax]`,
  ]
  return uses.some((use) => lines.some((line) => new RegExp(use, 'i').test(line)))
}

/** Words of a shell command or a configuration that are paths. */
function wordsOf(text: string): Mention[] {
  return text.split('\n').flatMap((line, index) => {
    if (line.trimStart().startsWith('#') || line.length > LINE_CHARS_MAX) return []
    const words = line.split(/[\s"'=:,;|&()[\]{}]+/)
    return words.flatMap((path, at): Mention[] => {
      if (!isPathLike(path) || !new RegExp(`^${PATH}$`).test(path)) return []
      const before = `${words[at - 1] ?? ''} ${words[at - 2] ?? ''}`
      return [{ path, isWritten: /[<>]/.test(before) || WRITTEN_NAME.test(before), line: index + 1 }]
    })
  })
}

/** Whether a text can only be a path: it has a folder, or the ending of a file. */
function isPathLike(text: string): boolean {
  return text.length <= 200 && /^[^/].*(?:\/|\.[A-Za-z]\w{0,11}$)/.test(text) && !text.includes('//')
}
