import {
  byNewest,
  CHECKPOINTS_KEPT,
  type Checkpoint,
  type CheckpointState,
  type Manifest,
} from '../core/job/checkpoint'
import {
  checkpointFileKey,
  checkpointFolder,
  isManifestOf,
  manifestKey,
  readRevision,
  surveyCheckpoints,
  type CheckpointParsers,
  type ListedCheckpoint,
} from './checkpoints'
import { ignoreBadDocument } from './json'
import { filesFolder } from './layout'
import { eachOf } from './parallel'
import { readRestoreHistory, type RestoreHistory } from './restores'
import type { ObjectStore } from './store'

/** The facts that decide whether a checkpoint is kept. */
export interface CheckpointFacts extends Checkpoint {
  /** `unreadable`: all its manifests are unreadable, so no program can be restored from it. */
  state: CheckpointState | 'unreadable'
}

interface Retention {
  /** Number of newest complete checkpoints to keep; at least one. */
  keep: number
  /** Ids to keep in any case: the checkpoints that live attempts were restored from, and the last ones that they put. */
  protectedIds: readonly string[]
  history: Pick<RestoreHistory, 'wentOn' | 'failed'>
}

/**
 * Returns the checkpoints that may be removed. These are kept: the newest complete one; the newest from which a program has continued; of the
 * complete ones, without those after which programs only failed, the `keep` newest; of the provisional ones that are newer than all of those,
 * the newest `CHECKPOINTS_KEPT` (without any complete one, the newest settled one as well); the protected ones.
 * @internal Tests draw lists of checkpoints.
 */
export function expendable(all: readonly CheckpointFacts[], retention: Retention): CheckpointFacts[] {
  const { history, protectedIds } = retention
  const keep = Math.max(1, retention.keep)
  const newestFirst = [...all].sort(byNewest)
  const complete = newestFirst.filter(({ state }) => state === 'complete')
  const usable = complete.filter(({ id }) => !history.failed.has(id))
  const [newestUsable] = usable
  const provisional = newestFirst.filter(
    (one) => one.state !== 'complete' && (newestUsable === undefined || byNewest(one, newestUsable) < 0),
  )
  const stays = new Set<string | undefined>([
    ...protectedIds,
    complete[0]?.id,
    newestFirst.find(({ id }) => history.wentOn.has(id))?.id,
    ...usable.slice(0, keep).map(({ id }) => id),
    ...provisional.slice(0, Math.max(keep, CHECKPOINTS_KEPT)).map(({ id }) => id),
    newestUsable === undefined ? provisional.find(({ state }) => state === 'settled')?.id : undefined,
  ])
  return newestFirst.filter(({ id }) => !stays.has(id))
}

export interface ThinOut {
  /** See `Retention`. */
  keep: number
  protectedIds: readonly string[]
  /** Whether an attempt can no longer upload. */
  isOver: (attempt: number) => boolean
  parse: CheckpointParsers
}

/**
 * Removes the checkpoints that a job no longer needs, and leftovers of interrupted uploads of attempts that are over. Returns the ids of the
 * folders from which something was removed.
 *
 * A runner may work at the same time. No file is removed that one of its manifests refers to, or will refer to, for these reasons:
 *
 * - A runner refers only to files of its own new checkpoint, of the checkpoint that it was restored from, and of those that it put
 *   last (`lastPutOf`). The folders of live attempts never count as leftovers, so its own new files are kept.
 * - The last checkpoint that a live attempt has put, as the store lists it, is kept with all files that its manifests refer to. A
 *   checkpoint put after that listing refers to no other old files: by induction only to files that this checkpoint refers to.
 * - The runner records in `restores.json` which checkpoint it is about to restore, before it reads the manifest of that checkpoint. This
 *   function removes manifests first, then reads `restores.json` again, and only then removes files. Either it sees the record, and keeps
 *   files and manifests, or the runner finds no manifest and takes another checkpoint.
 */
export async function thinOutCheckpoints(
  store: ObjectStore,
  jobId: string,
  { keep, protectedIds, isOver, parse }: ThinOut,
): Promise<string[]> {
  const survey = await surveyCheckpoints(store, jobId)
  const history = await readRestoreHistory(store, jobId, parse.restores)
  const known = await eachOf(survey.existing, (checkpoint) => know(store, { jobId, checkpoint, parse }))
  const stays = [...protectedIds, ...liveRestores(history, isOver), ...lastPutOf(survey.existing, isOver)]
  const chosen = expendable(known, { keep, protectedIds: stays, history }) as ListedCheckpointFacts[]
  const manifests = await takeManifests(store, jobId, chosen)

  const inUse = liveRestores(await readRestoreHistory(store, jobId, parse.restores), isOver)
  const going = chosen.filter(({ id }) => !inUse.includes(id))
  for (const { id, key, body } of manifests) if (inUse.includes(id)) await store.putIfAbsent(key, body)

  const staying = known.filter((checkpoint) => !going.includes(checkpoint))
  const leftovers = survey.partial.filter(
    ({ id, attempt }) => isOver(attempt) && !stays.includes(id) && !inUse.includes(id),
  )
  const doomed = [
    ...[...going, ...leftovers].map((checkpoint) =>
      listKeys(store, checkpointFolder(jobId, checkpoint), checkpoint),
    ),
    ...staying
      .filter(({ attempt }) => isOver(attempt))
      .map((checkpoint) => listBrokenRevisions(store, jobId, checkpoint)),
  ]
  const referred = new Set(staying.flatMap((checkpoint) => checkpoint.fileKeys))
  const removed = new Set(going.map(({ id }) => id))
  for (const { id, keys } of await Promise.all(doomed)) {
    const unreferred = keys.filter((key) => !referred.has(key))
    if (unreferred.length > 0) removed.add(id)
    await eachOf(unreferred, (key) => store.delete(key))
  }
  return [...removed]
}

