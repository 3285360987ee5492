import { chmod, lstat, mkdir, readdir, realpath, rename, rm, rmdir } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import type { Checkpoint, Manifest, ManifestFile } from '../../core/job/checkpoint'
import { CHECKPOINT_PARSERS } from '../../intake/documents'
import {
  checkpointFileKey,
  goodCheckpoints,
  type BadFile,
  type GoodCheckpoint,
} from '../../storage/checkpoints'
import { foldersOf } from '../../storage/artifacts'
import { hasCode } from '../../storage/file-errors'
import { hasRecord } from '../../storage/record'
import { faultOf } from '../../storage/checkpoint-digests'
import { eachOf } from '../../storage/parallel'
import type { Context } from '../context'
import { CrucibleError } from '../errors'
import { FencedFolder, OF_NAMES } from './fenced-folder'
import { noSuchJob } from './read-view'

/** @public */
export interface CheckpointDownload {
  /** A step, or the id of a checkpoint; the newest good one if missing. */
  wanted?: string
  /** Target folder: missing or empty. */
  toFolder: string
}

/** @public */
export interface DownloadedCheckpoint {
  checkpoint: Checkpoint
  folder: string
  files: number
  sizeBytes: number
  /** The path in the folder from which a program resumes, or the folder itself. */
  resumePath: string
  /** Newer checkpoints that are damaged, each with the reason. */
  damaged: { checkpoint: Checkpoint; badFiles: BadFile[] }[]
}

/**
 * Downloads a checkpoint into a folder as the workload wrote it, with modes and links, and verifies the digest of each file. The
 * folder appears when it is complete; an interrupted download continues where it stopped. Without a step, downloads the newest
 * checkpoint that verifies. Throws `usage` for a non-empty target, `not-found`, and `failed` for a damaged checkpoint.
 */
export async function downloadCheckpoint(
  context: Context,
  jobId: string,
  { wanted, toFolder }: CheckpointDownload,
): Promise<DownloadedCheckpoint> {
  const target = resolve(toFolder)
  await checkTarget(target)
  if (!(await hasRecord(context.store, jobId))) throw await noSuchJob(context, jobId)
  const damaged: DownloadedCheckpoint['damaged'] = []
  const seen: Checkpoint[] = []
  for await (const good of goodCheckpoints(context.store, jobId, CHECKPOINT_PARSERS)) {
    const { checkpoint, manifest } = good
    seen.push(checkpoint)
    if (wanted !== undefined && !isMeant(checkpoint, wanted)) continue
    const badFiles = await fetchInto(context, { jobId, ...good }, target)
    if (badFiles.length === 0) {
      const { files, resumePath } = manifest
      const sizeBytes = files.reduce((sum, file) => sum + file.sizeBytes, 0)
      const facts = { files: files.length, sizeBytes, resumePath, damaged }
      return { checkpoint, folder: target, ...facts }
    }
    if (wanted !== undefined) throw isDamaged(jobId, checkpoint, badFiles)
    damaged.push({ checkpoint, badFiles })
  }
  const [newest] = damaged
  if (newest !== undefined) throw isDamaged(jobId, newest.checkpoint, newest.badFiles)
  throw noneSuch(jobId, wanted, seen)
}

/** Selects the newest of several checkpoints of a step. */
function isMeant({ id, step }: Checkpoint, wanted: string): boolean {
  return wanted === id || wanted === String(step)
}

function noneSuch(jobId: string, wanted: string | undefined, seen: Checkpoint[]): CrucibleError {
  const what = wanted === undefined ? 'complete checkpoint' : `complete checkpoint ${wanted}`
  return new CrucibleError('not-found', `${jobId} has no ${what}.`, {
    hint:
      seen.length === 0
        ? `See \`crucible show ${jobId}\`.`
        : `It has step ${seen.map(({ step }) => step).join(', ')}.`,
  })
}

function isDamaged(jobId: string, { id, step }: Checkpoint, badFiles: BadFile[]): CrucibleError {
  const [first] = badFiles
  return new CrucibleError(
    'failed',
    `The checkpoint of step ${step} (${id}) is damaged: ${first!.path} ${first!.reason}.`,
    {
      hint: `Download another one: \`crucible checkpoints ${jobId}\` lists them.`,
      details: { badFiles },
    },
  )
}

/** Checks the target before the download, because existing files are never overwritten. */
async function checkTarget(target: string): Promise<void> {
  const hint = 'Choose another folder with --to.'
  const stats = await lstat(target).catch(() => undefined)
  if (stats === undefined) return checkParent(target)
  if (!stats.isDirectory())
    throw new CrucibleError(
      'usage',
      `${target} is ${stats.isSymbolicLink() ? 'a link' : 'a file'}, not a folder.`,
      { hint },
    )
  if ((await readdir(target)).length > 0)
    throw new CrucibleError('usage', `The folder ${target} is not empty, and nothing was downloaded.`, {
      hint,
    })
}

