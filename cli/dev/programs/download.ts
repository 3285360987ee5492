import { createHash } from 'node:crypto'
import { createWriteStream, existsSync } from 'node:fs'
import { chmod, mkdtemp, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { extract } from 'tar'
import { limitedTo } from '../../../backends/calls'
import type { Progress } from '../temporal/progress'
import type { Release } from './program'

/** A connection without data for this long is dead; a very slow one is given up after the total limit. */
const STALL_MS = 30_000
const WHOLE_MS = 20 * 60_000

export interface DownloadOptions {
  /** The name of the download, for people. */
  title: string
  progress: Progress
  signal?: AbortSignal | undefined
  /** Longest time without data. */
  stallMs?: number
}

/**
 * Downloads a release, checks its digest, and puts its executable at `path`. Throws if any step fails, and leaves nothing behind.
 */
export async function downloadRelease(
  release: Release,
  path: string,
  options: DownloadOptions,
): Promise<void> {
  const directory = await mkdtemp(join(dirname(path), 'download-'))
  try {
    const archive = join(directory, 'archive.tar.gz')
    const sha256 = await fetchTo(archive, release.url, options)
    if (sha256 !== release.sha256) {
      throw new Error(
        `${release.url} has SHA-256 ${sha256}, but ${release.sha256} was expected; it was not installed`,
      )
    }
    await extract({ file: archive, cwd: directory, filter: (name) => name === release.file, strict: true })
    const executable = join(directory, release.file)
    if (!existsSync(executable)) throw new Error(`${release.url} does not contain a file "${release.file}"`)
    await chmod(executable, 0o755)
    await rename(executable, path)
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

/** Writes the response to a file and returns its SHA-256. */
async function fetchTo(
  path: string,
  url: string,
  { title, progress, signal, stallMs }: DownloadOptions,
): Promise<string> {
  const stall = new AbortController()
  const timer = setTimeout(
    () => stall.abort(new Error(`${url} sent no data for too long`)),
    stallMs ?? STALL_MS,
  )
  const signals = [stall.signal, ...(signal === undefined ? [] : [signal])]
  const within = limitedTo(WHOLE_MS, AbortSignal.any(signals))
  try {
    const response = await fetch(url, { signal: within })
    if (!response.ok || response.body === null) throw new Error(`${url} answered ${response.status}`)
    const hash = createHash('sha256')
    const totalBytes = Number(response.headers.get('content-length') ?? 0)
    let bytes = 0
    const count = new Transform({
      transform(chunk: Buffer, _encoding, done) {
        timer.refresh()
        hash.update(chunk)
        bytes += chunk.length
        progress.update(
          `Downloading the ${title}: ${megabytes(bytes)}${totalBytes > 0 ? ` of ${megabytes(totalBytes)}` : ''}`,
        )
        done(null, chunk)
      },
    })
    await pipeline(response.body, count, createWriteStream(path))
    return hash.digest('hex')
  } finally {
    clearTimeout(timer)
  }
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`
}
