import { createHash } from 'node:crypto'
import { createWriteStream, existsSync } from 'node:fs'
import { chmod, mkdtemp, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { extract } from 'tar'
import type { Progress } from './progress'
import { TEMPORAL_CLI_VERSION } from './version'

/** Where Temporal publishes the releases of its CLI. */
export const RELEASES_URL = 'https://github.com/temporalio/cli/releases/download'

/** SHA-256 of the archives of TEMPORAL_CLI_VERSION, by platform, as published with that release in its `checksums.txt`. */
const RELEASE_SHA256: Readonly<Record<string, string>> = {
  darwin_amd64: '48cdd6c84c56e27ae8e4d9a47052b89289a9c552dee029b49dd312c6fb72873f',
  darwin_arm64: '41e0425378fcb4fb5766340b97435e20fe47bbff2d7bf644ec2d51f7662b7c56',
  linux_amd64: '09a0326a51db84d02735e53542b9ebd8c4758daf47482a9ab0abce15844e60d5',
  linux_arm64: '6c57c352d52fc3df34412376fd9ba6f74b7e3ace8e426e6cba8600156d36a145',
}

/** A connection that gives nothing for so long is dead; one that trickles is given up after the whole time. */
const STALL_MS = 30_000
const WHOLE_MS = 20 * 60_000

export interface Release {
  url: string
  sha256: string
}

/** The release archive for a platform, in the words of `process.platform` and `process.arch`; `undefined` where there is none. */
export function releaseFor(platform: string, arch: string): Release | undefined {
  const name = `${platform}_${arch === 'x64' ? 'amd64' : arch}`
  const sha256 = RELEASE_SHA256[name]
  if (sha256 === undefined) return undefined
  const version = TEMPORAL_CLI_VERSION
  return { url: `${RELEASES_URL}/v${version}/temporal_cli_${version}_${name}.tar.gz`, sha256 }
}

export interface DownloadOptions {
  progress: Progress
  signal?: AbortSignal | undefined
  /** How long the connection may give nothing. */
  stallMs?: number
}

/** Downloads a release, checks its digest, and puts its executable at `path`. Throws, leaving nothing, when any of it fails. */
export async function downloadRelease(
  release: Release,
  path: string,
  options: DownloadOptions,
): Promise<void> {
  const directory = await mkdtemp(join(dirname(path), 'download-'))
  try {
    const archive = join(directory, 'temporal.tar.gz')
    const sha256 = await fetchTo(archive, release.url, options)
    if (sha256 !== release.sha256) {
      throw new Error(
        `${release.url} has SHA-256 ${sha256}, but the release has ${release.sha256}; it was not installed`,
      )
    }
    await extract({ file: archive, cwd: directory, filter: (name) => name === 'temporal', strict: true })
    const executable = join(directory, 'temporal')
    if (!existsSync(executable)) throw new Error(`${release.url} holds no file "temporal"`)
    await chmod(executable, 0o755)
    await rename(executable, path)
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

/** Writes what the URL gives to a file and answers its SHA-256. */
async function fetchTo(
  path: string,
  url: string,
  { progress, signal, stallMs }: DownloadOptions,
): Promise<string> {
  const stall = new AbortController()
  const timer = setTimeout(
    () => stall.abort(new Error(`${url} gave nothing for too long`)),
    stallMs ?? STALL_MS,
  )
  const signals = [stall.signal, AbortSignal.timeout(WHOLE_MS), ...(signal === undefined ? [] : [signal])]
  try {
    const response = await fetch(url, { signal: AbortSignal.any(signals) })
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
          `Downloading the Temporal server: ${megabytes(bytes)}${totalBytes > 0 ? ` of ${megabytes(totalBytes)}` : ''}`,
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
