import { layout } from './layout'
import type { ObjectStore } from './store'

/** A hand-over that no machine has deleted. */
export interface StoredHandOver {
  key: string
  jobId: string
  attempt: number
  putAtMs: number
}

/** Lists the hand-overs of all jobs that are in the store. */
export async function listHandOvers(store: ObjectStore): Promise<StoredHandOver[]> {
  const found: StoredHandOver[] = []
  for await (const { key, modifiedAtMs } of store.list(layout.handOvers())) {
    const [jobId, attempt] = key.slice(layout.handOvers().length).split('/')
    found.push({ key, jobId: jobId!, attempt: Number(attempt), putAtMs: modifiedAtMs })
  }
  return found
}

/** Deletes every hand-over of an attempt: a machine that starts from now on does nothing. Repeatable. */
export async function deleteHandOvers(
  store: ObjectStore,
  { jobId, attempt }: { jobId: string; attempt: number },
): Promise<void> {
  for await (const { key } of store.list(layout.handOversOf(jobId, attempt))) await store.delete(key)
}
