import { isFinal } from '../../core/job/job'
import type { JobStatus } from '../../core/messages'
import { eachOf } from '../../storage/parallel'
import { Gaps } from '../../storage/json'
import { layout } from '../../storage/layout'
import { readRecord, hasRecord, surveyRecords, type RecordSurvey } from '../../storage/record'
import { newestSubmissions } from '../../storage/submissions'
import type { ObjectStore } from '../../storage/store'
import { ENTRIES_PER_ATTEMPT, isCutShort, resultOf, statusFromRecord, submissionOf } from './history'
import { judgeClosed } from './closed'
import type { AttemptDocumentsRead, Unsettled } from './view'
import { FORGOTTEN, mayStart } from './workflow-state'

/** A job as its record, and the documents of its last attempt, describe it. */
export interface RecordedJob extends RecordSurvey {
  status: JobStatus
  newest?: AttemptDocumentsRead | undefined
  unsettled?: Unsettled | undefined
  /** Temporal no longer knows it, and its machine may still run. */
  isUndecided?: boolean
}

/** Records read in parallel; the first page answers most lists. */
const PAGE = 50
/** Limit on the records that one list reads, regardless of the number of matches. */
const READ_MAX = 1_000

export interface RecordedQuestion {
  limit: number
  /** Ids that the list already contains. */
  known: ReadonlySet<string>
  /** Whether the list wants a job. */
  wants: (job: RecordedJob) => boolean
  /** Whether Temporal has no workflow of a job whose record does not show its end; undefined if it did not answer. */
  isForgotten: (jobId: string) => Promise<boolean | undefined>
  nowMs: number
}

/** The answer to a `RecordedQuestion`. */
export interface RecordedJobs {
  jobs: RecordedJob[]
  /** Whether more may exist than were read. */
  isCutShort: boolean
  /** Jobs that Temporal may know: it did not answer. */
  undecided: string[]
  /** Jobs whose submission cannot be read, so that nothing is known of them. */
  unreadable: string[]
}

/** Returns jobs that only the record knows, newest first. */
export async function recordedJobs(
  store: ObjectStore,
  { limit, known, wants, isForgotten, nowMs }: RecordedQuestion,
): Promise<RecordedJobs> {
  const jobs: RecordedJob[] = []
  const undecided: string[] = []
  const unreadable: string[] = []
  let page: string[] = []
  let readTotal = 0
  const readPage = async (): Promise<void> => {
    const read = await eachOf(page, async (jobId) => (await readJob(store, jobId)) ?? lostJob(store, jobId))
    page = []
    for (const job of read) {
      if (jobs.length === limit) continue
      if (typeof job === 'string') unreadable.push(job)
      if (job === undefined || typeof job === 'string') continue
      if (resultOf(job.entries) === undefined) {
        const isGone = await isForgotten(job.status.id)
        if (isGone === undefined) undecided.push(job.status.id)
        if (isGone !== true) continue
      }
      const judged = await judgedWithoutWorkflow(store, job, nowMs)
      if (wants(judged)) jobs.push(judged)
    }
  }
  for await (const jobId of newestSubmissions(store)) {
    if (jobs.length === limit || readTotal === READ_MAX)
      return { jobs, isCutShort: jobs.length < limit, undecided, unreadable }
    if (known.has(jobId)) continue
    readTotal += 1
    page.push(jobId)
    if (page.length === Math.min(PAGE, READ_MAX)) await readPage()
  }
  await readPage()
  return { jobs, isCutShort: false, undecided, unreadable }
}

/** State from the last entries of a record and the first one. */
export async function readLastEntries(store: ObjectStore, jobId: string): Promise<RecordSurvey> {
  const last = await surveyRecords(store, jobId, { last: ENTRIES_PER_ATTEMPT })
  const { entries, unreadable } = last
  const name = layout.record(jobId, 0).slice(layout.job(jobId).length)
  if (submissionOf(entries) !== undefined || unreadable.includes(name)) return last
  const gaps = new Gaps()
  const first = await gaps.read(name, () => readRecord(store, jobId, 0))
  return {
    entries: first === undefined ? entries : [first, ...entries],
    unreadable: [...gaps.names, ...unreadable],
  }
}

/** The id of a job that has a record without a readable submission. */
async function lostJob(store: ObjectStore, jobId: string): Promise<string | undefined> {
  return (await hasRecord(store, jobId)) ? jobId : undefined
}

async function readJob(store: ObjectStore, jobId: string): Promise<RecordedJob | undefined> {
  const survey = await readLastEntries(store, jobId)
  const status = statusFromRecord(survey.entries)
  return status && { ...survey, status }
}

/** A job without a workflow: a new one may be about to start. */
async function judgedWithoutWorkflow(
  store: ObjectStore,
  { entries, unreadable, status: recorded }: RecordedJob,
  nowMs: number,
): Promise<RecordedJob> {
  const hasGaps = isCutShort({ entries, unreadable })
  if (mayStart(recorded, entries, nowMs)) return { entries, unreadable, status: recorded }
  const judged = await judgeClosed(store, { recorded, entries, seen: FORGOTTEN, nowMs, hasGaps })
  return { entries, unreadable, ...judged }
}

/** The end of a job according to its record. */
export function endedAtMsOf({ status, entries }: RecordedJob): number | undefined {
  return (
    resultOf(entries)?.finishedAtMs ?? (isFinal(status.state) ? status.attempts.at(-1)?.endedAtMs : undefined)
  )
}
