import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { lstat, mkdtemp, rmdir, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { oneLine } from '../../core/one-line'
import { parseOutputs } from '../../intake/documents'
import {
  artifactVersions,
  digestsOf,
  keyOf,
  lostArtifacts,
  lostInWords,
  newestArtifacts,
  type StoredArtifact,
} from '../../storage/artifacts'
import { hasCode } from '../../storage/file-errors'
import { Gaps, readDocument } from '../../storage/json'
import { checkKey } from '../../storage/keys'
import { layout } from '../../storage/layout'
import { eachOf } from '../../storage/parallel'
import { surveyRecords } from '../../storage/record'
import type { Context } from '../context'
import { CrucibleError, toCrucibleError } from '../errors'
import { FencedFolder, OF_NAMES } from './fenced-folder'
import { noSuchJob } from './read-view'
import { gapsInWords } from './view'

/** An artifact of a job. @public */
export interface ArtifactView {
  /** Path relative to the job's artifacts. */
  path: string
  sizeBytes: number
  /** Digest in hex; null until the attempt that wrote the file is settled, and if that attempt could not compute it. */
  sha256: string | null
  /** The attempt that wrote it. */
  attempt: number
  /** Earlier attempts with another version of the file, newest first. */
  olderAttempts: number[]
}

/** Which artifacts of a job. @public */
export interface ArtifactFilter {
  /** Lists only the artifacts of this attempt. */
  attempt?: number
  /** Lists only these paths and the contents of these folders. */
  only?: readonly string[]
}

/** Some artifacts of a job, in path order. @public */
export interface ArtifactPage {
  artifacts: ArtifactView[]
  /** Number of artifacts on all pages. */
  total: number
  /** The next page begins after this path; null on the last page. */
  next: string | null
}

/**
 * Returns the artifacts of a job so far, sorted by path: the newest attempt's version of each file, or only those of one attempt. Throws
 * `not-found` for an attempt or a path without artifacts.
 */
export async function listArtifacts(
  context: Context,
  jobId: string,
  filter: ArtifactFilter = {},
): Promise<ArtifactView[]> {
  return (await findArtifacts(context, jobId, filter)).map(({ key: _key, ...view }) => view)
}

/**
 * Returns a page of what `listArtifacts` returns: the artifacts after a path, at most `limit` of them.
 */
export async function pageOfArtifacts(
  context: Context,
  jobId: string,
  { limit, after = '', ...filter }: ArtifactFilter & { limit: number; after?: string },
): Promise<ArtifactPage> {
  const all = await listArtifacts(context, jobId, filter)
  const rest = all.filter(({ path }) => path > after)
  const artifacts = rest.slice(0, limit)
  const next = rest.length > artifacts.length ? artifacts.at(-1)!.path : null
  return { artifacts, total: all.length, next }
}

/** Returns the artifacts with their locations. */
async function findArtifacts(
  context: Context,
  jobId: string,
  { attempt, only = [] }: ArtifactFilter,
): Promise<(ArtifactView & { key: string })[]> {
  const { entries, unreadable } = await surveyRecords(context.store, jobId)
  if (entries.length + unreadable.length === 0) throw await noSuchJob(context, jobId)
  const all = await artifactVersions(context.store, jobId)
  const wanted = attempt === undefined ? all : all.filter((version) => version.attempt === attempt)
  if (attempt !== undefined && wanted.length === 0) throw noneOf(jobId, attempt, all)
  const digests = digestsOf(entries)
  const gaps = [gapsInWords(unreadable), lostInWords(lostArtifacts(entries, all, attempt))]
  context.gaps.push(...gaps.filter((gap) => gap !== null))
  const attemptsOf = new Map<string, number[]>()
  for (const { path, attempt: by } of wanted) attemptsOf.set(path, [...(attemptsOf.get(path) ?? []), by])
  return named(newestArtifacts(wanted), { jobId, only }).map(({ path, sizeBytes, attempt: by, key }) => ({
    path,
    sizeBytes,
    sha256: digests.get(keyOf(by, path)) ?? null,
    attempt: by,
    key,
    olderAttempts: attemptsOf.get(path)!.filter((other) => other !== by),
  }))
}

/** Selects artifacts with one of these paths or in one of these folders; without paths, all. Each path must match some. */
function named(
  artifacts: StoredArtifact[],
  { jobId, only }: { jobId: string; only: readonly string[] },
): StoredArtifact[] {
  const missing = only.find((place) => !artifacts.some(({ path }) => isAt(path, place)))
  if (missing !== undefined) {
    throw new CrucibleError('not-found', `${jobId} has no artifact ${missing}.`, {
      hint: 'Without --only, the command lists them all.',
    })
  }
  return only.length === 0
    ? artifacts
    : artifacts.filter(({ path }) => only.some((place) => isAt(path, place)))
}

/** Whether a path is a place or below it. */
function isAt(path: string, place: string): boolean {
  return path === place || path.startsWith(`${place.replace(/\/$/, '')}/`)
}

function noneOf(jobId: string, attempt: number, all: StoredArtifact[]): CrucibleError {
  const others = [...new Set(all.map((version) => version.attempt))]
  return new CrucibleError('not-found', `Attempt ${attempt} of ${jobId} has no artifacts.`, {
    hint:
      others.length === 0 ? 'No attempt has artifacts.' : `Attempts with artifacts: ${others.join(', ')}.`,
  })
}

/** @public */
export interface DownloadOptions extends ArtifactFilter {
  /** Replaces other files with an artifact's name. */
  isForced?: boolean
}

/**
 * Downloads a job's artifacts into a folder, each under its own path, and verifies their digests. If another file already has
 * such a name, throws `usage` and writes nothing, unless forced. A file that fails does not block the others: at the end `failed`
 * names each.
 */
export async function downloadArtifacts(
  context: Context,
  jobId: string,
  { toFolder, isForced = false, ...filter }: DownloadOptions & { toFolder: string },
): Promise<ArtifactView[]> {
  await checkTarget(toFolder)
  const artifacts = await findArtifacts(context, jobId, filter)
  const copies = artifacts.map((artifact) => copyOf(artifact, toFolder))
  if (!isForced) await refuseToReplace(copies)
  const { only = [], attempt } = filter
  const attempts = attempt === undefined ? await attemptsWithOutputs(context, jobId) : [attempt]
  const failed = await FencedFolder.using(toFolder, async (folder) => {
    const failures = await eachOf(copies, async (copy): Promise<FailedCopy[]> => {
      try {
        await download(context, copy, folder)
        return []
      } catch (error) {
        return [{ path: copy.path, reason: toCrucibleError(error).message }]
      }
    })
    for (const each of attempts) await restoreTree(context, { jobId, attempt: each, only, copies, folder })
    return failures.flat()
  })
  if (failed.length > 0) throw incomplete(failed, { toFolder, count: copies.length })
  return artifacts.map(({ key: _key, ...view }) => view)
}

/** Newest first. */
async function attemptsWithOutputs({ store }: Context, jobId: string): Promise<number[]> {
  const names = await store.listFolders(layout.attempts(jobId))
  return names
    .map(Number)
    .filter(Number.isInteger)
    .sort((a, b) => b - a)
}

interface TreeTarget {
  jobId: string
  attempt: number
  only: readonly string[]
  copies: readonly Copy[]
  folder: FencedFolder
}

/** Gives downloaded artifacts of an attempt their permissions and times, with its empty folders and links to folders. */
async function restoreTree(
  { store }: Context,
  { jobId, attempt, only, copies, folder }: TreeTarget,
): Promise<void> {
  const key = layout.outputs(jobId, attempt)
  const outputs = await new Gaps().read('', () => readDocument(store, key, parseOutputs))
  if (outputs === undefined) return
  const isWanted = ({ path }: { path: string }): boolean =>
    only.length === 0 || only.some((place) => isAt(path, place))
  const own = new Set(copies.filter((copy) => copy.attempt === attempt).map(({ path }) => path))
  // A file of a newer attempt, or of an earlier download, stays.
  await folder.makeLinks(outputs.links.filter(isWanted), { isTolerant: true })
  const folders = outputs.folders.filter(isWanted)
  for (const { path } of folders) await unlessTaken(folder.makeFolder(path))
  for (const entry of outputs.files)
    if (own.has(entry.path)) await unlessTaken(folder.shape(entry.path, entry))
  for (const entry of folders) await unlessTaken(folder.shape(entry.path, entry))
}

/** A path of the tree whose place is taken, or whose name is unusable, is left out: its files have been reported. */
async function unlessTaken(done: Promise<unknown>): Promise<void> {
  await done.catch((error: unknown) => {
    if (!(error instanceof CrucibleError) && !hasCode(error, ...OF_NAMES)) throw error
  })
}

/** An artifact that could not be downloaded. */
interface FailedCopy {
  path: string
  reason: string
}

function incomplete(
  failed: FailedCopy[],
  { toFolder, count }: { toFolder: string; count: number },
): CrucibleError {
  const copied = count - failed.length
  const lines = [
    `${failed.length} of ${count} files could not be downloaded; ${copied} ${copied === 1 ? 'is' : 'are'} in ${toFolder}.`,
    ...failed.map(({ path, reason }) => `  ${oneLine(path)}: ${oneLine(reason)}`),
  ]
  return new CrucibleError('failed', lines.join('\n'), {
    hint: 'Run the command again: it verifies existing files and downloads the rest.',
    details: { failed, copied, folder: toFolder },
  })
}

/** Refuses a target that cannot become a folder before anything is read: a file, or a read-only place. */
async function checkTarget(toFolder: string): Promise<void> {
  const existing = await nearestExisting(toFolder)
  if (!existing.isFolder) {
    throw new CrucibleError('usage', `${existing.path} is a file, not a folder.`, {
      hint: 'Choose a folder; it is created if it does not exist.',
    })
  }
  try {
    // Tried, because permissions do not reveal a read-only file system.
    await rmdir(await mkdtemp(join(existing.path, '.crucible-')))
  } catch (error) {
    throw new CrucibleError('permission', `No permission to write to ${existing.path}.`, {
      hint: 'Choose another folder.',
      cause: error,
    })
  }
}

async function nearestExisting(path: string): Promise<{ path: string; isFolder: boolean }> {
  try {
    return { path, isFolder: (await stat(path)).isDirectory() }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if ((code !== 'ENOENT' && code !== 'ENOTDIR') || dirname(path) === path) throw toCrucibleError(error)
    return nearestExisting(dirname(path))
  }
}

interface Copy extends ArtifactView {
  key: string
  target: string
}

function copyOf(artifact: ArtifactView & { key: string }, toFolder: string): Copy {
  // A key of the store should never lead out of the folder; if one does, nothing is written there.
  checkKey(artifact.key)
  return { ...artifact, target: join(toFolder, ...artifact.path.split('/')) }
}

async function refuseToReplace(copies: Copy[]): Promise<void> {
  const others = await eachOf(copies, async ({ target, sha256 }) => {
    const there = await lstat(target).catch(() => undefined)
    if (there === undefined) return []
    const isSame = there.isFile() && sha256 !== null && (await digestOf(target).catch(() => null)) === sha256
    return isSame ? [] : [target]
  })
  const names = others.flat()
  if (names.length === 0) return
  const more = names.length > NAMED_MAX ? [`and ${names.length - NAMED_MAX} more`] : []
  throw new CrucibleError(
    'usage',
    `Files with other content already exist, so nothing was downloaded: ${[...names.slice(0, NAMED_MAX), ...more].join(', ')}.`,
    { hint: 'Choose another folder, or replace them with --force.' },
  )
}

/** Files that a message lists. */
const NAMED_MAX = 5

/** Downloads one file under a temporary name until it is complete and verified. */
async function download(
  { store }: Context,
  { path, key, sha256 }: Copy,
  folder: FencedFolder,
): Promise<void> {
  await folder.place(path, async (temporary) => {
    const isThere = await store.getFile(key, temporary)
    if (!isThere || (sha256 !== null && (await digestOf(temporary)) !== sha256)) throw damaged(path)
  })
}

async function digestOf(path: string): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) hash.update(chunk)
  return hash.digest('hex')
}

function damaged(path: string): CrucibleError {
  return new CrucibleError('failed', `The artifact ${path} differs from the job's file.`, {
    hint: 'The object store was changed or damaged: check its disk.',
  })
}
