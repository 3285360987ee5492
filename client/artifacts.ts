import { createHash, randomUUID } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { lstat, mkdir, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Settlement } from '../core/activities'
import type { RecordEntry } from '../core/record'
import { artifactVersions, newestArtifacts, type StoredArtifact } from '../storage/artifacts'
import { checkKey } from '../storage/keys'
import { eachOf } from '../storage/parallel'
import { readRecords } from '../storage/record'
import type { Context } from './context'
import { CrucibleError } from './errors'
import { resultOf, submissionOf } from './history'
import { noSuchJob } from './look'

/** A file that a job left. */
export interface ArtifactView {
  /** Relative to the job's artifacts. */
  path: string
  sizeBytes: number
  /** Hex; null until the attempt that left it is settled, and where that attempt could not tell. */
  sha256: string | null
  /** Which attempt left it; null for those of runners of before, which kept no attempts apart. */
  attempt: number | null
  /** Earlier attempts that left another version of it, the newest first. */
  olderAttempts: number[]
}

/**
 * What a job has left so far, in the order of the paths: of each file the newest attempt's, or only what one attempt left. Throws
 * `not-found` for an attempt that left nothing.
 */
export async function listArtifacts(
  context: Context,
  jobId: string,
  attempt?: number,
): Promise<ArtifactView[]> {
  return (await findArtifacts(context, jobId, attempt)).map(({ key: _key, ...view }) => view)
}

/** With where each one is. */
async function findArtifacts(
  context: Context,
  jobId: string,
  attempt?: number,
): Promise<(ArtifactView & { key: string })[]> {
  const entries = await readRecords(context.store, jobId)
  if (submissionOf(entries) === undefined) throw noSuchJob(context, jobId)
  const all = await artifactVersions(context.store, jobId)
  const wanted = attempt === undefined ? all : all.filter((version) => version.attempt === attempt)
  if (attempt !== undefined && wanted.length === 0) throw noneOf(jobId, attempt, all)
  const digests = digestsOf(entries)
  return newestArtifacts(wanted).map(({ path, sizeBytes, attempt: by, key }) => ({
    ...{ path, sizeBytes, sha256: digests.get(keyOf(by, path)) ?? null, attempt: by, key },
    olderAttempts: wanted.flatMap((other) =>
      other.path === path && other.attempt !== null && other.attempt !== by ? [other.attempt] : [],
    ),
  }))
}

function noneOf(jobId: string, attempt: number, all: StoredArtifact[]): CrucibleError {
  const others = [...new Set(all.map((version) => version.attempt ?? 'of before'))]
  return new CrucibleError('not-found', `Attempt ${attempt} of ${jobId} has left nothing.`, {
    hint: others.length === 0 ? 'No other attempt has either.' : `These have: ${others.join(', ')}.`,
  })
}

/** By attempt and path, as the attempts told it. */
function digestsOf(entries: readonly RecordEntry[]): Map<string, string> {
  const isOver = resultOf(entries) !== undefined
  const told = entries.flatMap(({ kind, data, attempt = null }) =>
    kind === 'settled'
      ? (data as Settlement).artifacts.flatMap(({ path, sha256 }): [string, string][] => [
          [keyOf(attempt, path), sha256],
          // Where attempts were not kept apart, the last one's is there once the job is over.
          ...(isOver ? [[keyOf(null, path), sha256] as [string, string]] : []),
        ])
      : [],
  )
  return new Map(told)
}

function keyOf(attempt: number | null, path: string): string {
  return `${attempt ?? ''}/${path}`
}

export interface DownloadOptions {
  /** Only what this attempt left. */
  attempt?: number
  /** Replaces other files that have an artifact's name. */
  isForced?: boolean
}

/**
 * Copies a job's artifacts into a folder, each under its own path, and compares them with their digests. Where another file has
 * such a name already, throws `usage` and copies nothing, unless forced. Throws `failed` when one arrives damaged.
 */
export async function downloadArtifacts(
  context: Context,
  jobId: string,
  { toFolder, isForced = false, attempt }: DownloadOptions & { toFolder: string },
): Promise<ArtifactView[]> {
  const artifacts = await findArtifacts(context, jobId, attempt)
  const copies = artifacts.map((artifact) => copyOf(artifact, toFolder))
  if (!isForced) await refuseToReplace(copies)
  await eachOf(copies, (copy) => download(context, copy))
  return artifacts.map(({ key: _key, ...view }) => view)
}

interface Copy extends ArtifactView {
  key: string
  target: string
}

function copyOf(artifact: ArtifactView & { key: string }, toFolder: string): Copy {
  // No store may have keys that lead out of the folder; one that does all the same must not make us write there.
  checkKey(artifact.key)
  return { ...artifact, target: join(toFolder, ...artifact.path.split('/')) }
}

async function refuseToReplace(copies: Copy[]): Promise<void> {
  const others = await eachOf(copies, async ({ target, sha256 }) => {
    const isThere = await lstat(target).then(
      () => true,
      () => false,
    )
    return isThere && (sha256 === null || (await digestOf(target).catch(() => null)) !== sha256)
      ? [target]
      : []
  })
  const names = others.flat()
  if (names.length === 0) return
  const more = names.length > NAMED_MAX ? [`and ${names.length - NAMED_MAX} more`] : []
  throw new CrucibleError(
    'usage',
    `Other files are there already, and nothing was copied: ${[...names.slice(0, NAMED_MAX), ...more].join(', ')}.`,
    { hint: 'Name another folder, or replace them with --force.' },
  )
}

/** Files that a message lists. */
const NAMED_MAX = 5

/** Under a name of its own until it is whole and compared. */
async function download({ store }: Context, { path, key, target, sha256 }: Copy): Promise<void> {
  const temporary = `${target}.${randomUUID()}.part`
  await mkdir(dirname(target), { recursive: true })
  try {
    const isThere = await store.getFile(key, temporary)
    if (!isThere || (sha256 !== null && (await digestOf(temporary)) !== sha256)) throw damaged(path)
    await rename(temporary, target)
  } finally {
    await rm(temporary, { force: true })
  }
}

async function digestOf(path: string): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) hash.update(chunk)
  return hash.digest('hex')
}

function damaged(path: string): CrucibleError {
  return new CrucibleError('failed', `The artifact ${path} is not what the job left.`, {
    hint: 'Somebody or something has changed the object store: look at its disk.',
  })
}
