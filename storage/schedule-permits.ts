/** Permissions of a schedule's runs: what its owner has allowed beyond the calendar, and which run has used what up. */
import { parserOf, putDocument, putDocumentIfAbsent, putOnce, readDocument, type Parse } from './json'
import { layout } from './layout'
import { eachOf } from './parallel'
import type { ObjectStore } from './store'

/** `schedules/<name>/permits/<id>.json`: one more run. Put once by a client, before it asks Temporal for the run. */
export type RunPermit = {
  id: string
  atMs: number
  by: string
} & ({ kind: 'trigger' } | { kind: 'backfill'; startsAtMs: number })

/** `schedules/<name>/uses/<what>.json`: the run that has used up a date or a permit. Put once by a worker. */
export interface PermitUse {
  workflowId: string
  /** Id of the workflow's first run. */
  runId: string
  atMs: number
}

/** `schedules/<name>/pauses/<time>.json`: from then on, dates start runs, or start none. */
export interface PauseMark {
  kind: 'paused' | 'resumed'
  atMs: number
  by: string
}

export async function putPermit(store: ObjectStore, schedule: string, permit: RunPermit): Promise<void> {
  await putDocumentIfAbsent(store, layout.schedulePermit(schedule, permit.id), permit)
}

/** Takes back a permit that no run has used. */
export async function withdrawPermit(store: ObjectStore, schedule: string, id: string): Promise<void> {
  await store.delete(layout.schedulePermit(schedule, id))
}

/** Returns all permits of a schedule, oldest first. */
export async function readPermits(store: ObjectStore, schedule: string): Promise<RunPermit[]> {
  const permits = await readAll(store, layout.schedulePermits(schedule), parsePermit)
  return permits.sort((a, b) => a.atMs - b.atMs)
}

/** The name of a date's use, by the instant at which the calendar starts its run. */
export function dateUse(startsAtMs: number): string {
  return `date-${startsAtMs}`
}

/** Uses up a date or a permit. Returns the run that has it, which may be an earlier one. */
export async function putUse(
  store: ObjectStore,
  { schedule, what }: { schedule: string; what: string },
  use: PermitUse,
): Promise<PermitUse> {
  return putOnce(store, layout.scheduleUse(schedule, what), use, parseUse)
}

const parseUse = parserOf<PermitUse>(
  'the use of a permit',
  ({ workflowId, runId }) => typeof workflowId === 'string' && typeof runId === 'string',
)
const parsePermit = parserOf<RunPermit>(
  'a permit',
  ({ id, kind, atMs }) =>
    typeof id === 'string' && (kind === 'trigger' || kind === 'backfill') && typeof atMs === 'number',
)
const parsePause = parserOf<PauseMark>(
  'a pause',
  ({ kind, atMs }) => (kind === 'paused' || kind === 'resumed') && typeof atMs === 'number',
)

/** Records that a schedule is paused or resumed; several commands of one instant count as the last of them. */
export async function putPause(store: ObjectStore, schedule: string, mark: PauseMark): Promise<void> {
  await putDocument(store, layout.schedulePause(schedule, mark.atMs), mark)
}

/** Returns the pauses and resumptions of a schedule, oldest first. */
export async function readPauses(store: ObjectStore, schedule: string): Promise<PauseMark[]> {
  const marks = await readAll(store, layout.schedulePauses(schedule), parsePause)
  return marks.sort((a, b) => a.atMs - b.atMs)
}

async function readAll<T>(store: ObjectStore, prefix: string, parse: Parse<T>): Promise<T[]> {
  const keys: string[] = []
  for await (const { key } of store.list(prefix)) keys.push(key)
  const read = await eachOf(keys, (key) => readDocument(store, key, parse))
  return read.filter((one) => one !== undefined)
}
