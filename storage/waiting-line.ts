import type { Waiter } from '../core/waiting'
import { putDocument, putDocumentIfAbsent } from './json'
import { layout } from './layout'
import type { ObjectStore } from './store'

/** A waiter as the store has it. The store's clock says when it was last heard of. */
export interface SeenWaiter extends Waiter {
  key: string
  seenAtMs: number
}

/** The right of one job of a wish to order a machine. */
export interface Turn {
  key: string
  wish: string
  takenAtMs: number
}

export interface Line {
  waiters: SeenWaiter[]
  turns: Turn[]
}

export const waiterKey = ({ sinceMs, jobId, wish, backends }: Waiter): string =>
  `${layout.waiting()}${String(sinceMs).padStart(15, '0')}.${jobId}.${wish}.${backends.join('+')}.json`

const turnKey = (wish: string): string => `${layout.waiting()}turn.${wish}.json`

/** Everybody who waits, and who orders; one list, no reads. */
export async function readLine(store: ObjectStore): Promise<Line> {
  const line: Line = { waiters: [], turns: [] }
  for await (const { key, modifiedAtMs } of store.list(layout.waiting())) {
    const [first, second = '', third, backends = ''] = key.slice(layout.waiting().length).split('.')
    if (first === 'turn') line.turns.push({ key, wish: second, takenAtMs: modifiedAtMs })
    else if (third !== undefined)
      line.waiters.push({
        ...{ key, sinceMs: Number(first), jobId: second, wish: third, seenAtMs: modifiedAtMs },
        backends: backends.split('+'),
      })
  }
  return line
}

/** Joins the line, or says that the job is still in it. */
export async function putWaiter(store: ObjectStore, waiter: Waiter): Promise<void> {
  await putDocument(store, waiterKey(waiter), waiter)
}

/** False when another job has the turn. */
export async function takeTurn(store: ObjectStore, { wish, jobId }: Waiter): Promise<boolean> {
  if (await putDocumentIfAbsent(store, turnKey(wish), { jobId })) return true
  return (await holderOf(store, turnKey(wish))) === jobId
}

/** Takes a job out of its line; `keepsTurn` until its order has been answered. Returns who waits still, and the turns that ended. */
export async function leaveLine(
  store: ObjectStore,
  jobId: string,
  { keepsTurn = false }: { keepsTurn?: boolean } = {},
): Promise<Line> {
  const { waiters, turns } = await readLine(store)
  for (const waiter of waiters) if (waiter.jobId === jobId) await store.delete(waiter.key)
  const left: Line = { waiters: waiters.filter((waiter) => waiter.jobId !== jobId), turns: [] }
  if (keepsTurn) return left
  for (const turn of turns) {
    if ((await holderOf(store, turn.key)) !== jobId) continue
    await store.delete(turn.key)
    left.turns.push(turn)
  }
  return left
}

/** Gives the turn back; the job stays in line. */
export async function giveTurnBack(store: ObjectStore, { wish, jobId }: Waiter): Promise<void> {
  if ((await holderOf(store, turnKey(wish))) === jobId) await store.delete(turnKey(wish))
}

async function holderOf(store: ObjectStore, key: string): Promise<string | undefined> {
  const body = await store.get(key)
  return body === undefined ? undefined : (JSON.parse(body.toString('utf8')) as { jobId?: string }).jobId
}
