import { layout } from './layout'
import type { ObjectStore } from './store'

/** Adds a job to the index of all jobs by their age, which is the order in which a store lists it. Repeating it is harmless. */
export async function noteSubmission(
  store: ObjectStore,
  { jobId, submittedAtMs }: { jobId: string; submittedAtMs: number },
): Promise<void> {
  await store.putIfAbsent(layout.submission(submittedAtMs, jobId), '')
}

/** Removes a submission whose workflow never began. If anything but the submission is stored of the job, nothing is removed. */
export async function forgetSubmission(
  store: ObjectStore,
  { jobId, submittedAtMs }: { jobId: string; submittedAtMs: number },
): Promise<void> {
  const entry = layout.record(jobId, 0)
  const isOfSubmission = (key: string): boolean =>
    key === entry || key === layout.secrets(jobId) || key.startsWith(layout.bundles(jobId))
  const keys: string[] = []
  for await (const { key } of store.list(layout.job(jobId))) {
    if (!isOfSubmission(key)) return
    if (key !== entry) keys.push(key)
  }
  for (const key of [...keys, layout.submission(submittedAtMs, jobId), entry]) await store.delete(key)
}

/** Yields the ids of all jobs that were ever submitted, newest first; reads only as many as the caller needs. */
export async function* newestSubmissions(store: ObjectStore): AsyncGenerator<string> {
  const prefix = layout.submissions()
  for await (const { key } of store.list(prefix)) {
    const match = /^\d{15}-(.+)$/.exec(key.slice(prefix.length))
    if (match !== null) yield match[1]!
  }
}