/** The nearest existing parent must be a folder. */
async function checkParent(target: string): Promise<void> {
  for (let above = dirname(target); ; above = dirname(above)) {
    const stats = await lstat(above).catch(() => undefined)
    const real =
      stats?.isSymbolicLink() === true ? await lstat(await realpath(above)).catch(() => undefined) : stats
    if (real?.isDirectory() === true) return
    if (stats !== undefined)
      throw new CrucibleError('usage', `${above} is not a folder, so ${target} cannot be created.`, {
        hint: 'Choose another folder with --to.',
      })
  }
}

type Source = GoodCheckpoint & { jobId: string }

/**
 * Downloads into a folder next to the target, named after its content, so that an interrupted download is found again; then
 * renames it. Returns the damaged files.
 */
async function fetchInto(context: Context, source: Source, target: string): Promise<BadFile[]> {
  const { jobId, checkpoint, manifest } = source
  const clash = clashOf(manifest)
  if (clash !== undefined) return [{ path: clash, reason: 'is in the place of another entry' }]
  const part = join(dirname(target), `.${basename(target)}.${jobId}.${checkpoint.id}.part`)
  const before = await lstat(part).catch(() => undefined)
  if (before?.isDirectory() === false) await rm(part)
  await mkdir(part, { recursive: true })
  await removeStrays(part, manifest)
  const bad = await FencedFolder.using(part, (folder) => fillIn(context, source, folder)).catch(
    (error: unknown): BadFile[] => {
      if (!hasCode(error, ...OF_NAMES)) throw error
      return [{ path: checkpoint.id, reason: 'has a name that this file system does not support' }]
    },
  )
  if (bad.length > 0) {
    await rm(part, { recursive: true, force: true })
    return bad
  }
  await rmdir(target).catch(() => undefined)
  await rename(part, target)
  return []
}

/** Returns a path that two entries have, or that is a file or a link and a folder as well. No runner writes such a manifest. */
function clashOf({ files, links = [], folders = [] }: Manifest): string | undefined {
  const leaves = new Set<string>()
  for (const { path } of [...files, ...links]) {
    if (leaves.has(path)) return path
    leaves.add(path)
  }
  const places = [...leaves, ...folders.map(({ path }) => `${path}/`)]
  return places.flatMap(foldersOf).find((folder) => leaves.has(folder))
}

/** Leftovers of an earlier try that are not files of the checkpoint: its links, and partial files. */
async function removeStrays(part: string, { files }: Manifest): Promise<void> {
  const wanted = new Set(files.map(({ path }) => join(part, ...path.split('/'))))
  for (const entry of await readdir(part, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    if (!entry.isDirectory() && !(entry.isFile() && wanted.has(path))) await rm(path, { force: true })
  }
}

/** Returns the damaged files; without any, the folder has everything as the workload wrote it. */
async function fillIn(context: Context, source: Source, folder: FencedFolder): Promise<BadFile[]> {
  const { files, links = [], folders = [] } = source.manifest
  const checked = await eachOf(files, (file) => fetchFile(context, source, { file, folder }))
  const outside = await folder.makeLinks(links)
  const bad = [
    ...checked.flat(),
    ...outside.map((path) => ({ path, reason: 'is a link that leads out of the checkpoint' })),
  ]
  if (bad.length > 0) return bad
  for (const { path } of folders) await folder.makeFolder(path)
  for (const file of files) await folder.shape(file.path, { ...file, mode: modeOf(file) })
  for (const each of folders) await folder.shape(each.path, each)
  return []
}

async function fetchFile(
  { store }: Context,
  { jobId, checkpoint }: Source,
  { file, folder }: { file: ManifestFile; folder: FencedFolder },
): Promise<BadFile[]> {
  return folder.at(file.path, async (path) => {
    if ((await faultOf(path, file).catch(() => 'does not exist')) !== undefined) {
      if (!(await store.getFile(checkpointFileKey(jobId, checkpoint, file), path)))
        return [{ path: file.path, reason: 'is missing' }]
      const reason = await faultOf(path, file)
      if (reason !== undefined) return [{ path: file.path, reason }]
    }
    await chmod(path, modeOf(file))
    return []
  })
}

/** The owner can always read, write and delete the downloaded files; others get no more access than the workload gave. */
function modeOf({ mode }: ManifestFile): number {
  return (mode & PERMISSIONS) | OWNER
}

const PERMISSIONS = 0o777
const OWNER = 0o600
