import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { Header, Pax } from 'tar'
import { compareKeys } from './keys'

/** One entry of a tarball; paths are relative, with forward slashes. */
export type TarEntry =
  | { kind: 'folder'; path: string; modifiedAtMs: number }
  | { kind: 'link'; path: string; target: string }
  | {
      kind: 'file'
      path: string
      sizeBytes: number
      /** Its permissions: the lowest nine bits. */
      mode: number
      modifiedAtMs: number
      /** Another entry's path, if both are names of one file. */
      sameAs?: string
    }

/** A file of the tree was written to during packing. */
export class ChangedFileError extends Error {
  constructor(path: string) {
    super(`${path} changed while it was packed`)
    this.name = 'ChangedFileError'
  }
}

/** Zip archives, such as Python packages, cannot hold times before 1980, wherever the machine is. */
const EARLIEST_MS = Date.UTC(1980, 0, 2)
const BLOCK_BYTES = 512
/** Fastest compression level: code is small anyway, and large files rarely become much smaller. */
const GZIP_LEVEL = 1

/** A written tarball. */
export interface Tarball {
  /** Digest of its bytes. */
  sha256: string
  sizeBytes: number
  /**
   * Digest of what it holds: paths, contents, targets of links and executable bits. Another copy of the same files has the same one,
   * whatever their times, other permissions and hard links.
   */
  contentSha256: string
}

/**
 * Writes a gzipped tar of entries below `root`, without owners. Its files are in the order of their times: unpacked in that order, none
 * becomes older than a file that was made before it, even by a program that ignores the times of the entries.
 */
export async function writeTarball(
  root: string,
  entries: readonly TarEntry[],
  target: string,
): Promise<Tarball> {
  const hash = createHash('sha256')
  const digests = new Map<string, string>()
  let sizeBytes = 0
  await pipeline(
    Readable.from(blocksOf(root, inOrder(entries), digests)),
    createGzip({ level: GZIP_LEVEL }),
    async function* (source: AsyncIterable<Buffer>) {
      for await (const chunk of source) {
        hash.update(chunk)
        sizeBytes += chunk.length
        yield chunk
      }
    },
    createWriteStream(target, { flags: 'wx', mode: 0o600 }),
  )
  return { sha256: hash.digest('hex'), sizeBytes, contentSha256: contentDigest(entries, digests) }
}

/** Folders first; a file with several names follows the name that it refers to. */
function inOrder(entries: readonly TarEntry[]): TarEntry[] {
  const timeOf = (entry: TarEntry): number => {
    if (entry.kind === 'folder') return -Infinity
    return entry.kind === 'file' ? entry.modifiedAtMs : Infinity
  }
  const isSecondName = (entry: TarEntry): number =>
    entry.kind === 'file' && entry.sameAs !== undefined ? 1 : 0
  return [...entries].sort(
    (a, b) =>
      Math.sign(timeOf(a) - timeOf(b)) || isSecondName(a) - isSecondName(b) || compareKeys(a.path, b.path),
  )
}

function contentDigest(entries: readonly TarEntry[], digests: ReadonlyMap<string, string>): string {
  const hash = createHash('sha256')
  for (const entry of [...entries].sort((a, b) => compareKeys(a.path, b.path))) {
    const { kind, path } = entry
    if (kind === 'folder') hash.update(JSON.stringify([kind, path]))
    else if (kind === 'link') hash.update(JSON.stringify([kind, path, entry.target]))
    else hash.update(JSON.stringify([kind, path, isExecutable(entry), digests.get(entry.sameAs ?? path)]))
  }
  return hash.digest('hex')
}

/** Whether the owner of a file may execute it. */
export function isExecutable({ mode }: { mode: number }): boolean {
  return (mode & 0o100) !== 0
}

/** @param digests gets the digest of each file's content */
async function* blocksOf(
  root: string,
  entries: readonly TarEntry[],
  digests: Map<string, string>,
): AsyncGenerator<Buffer> {
  for (const entry of entries) {
    yield headerOf(entry)
    if (entry.kind !== 'file' || entry.sameAs !== undefined) continue
    const hash = createHash('sha256')
    let readBytes = 0
    for await (const chunk of createReadStream(join(root, entry.path)) as AsyncIterable<Buffer>) {
      readBytes += chunk.length
      if (readBytes > entry.sizeBytes) throw new ChangedFileError(entry.path)
      hash.update(chunk)
      yield chunk
    }
    if (readBytes < entry.sizeBytes) throw new ChangedFileError(entry.path)
    digests.set(entry.path, hash.digest('hex'))
    yield Buffer.alloc((BLOCK_BYTES - (readBytes % BLOCK_BYTES)) % BLOCK_BYTES)
  }
  yield Buffer.alloc(2 * BLOCK_BYTES)
}

type HeaderType = 'Directory' | 'SymbolicLink' | 'Link' | 'File'

function typeOf(entry: TarEntry): HeaderType {
  if (entry.kind === 'folder') return 'Directory'
  if (entry.kind === 'link') return 'SymbolicLink'
  return entry.sameAs === undefined ? 'File' : 'Link'
}

function linkPathOf(entry: TarEntry): string | undefined {
  if (entry.kind === 'link') return entry.target
  return entry.kind === 'file' ? entry.sameAs : undefined
}

function headerOf(entry: TarEntry): Buffer {
  const isFile = entry.kind === 'file'
  const modifiedAtMs = Math.max(EARLIEST_MS, entry.kind === 'link' ? EARLIEST_MS : entry.modifiedAtMs)
  const header = new Header({
    path: entry.kind === 'folder' ? `${entry.path}/` : entry.path,
    type: typeOf(entry),
    linkpath: linkPathOf(entry),
    size: isFile && entry.sameAs === undefined ? entry.sizeBytes : 0,
    // The owner can always change a copy.
    mode: isFile ? entry.mode | 0o600 : 0o755,
    mtime: new Date(modifiedAtMs),
    uid: 0,
    gid: 0,
    uname: '',
    gname: '',
    devmaj: 0,
    devmin: 0,
  })
  const block = Buffer.alloc(BLOCK_BYTES)
  const isTooLong = header.encode(block)
  // The header itself has whole seconds.
  const mtime = modifiedAtMs % 1000 === 0 ? undefined : new Date(modifiedAtMs)
  if (!isTooLong && mtime === undefined) return block
  const { path, linkpath, size } = header
  const pax = isTooLong ? { path: path!, linkpath: linkpath || undefined, size: size!, mtime } : { mtime }
  return Buffer.concat([new Pax(pax).encode(), block])
}
