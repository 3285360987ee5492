import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { layout } from '../storage/layout'
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
  /** Hex; null as long as the job is not over. */
  sha256: string | null
}

/** What a job has left so far, in the order of the paths. */
export async function listArtifacts(context: Context, jobId: string): Promise<ArtifactView[]> {
  const entries = await readRecords(context.store, jobId)
  if (submissionOf(entries) === undefined) throw noSuchJob(context, jobId)
  const digests = new Map((resultOf(entries)?.artifacts ?? []).map(({ path, sha256 }) => [path, sha256]))
  const prefix = layout.artifacts(jobId)
  const artifacts: ArtifactView[] = []
  for await (const { key, sizeBytes } of context.store.list(prefix)) {
    const path = key.slice(prefix.length)
    artifacts.push({ path, sizeBytes, sha256: digests.get(path) ?? null })
  }
  return artifacts
}

/**
 * Copies a job's artifacts into a folder, each under its own path, and compares them with their digests. Files that are there
 * already are replaced. Throws `failed` when one arrives damaged.
 */
export async function downloadArtifacts(
  context: Context,
  jobId: string,
  toFolder: string,
): Promise<ArtifactView[]> {
  const artifacts = await listArtifacts(context, jobId)
  await eachOf(artifacts, async ({ path, sha256 }) => {
    const target = join(toFolder, ...path.split('/'))
    await mkdir(dirname(target), { recursive: true })
    const isThere = await context.store.getFile(`${layout.artifacts(jobId)}${path}`, target)
    if (!isThere || (sha256 !== null && (await digestOf(target)) !== sha256)) throw damaged(path)
  })
  return artifacts
}

/** One artifact whole, for small ones; `undefined` when the job left no such file. */
export function readArtifact({ store }: Context, jobId: string, path: string): Promise<Buffer | undefined> {
  return store.get(`${layout.artifacts(jobId)}${path}`)
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