interface ListedCheckpointFacts extends ListedCheckpoint, CheckpointFacts {
  /** Keys of all files that its manifests refer to. */
  fileKeys: string[]
}

async function know(
  store: ObjectStore,
  { jobId, checkpoint, parse }: { jobId: string; checkpoint: ListedCheckpoint; parse: CheckpointParsers },
): Promise<ListedCheckpointFacts> {
  const revisions: Manifest[] = []
  for (const { revision } of checkpoint.manifests) {
    const read = readRevision(store, { jobId, checkpoint, revision }, parse.manifest)
    const manifest = await read.catch(ignoreBadDocument)
    if (manifest !== undefined && isManifestOf(manifest, jobId, checkpoint)) revisions.push(manifest)
  }
  return {
    ...checkpoint,
    state: revisions[0]?.state ?? 'unreadable',
    fileKeys: revisions.flatMap(({ files }) =>
      files.map((file) => checkpointFileKey(jobId, checkpoint, file)),
    ),
  }
}

/** Returns the last restores of live attempts. */
function liveRestores({ lastOf }: RestoreHistory, isOver: ThinOut['isOver']): string[] {
  return [...lastOf].filter(([attempt]) => !isOver(attempt)).map(([, id]) => id)
}

/** Returns the last puts of each live attempt: its newest checkpoint by the store's clock, and the one whose newest revision came last. */
function lastPutOf(existing: readonly ListedCheckpoint[], isOver: ThinOut['isOver']): string[] {
  const putAt = [
    ({ manifests }: ListedCheckpoint): number => manifests.at(-1)!.putAtMs,
    ({ manifests }: ListedCheckpoint): number => manifests[0]!.putAtMs,
  ]
  const attempts = new Set(existing.map(({ attempt }) => attempt).filter((attempt) => !isOver(attempt)))
  return [...attempts].flatMap((attempt) =>
    putAt.flatMap((instantOf) => {
      const own = existing.filter((checkpoint) => checkpoint.attempt === attempt)
      const lastMs = Math.max(...own.map(instantOf))
      // Store clocks are coarse: returns every checkpoint that may have been the last.
      return own.filter((checkpoint) => instantOf(checkpoint) >= lastMs).map(({ id }) => id)
    }),
  )
}

/** Deletes the manifests of checkpoints, which then no longer exist. Returns the deleted content, so that it can be restored. */
async function takeManifests(
  store: ObjectStore,
  jobId: string,
  checkpoints: readonly ListedCheckpoint[],
): Promise<{ id: string; key: string; body: Buffer }[]> {
  const taken: { id: string; key: string; body: Buffer }[] = []
  for (const checkpoint of checkpoints) {
    for (const { revision } of checkpoint.manifests) {
      const key = manifestKey(jobId, checkpoint, revision)
      const body = await store.get(key)
      if (body !== undefined) taken.push({ id: checkpoint.id, key, body })
      await store.delete(key)
    }
  }
  return taken
}

interface Listed {
  /** The checkpoint of the folder. */
  id: string
  keys: string[]
}

async function listKeys(store: ObjectStore, prefix: string, { id }: Checkpoint): Promise<Listed> {
  const keys: string[] = []
  for await (const { key } of store.list(prefix)) keys.push(key)
  return { id, keys }
}

/** Lists the files of revisions without a manifest. */
async function listBrokenRevisions(
  store: ObjectStore,
  jobId: string,
  checkpoint: ListedCheckpoint,
): Promise<Listed> {
  const folder = checkpointFolder(jobId, checkpoint)
  const { id, keys } = await listKeys(store, `${folder}${REVISION_FILES}`, checkpoint)
  const whole = checkpoint.manifests.map(({ revision }) => `${folder}${filesFolder(revision)}`)
  return { id, keys: keys.filter((key) => !whole.some((prefix) => key.startsWith(prefix))) }
}

/** Prefix of every folder with files of a revision after the first. */
const REVISION_FILES = 'files.'
