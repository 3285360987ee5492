import { closeSync, lstatSync, openSync, readdirSync, readlinkSync, readSync, statSync } from 'node:fs'
import { join, relative } from 'node:path'
import { RECORD } from './folder'

/** Limit on the entries of a directory and on the bytes of a file that are read: paths are at the start of large files, if at all. */
const ENTRIES_MAX = 20_000
const BYTES_MAX = 32 * 1024 * 1024
const PATH_BYTES_MAX = 4_096
/** Pickle opcodes of a text with a length of one byte, and of four. */
const SHORT_TEXT = 0x8c
const TEXT = 0x58

/** An absolute path that a file in the checkpoint directory contains. */
export interface NamedPath {
  /** The file, relative to the checkpoint directory. */
  file: string
  path: string
  /** The path relative to the directory of the job or attempt, which makes it comparable between jobs. */
  inner: string
  /** Whether it exists on the machine of this attempt. */
  exists: boolean
}

/** The content of the checkpoint directory when a program ended. */
export interface Kept {
  /** Files, links and empty folders, relative to the directory; without records. */
  paths: string[]
  /** Paths of the job's directories in texts, JSON, pickles and other files without compression, and in links. */
  named: NamedPath[]
}

/** Reads the checkpoint directory of an attempt. `roots` are its directories of the job; `jobId` is part of the names of others. */
export function readKept(checkpoints: string, { roots, jobId }: { roots: string[]; jobId: string }): Kept {
  const paths: string[] = []
  const named: NamedPath[] = []
  const waiting = [checkpoints]
  for (let at = waiting.pop(); at !== undefined && paths.length < ENTRIES_MAX; at = waiting.pop()) {
    const names = namesIn(at)
    if (names.length === 0 && at !== checkpoints) paths.push(relative(checkpoints, at))
    for (const name of names) {
      const path = join(at, name)
      const shown = relative(checkpoints, path)
      const status = lstatSync(path, { throwIfNoEntry: false })
      if (status === undefined || RECORD.test(shown)) continue
      if (status.isDirectory()) {
        waiting.push(path)
        continue
      }
      paths.push(shown)
      const content = status.isSymbolicLink()
        ? Buffer.from(readlinkSync(path))
        : status.isFile()
          ? readStart(path)
          : undefined
      if (content !== undefined) named.push(...namedIn(content, { file: shown, roots, jobId }))
    }
  }
  return { paths: paths.sort(), named }
}

/** Returns every path below one of the roots, or below a directory named for an attempt of the job. */
function namedIn(
  content: Buffer,
  { file, roots, jobId }: { file: string; roots: string[]; jobId: string },
): NamedPath[] {
  const found = new Map<string, NamedPath>()
  for (const root of roots) {
    for (const start of positionsOf(content, `${root}/`)) {
      const path = pathAt(content, start)
      found.set(path, { file, path, inner: path.slice(root.length + 1), exists: doesExist(path) })
    }
  }
  for (const inside of positionsOf(content, `/${jobId}-`)) {
    const path = pathAt(content, startOf(content, inside))
    const [, inner] = new RegExp(`/${jobId}-\\d+/(.*)$`, 's').exec(path) ?? []
    if (inner !== undefined && path.startsWith('/') && !found.has(path))
      found.set(path, { file, path, inner, exists: doesExist(path) })
  }
  return [...found.values()]
}

function positionsOf(content: Buffer, text: string): number[] {
  const found: number[] = []
  for (let at = content.indexOf(text); at >= 0; at = content.indexOf(text, at + 1)) found.push(at)
  return found
}

/** Bytes that end a path in a text: control characters, quotes and separators. */
function endsPath(byte: number | undefined): boolean {
  return byte === undefined || byte < 0x20 || byte === 0x7f || '"\'`<>|,;'.includes(String.fromCharCode(byte))
}

function startOf(content: Buffer, inside: number): number {
  let start = inside
  while (start > 0 && inside - start < PATH_BYTES_MAX && !endsPath(content[start - 1])) start -= 1
  // A text before the path, such as `model at /jobs/...`, is not part of it.
  const first = content.subarray(start, inside + 1).lastIndexOf(' /')
  return first < 0 ? start : start + first + 1
}

/** Returns the path that begins there: as long as a pickle says, otherwise up to the next byte that ends one. */
function pathAt(content: Buffer, start: number): string {
  const told =
    content[start - 2] === SHORT_TEXT
      ? content[start - 1]!
      : start >= 5 && content[start - 5] === TEXT
        ? content.readUInt32LE(start - 4)
        : 0
  let end = start + told
  if (told === 0 || told > PATH_BYTES_MAX || end > content.length) {
    end = start
    while (!endsPath(content[end]) && end - start < PATH_BYTES_MAX) end += 1
  }
  return content.toString('utf8', start, end).trimEnd()
}

function doesExist(path: string): boolean {
  try {
    statSync(path)
    return true
  } catch {
    return false
  }
}

function readStart(path: string): Buffer | undefined {
  let file: number | undefined
  try {
    file = openSync(path, 'r')
    const { size } = statSync(path)
    const content = Buffer.alloc(Math.min(size, BYTES_MAX))
    return content.subarray(0, readSync(file, content, 0, content.length, 0))
  } catch {
    return undefined // Removed meanwhile, or not readable here.
  } finally {
    if (file !== undefined) closeSync(file)
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}
