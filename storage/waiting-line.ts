import type { Waiter } from '../core/job/waiting'
import { ignoreBadDocument, parserOf, putDocument, putDocumentIfAbsent, readDocument } from './json'
import { layout } from './layout'
import type { ObjectStore } from './store'

/** A waiter in the store, with the store's time of its last renewal. */
export interface StoredWaiter extends Waiter {
  key: string
  seenAtMs: number
}

/** The right of one job among equal requests to order a machine. */
interface Turn {
  key: string
  wish: string
  takenAtMs: number
}

export interface Line {
  waiters: StoredWaiter[]
  turns: Turn[]
}

export const waiterKey = ({ sinceMs, jobId, wish, backends }: Waiter): string =>
  `${layout.waiting()}${String(sinceMs).padStart(15, '0')}.${jobId}.${wish}.${backends.join('+')}.json`

const turnPrefix = (): string => `${layout.waiting()}turn.`
const turnKey = (wish: string): string => `${turnPrefix()}${wish}.json`

/** Returns every waiter and the holders of turns, with one list request and no reads. */
export async function readLine(store: ObjectStore): Promise<Line> {
  const line: Line = { waiters: [], turns: [] }
  for await (const { key, modifiedAtMs } of store.list(layout.waiting())) {
    const [first, second = '', third, backends = ''] = key.slice(layout.waiting().length).split('.')
    if (first === 'turn') line.turns.push({ key, wish: second, takenAtMs: modifiedAtMs })
    else if (third !== undefined && /^\d{15}$/.test(first!))
      line.waiters.push({
        key,
        sinceMs: Number(first),
        jobId: second,
        wish: third,
        seenAtMs: modifiedAtMs,
        backends: backends.split('+'),
      })
  }
  return line
}

/** Joins the line, or renews the job's place in it. */
export async function putWaiter(store: ObjectStore, waiter: Waiter): Promise<void> {
  await putDocument(store, waiterKey(waiter), waiter)
}

/** Returns false when another job has the turn. */
export async function takeTurn(store: ObjectStore, { wish, jobId }: Waiter): Promise<boolean> {
  if (await putDocumentIfAbsent(store, turnKey(wish), { jobId })) return true
  return (await holderOf(store, turnKey(wish))) === jobId
}

/** Lines longer than this are not read again for each job that asks. */
const SHARED_FROM = 100
/** A long line stays in memory for this many times the duration of its reading. */
const REST_FACTOR = 10

interface Reading {
  line: Promise<Line>
  isLong: boolean
  /** Infinite while a long line is being read. */
  freshUntilMs: number
}

const readings = new WeakMap<ObjectStore, Reading>()

/**
 * Returns the line as it was a moment ago. A short line is read each time. One read of a long line serves all callers during the read and
 * for some time after, so that the work does not grow with the square of the number of waiting jobs.
 */
export async function recentLine(store: ObjectStore): Promise<Line> {
  const last = readings.get(store)
  const startedMs = performance.now()
  if (last !== undefined && startedMs < last.freshUntilMs) return last.line
  const isLong = last?.isLong === true
  const reading: Reading = { line: readLine(store), isLong, freshUntilMs: isLong ? Infinity : 0 }
  readings.set(store, reading)
  try {
    const line = await reading.line
    const endedMs = performance.now()
    reading.isLong = line.waiters.length > SHARED_FROM
    reading.freshUntilMs = reading.isLong ? endedMs + REST_FACTOR * (endedMs - startedMs) : 0
    return line
  } catch (error) {
    reading.freshUntilMs = 0
    throw error
  }
}

/** Removes a job from its line. `waiter` is its entry, if the caller knows it. Returns the remaining waiters. */
export async function leaveLine(
  store: ObjectStore,
  { jobId, waiter }: { jobId: string; waiter?: Waiter },
): Promise<StoredWaiter[]> {
  const { waiters } = await (waiter === undefined ? readLine(store) : recentLine(store))
  const own = waiters.filter((each) => each.jobId === jobId).map(({ key }) => key)
  if (waiter !== undefined) own.push(waiterKey(waiter))
  for (const key of new Set(own)) await store.delete(key)
  return waiters.filter((each) => each.jobId !== jobId)
}

/** Returns every turn of a job, and the requirements of these turns. */
export async function endTurns(store: ObjectStore, jobId: string): Promise<string[]> {
  const wishes: string[] = []
  for await (const { key } of store.list(turnPrefix())) {
    if ((await holderOf(store, key)) !== jobId) continue
    await store.delete(key)
    wishes.push(key.slice(layout.waiting().length).split('.')[1]!)
  }
  return wishes
}

/** Gives the turn back; the job stays in line. */
export async function giveTurnBack(store: ObjectStore, { wish, jobId }: Waiter): Promise<void> {
  if ((await holderOf(store, turnKey(wish))) === jobId) await store.delete(turnKey(wish))
}

const parseTurn = parserOf<{ jobId: string }>('a turn', ({ jobId }) => typeof jobId === 'string')

/** The job that has a turn; undefined for an unreadable one, which ends by its age. */
export async function holderOf(store: ObjectStore, key: string): Promise<string | undefined> {
  return (await readDocument(store, key, parseTurn).catch(ignoreBadDocument))?.jobId
}
