import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { Header, Pax } from 'tar'

/** One entry of a tarball; paths are relative, with forward slashes. */
export type TarEntry =
  | { kind: 'folder'; path: string }
  | { kind: 'link'; path: string; target: string }
  | { kind: 'file'; path: string; sizeBytes: number; isExecutable: boolean }

/** A file of the tree was written to during packing. */
export class ChangedFileError extends Error {
  constructor(path: string) {
    super(`${path} changed while it was packed`)
    this.name = 'ChangedFileError'
  }
}

/** The common time of all entries: zip archives, such as Python packages, cannot hold times before 1980. */
const ENTRY_TIME = new Date(Date.UTC(2000, 0, 1))
const BLOCK_BYTES = 512
/** Fastest compression level: code is small anyway, and large files rarely become much smaller. */
const GZIP_LEVEL = 1

/**
 * Writes a gzipped tar of entries below `root`. The bytes depend only on the entries and their content: no times or owners, and of the
 * modes only the executable bit. Returns its digest and size.
 */
export async function writeTarball(
  root: string,
  entries: readonly TarEntry[],
  target: string,
): Promise<{ sha256: string; sizeBytes: number }> {
  const hash = createHash('sha256')
  let sizeBytes = 0
  await pipeline(
    Readable.from(blocksOf(root, entries)),
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
  return { sha256: hash.digest('hex'), sizeBytes }
}

async function* blocksOf(root: string, entries: readonly TarEntry[]): AsyncGenerator<Buffer> {
  for (const entry of entries) {
    yield headerOf(entry)
    if (entry.kind !== 'file') continue
    let readBytes = 0
    for await (const chunk of createReadStream(join(root, entry.path)) as AsyncIterable<Buffer>) {
      readBytes += chunk.length
      if (readBytes > entry.sizeBytes) throw new ChangedFileError(entry.path)
      yield chunk
    }
    if (readBytes < entry.sizeBytes) throw new ChangedFileError(entry.path)
    yield Buffer.alloc((BLOCK_BYTES - (readBytes % BLOCK_BYTES)) % BLOCK_BYTES)
  }
  yield Buffer.alloc(2 * BLOCK_BYTES)
}

function headerOf(entry: TarEntry): Buffer {
  const header = new Header({
    path: entry.kind === 'folder' ? `${entry.path}/` : entry.path,
    type: entry.kind === 'folder' ? 'Directory' : entry.kind === 'link' ? 'SymbolicLink' : 'File',
    linkpath: entry.kind === 'link' ? entry.target : undefined,
    size: entry.kind === 'file' ? entry.sizeBytes : 0,
    mode: entry.kind === 'folder' || (entry.kind === 'file' && entry.isExecutable) ? 0o755 : 0o644,
    mtime: ENTRY_TIME,
    uid: 0,
    gid: 0,
    uname: '',
    gname: '',
    devmaj: 0,
    devmin: 0,
  })
  const block = Buffer.alloc(BLOCK_BYTES)
  const isTooLong = header.encode(block)
  if (!isTooLong) return block
  const { path, linkpath, size } = header
  return Buffer.concat([
    new Pax({ path: path!, linkpath: linkpath || undefined, size: size! }).encode(),
    block,
  ])
}
