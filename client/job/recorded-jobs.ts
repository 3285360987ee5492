import { isFinal } from '../../core/job/job'
import type { JobStatus } from '../../core/messages'
import type { RecordEntry } from '../../core/job/record'
import { eachOf } from '../../storage/parallel'
import { readRecord, readRecords } from '../../storage/record'
import { newestSubmissions } from '../../storage/submissions'
import type { ObjectStore } from '../../storage/store'
import { ENTRIES_PER_ATTEMPT, resultOf, statusFromRecord, submissionOf } from './history'
import { closedWithoutRecord, STARTS_WITHIN_MS } from './workflow-state'

/** A job as its record alone describes it. */
export interface RecordedJob {
  entries: RecordEntry[]
  status: JobStatus
  isFinished: boolean
}

/** Records read in parallel; the first page answers most lists. */
const PAGE = 50
/** Limit on the records that one list reads, regardless of the number of matches. */
const READ_MAX = 1_000

export interface RecordedQuestion {
  limit: number
  /** Ids that the list already contains. */
  known: ReadonlySet<string>
  /** Whether the list wants finished jobs. */
  wants: (status: JobStatus) => boolean
  /** Whether Temporal has no workflow of a job whose record does not show its end. */
  isForgotten: (jobId: string) => Promise<boolean>
  nowMs: number
}

/** Returns finished jobs that only the record knows, newest first, and whether more may exist than were read. */
export async function recordedJobs(
  store: ObjectStore,
  { limit, known, wants, isForgotten, nowMs }: RecordedQuestion,
): Promise<{ jobs: RecordedJob[]; isCutShort: boolean }> {
  const jobs: RecordedJob[] = []
  let page: string[] = []
  let readTotal = 0
  const readPage = async (): Promise<void> => {
    const read = await eachOf(page, (jobId) => readJob(store, jobId))
    page = []
    for (const job of read) {
      if (job === undefined || jobs.length === limit) continue
      const { status, isFinished } = job
      const isOver =
        isFinished || (nowMs - status.submittedAtMs > STARTS_WITHIN_MS && (await isForgotten(status.id)))
      const shown = isFinished ? status : forgotten(job)
      if (isOver && wants(shown)) jobs.push({ ...job, status: shown })
    }
  }
  for await (const jobId of newestSubmissions(store)) {
    if (jobs.length === limit || readTotal === READ_MAX) return { jobs, isCutShort: jobs.length < limit }
    if (known.has(jobId)) continue
    readTotal += 1
    page.push(jobId)
    if (page.length === Math.min(PAGE, READ_MAX)) await readPage()
  }
  await readPage()
  return { jobs, isCutShort: false }
}

/** State from the last entries of a record and the first one. */
export async function readLastEntries(store: ObjectStore, jobId: string): Promise<RecordEntry[]> {
  const entries = await readRecords(store, jobId, { last: ENTRIES_PER_ATTEMPT })
  if (submissionOf(entries) !== undefined) return entries
  const first = await readRecord(store, jobId, 0)
  return first === undefined ? entries : [first, ...entries]
}

async function readJob(store: ObjectStore, jobId: string): Promise<RecordedJob | undefined> {
  const entries = await readLastEntries(store, jobId)
  const status = statusFromRecord(entries)
  return status && { entries, status, isFinished: resultOf(entries) !== undefined }
}

/** Describes a job whose workflow closed without a final entry and no longer exists on the server. */
function forgotten({ status, entries }: RecordedJob): JobStatus {
  return closedWithoutRecord(status, { closed: 'FORGOTTEN', attemptClosedAtMs: entries.at(-1)?.atMs })
}

/** The end of a job according to its record. */
export function endedAtMsOf({ status, entries }: RecordedJob): number | undefined {
  return (
    resultOf(entries)?.finishedAtMs ??
    (isFinal(status.state) ? (status.attempts.at(-1)?.endedAtMs ?? entries.at(-1)?.atMs) : undefined)
  )
}
