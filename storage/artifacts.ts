import type { RecordEntry } from '../core/job/record'
import { layout } from './layout'
import { eachOf } from './parallel'
import { OBJECT_BYTES_MAX, type ObjectStore } from './store'

/** An artifact file of one attempt. */
export interface StoredArtifact {
  /** The program's path of the file, below its output directory or its working directory. */
  path: string
  attempt: number
  key: string
  sizeBytes: number
}

/** Returns all artifacts of a job's attempts, newest attempt first and each attempt in path order. */
export async function artifactVersions(store: ObjectStore, jobId: string): Promise<StoredArtifact[]> {
  const names = await store.listFolders(layout.attempts(jobId))
  const attempts = names.filter((name) => /^[1-9]\d*$/.test(name)).map(Number)
  const newestFirst = attempts.sort((a, b) => b - a)
  const lists = await eachOf(newestFirst, (attempt) =>
    listBelow(store, layout.artifactsOf(jobId, attempt), attempt),
  )
  return lists.flat()
}

async function listBelow(store: ObjectStore, prefix: string, attempt: number): Promise<StoredArtifact[]> {
  const found: StoredArtifact[] = []
  for await (const { key, sizeBytes } of store.list(prefix))
    found.push({ path: key.slice(prefix.length), attempt, key, sizeBytes })
  return found
}

/**
 * Returns the newest version of each path, in path order. When a newer attempt has a file in place of an older attempt's folder, or the
 * reverse, the newer one wins.
 *
 * @param versions the result of `artifactVersions`
 */
export function newestArtifacts(versions: readonly StoredArtifact[]): StoredArtifact[] {
  const files = new Map<string, StoredArtifact>()
  const folders = new Set<string>()
  for (const version of versions) {
    const above = foldersOf(version.path)
    if (files.has(version.path) || folders.has(version.path)) continue
    if (above.some((folder) => files.has(folder))) continue
    files.set(version.path, version)
    for (const folder of above) folders.add(folder)
  }
  return [...files.values()].sort((a, b) => (a.path < b.path ? -1 : 1))
}

/** Returns `a`, `a/b` for `a/b/c`. */
export function foldersOf(path: string): string[] {
  const names = path.split('/').slice(0, -1)
  return names.map((_, depth) => names.slice(0, depth + 1).join('/'))
}

/** Returns one small artifact whole: the newest attempt's version; `undefined` when no attempt has this file, or it is too large. */
export async function readArtifact(
  store: ObjectStore,
  jobId: string,
  path: string,
): Promise<Buffer | undefined> {
  const found = newestArtifacts(await artifactVersions(store, jobId)).find((each) => each.path === path)
  return found && found.sizeBytes <= OBJECT_BYTES_MAX ? store.get(found.key) : undefined
}

/** Artifacts that the record names, and that the store does not hold, as `ATTEMPT/PATH`. */
export function lostArtifacts(
  entries: readonly RecordEntry[],
  stored: readonly StoredArtifact[],
  attempt?: number,
): string[] {
  const there = new Set(stored.map(({ attempt: by, path }) => keyOf(by, path)))
  const named = [...digestsOf(entries).keys()]
  const wanted = attempt === undefined ? named : named.filter((key) => key.startsWith(`${attempt}/`))
  return wanted.filter((key) => !there.has(key))
}

/** Says which artifacts are lost; null without any. */
export function lostInWords(lost: readonly string[]): string | null {
  if (lost.length === 0) return null
  const names = lost.slice(0, NAMED_MAX).map((key) => key.slice(key.indexOf('/') + 1))
  const more = lost.length > NAMED_MAX ? [`${lost.length - NAMED_MAX} more`] : []
  return `The store does not hold artifacts that the job's result names: ${[...names, ...more].join(', ')}.`
}

/** Files that a remark lists. */
const NAMED_MAX = 5

/** Returns digests by attempt and path, as recorded at the settlement of each attempt. */
export function digestsOf(entries: readonly RecordEntry[]): Map<string, string> {
  return new Map(
    entries.flatMap(({ kind, data, attempt }) =>
      kind === 'settled' && attempt !== undefined
        ? data.artifacts.map(({ path, sha256 }): [string, string] => [keyOf(attempt, path), sha256])
        : [],
    ),
  )
}

/** Names a file of one attempt. */
export function keyOf(attempt: number, path: string): string {
  return `${attempt}/${path}`
}
