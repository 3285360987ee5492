import { layout } from './layout'
import type { ObjectStore } from './store'

/** Notes a job in the index of all jobs by their age, which is the order in which a store lists it. Repeating it is harmless. */
export async function noteSubmission(
  store: ObjectStore,
  { jobId, submittedAtMs }: { jobId: string; submittedAtMs: number },
): Promise<void> {
  await store.putIfAbsent(layout.submission(submittedAtMs, jobId), '')
}

/** The ids of all jobs that were ever submitted, the newest first; read as far as they are wanted. */
export async function* newestSubmissions(store: ObjectStore): AsyncGenerator<string> {
  const prefix = layout.submissions()
  for await (const { key } of store.list(prefix)) {
    const match = /^\d{15}-(.+)$/.exec(key.slice(prefix.length))
    if (match !== null) yield match[1]!
  }
}
