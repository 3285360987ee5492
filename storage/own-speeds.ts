import type { OwnSpeeds } from '../core/job/own-speeds'
import { ignoreBadDocument, putDocumentIfAbsent, readDocument } from './json'
import { layout } from './layout'
import { eachOf } from './parallel'
import type { ObjectStore } from './store'

/** The newest jobs count: older ones used other programs, drivers and libraries. */
const KEPT_MAX = 200

/**
 * Keeps the speeds that a job measured, once: repeated calls have the same key and the same content. Deletes those of jobs that are too old to
 * count.
 *
 * @param finishedAtMs as on the job's record
 */
export async function putOwnSpeeds(
  store: ObjectStore,
  speeds: OwnSpeeds,
  finishedAtMs: number,
): Promise<void> {
  await putDocumentIfAbsent(store, layout.ownSpeeds(finishedAtMs, speeds.jobId), speeds)
  for (const key of (await keysOf(store)).slice(KEPT_MAX)) await store.delete(key)
}

/** Speeds by key: a document never changes. */
const READ = new WeakMap<ObjectStore, Map<string, OwnSpeeds | undefined>>()

/** The speeds that the deployment's newest jobs measured, newest first. Unreadable documents are left out. */
export async function readOwnSpeeds(store: ObjectStore): Promise<OwnSpeeds[]> {
  const keys = (await keysOf(store)).slice(0, KEPT_MAX)
  const read = READ.get(store)
  const found = await eachOf(keys, async (key): Promise<[string, OwnSpeeds | undefined]> => {
    if (read?.has(key) === true) return [key, read.get(key)]
    return [key, await readDocument(store, key, parseSpeeds).catch(ignoreBadDocument)]
  })
  READ.set(store, new Map(found))
  return found.flatMap(([, speeds]) => speeds ?? [])
}

async function keysOf(store: ObjectStore): Promise<string[]> {
  const keys: string[] = []
  for await (const { key } of store.list(layout.allOwnSpeeds())) keys.push(key)
  return keys
}

/** Only this file writes them, so a brief check of their shape suffices. */
function parseSpeeds(text: string): OwnSpeeds {
  const speeds = JSON.parse(text) as Partial<OwnSpeeds> | null
  const areUsable = speeds?.paces?.every(({ steps, ms }) => steps > 0 && ms > 0)
  if (areUsable !== true || speeds?.jobId === undefined) throw new Error('it has no speeds of a job')
  return speeds as OwnSpeeds
}
