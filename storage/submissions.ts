import { layout } from './layout'
import type { ObjectStore } from './store'

/** Adds a job to the index of all jobs by their age, which is the order in which a store lists it. Repeating it is harmless. */
export async function noteSubmission(
  store: ObjectStore,
  { jobId, submittedAtMs }: { jobId: string; submittedAtMs: number },
): Promise<void> {
  await store.putIfAbsent(layout.submission(submittedAtMs, jobId), '')
}

/** Yields the ids of all jobs that were ever submitted, newest first; reads only as many as the caller needs. */
export async function* newestSubmissions(store: ObjectStore): AsyncGenerator<string> {
  const prefix = layout.submissions()
  for await (const { key } of store.list(prefix)) {
    const match = /^\d{15}-(.+)$/.exec(key.slice(prefix.length))
    if (match !== null) yield match[1]!
  }
}
