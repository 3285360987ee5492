import { oneLine } from '../../core/one-line'
import { formatInstant } from '../../core/time/time'
import { isFinal } from '../../core/job/job'
import type { JobInput } from '../../core/messages'
import { Gaps } from '../../storage/json'
import { layout } from '../../storage/layout'
import { eachOf } from '../../storage/parallel'
import { hasRecord, readRecord, readRecords } from '../../storage/record'
import type { Context } from '../context'
import { JOB_ID_PATTERN } from '../../core/queues'
import { CrucibleError } from '../errors'
import { StoreOutage } from '../store-outage'
import { resultOf, submissionOf } from './history'
import { listJobs } from './list'
import { noSuchJob } from './read-view'

/** Jobs that a message about an ambiguous name lists. */
const NAMED_MAX = 10

/** Throws `usage` for an id that no job can have. */
export function checkJobId(id: string): void {
  if (JOB_ID_PATTERN.test(id)) return
  throw new CrucibleError('usage', `"${id}" is not a valid job id.`, {
    hint: 'Begin with a letter and write at most 40 of a-z, 0-9 and inner dashes, such as nightly-2027-01-31.',
  })
}

/** The submission of a job, or `undefined` without such a job. */
export async function submissionWithId({ store }: Context, jobId: string): Promise<JobInput | undefined> {
  const first = await readRecord(store, jobId, 0)
  return first && submissionOf([first])
}

/** Like `submissionWithId`, for a search among jobs: one with an unreadable submission is not found by its name. */
async function readableSubmission({ store }: Context, jobId: string): Promise<JobInput | undefined> {
  const first = await new Gaps().read('', () => readRecord(store, jobId, 0))
  return first && submissionOf([first])
}

/**
 * Returns the id of the job for an id, a name, or a prefix of an id. A name means its open job, otherwise its newest, which is noted.
 * Throws `not-found`, or `usage` with the candidates if the text is ambiguous.
 */
export async function findJob(context: Context, asked: string): Promise<string> {
  const outage = new StoreOutage(context)
  const jobId = await outage.during(search(context, asked))
  outage.end()
  return jobId
}

async function search(context: Context, asked: string): Promise<string> {
  const meant = asked.trim()
  if (!isKeyPart(meant)) throw await noSuchJob(context, meant)
  if ((await context.store.head(layout.record(meant, 0))) !== undefined) return meant
  // Its submission may be lost.
  if (await hasRecord(context.store, meant)) return meant
  const byId = await idsBeginningWith(context, meant)
  const named = await jobsNamed(context, meant, byId)
  if (named.length > 0) return chosenOf(context, meant, named)
  if (byId.length === 1) return byId[0]!
  if (byId.length === 0) throw await noSuchJob(context, meant)
  throw await ambiguous(context, meant, byId)
}

/** Whether a text is valid in a key of the store; other texts are not ids or names of jobs. */
function isKeyPart(text: string): boolean {
  return /^[\w.-]+$/.test(text) && text !== '.' && text !== '..'
}

async function idsBeginningWith({ store }: Context, beginning: string): Promise<string[]> {
  return store.listFolders(`${layout.jobs()}${beginning}`)
}

interface NamedJob {
  id: string
  submittedAtMs: number
  isOver: boolean
}

async function chosenOf(context: Context, name: string, named: NamedJob[]): Promise<string> {
  const [newest, ...older] = [...named].sort((a, b) => b.submittedAtMs - a.submittedAtMs)
  const open = named.filter(({ isOver }) => !isOver)
  // A command such as cancel must not choose between two running jobs.
  if (open.length > 1)
    throw await ambiguous(
      context,
      name,
      open.map(({ id }) => id),
    )
  const { id } = open[0] ?? newest!
  const why = open.length > 0 ? 'the open one' : 'the newest'
  if (older.length > 0) context.note(`"${name}" means ${id}, ${why} of the jobs with that name.`)
  return id
}

/** Limit on ids of jobs that may be too new for Temporal's search attributes; beyond it, the search attributes are trusted. */
const NOT_INDEXED_MAX = 50

/**
 * Finds jobs by name in Temporal's search attributes, and in the record for other jobs; if Temporal does not answer, in each job's record.
 */
async function jobsNamed(context: Context, name: string, idsBeginning: string[]): Promise<NamedJob[]> {
  let indexed: NamedJob[]
  try {
    const listed = await listJobs(context, { name, limit: NAMED_MAX })
    indexed = listed.map(({ id, submittedAtMs, state }) => ({
      id,
      submittedAtMs,
      isOver: state !== null && isFinal(state),
    }))
  } catch {
    const jobs = (await knownJobs(context)).filter((job) => job.name === name)
    return eachOf(jobs, async ({ id, submittedAtMs }) => ({
      id,
      submittedAtMs,
      isOver: await isOver(context, id),
    }))
  }
  const others = idsBeginning.filter(
    (id) => id.startsWith(`${name}-`) && !indexed.some((job) => job.id === id),
  )
  if (others.length > NOT_INDEXED_MAX) return indexed
  const read = await eachOf(others, async (id): Promise<NamedJob[]> => {
    const input = await readableSubmission(context, id)
    if (input?.spec.name !== name) return []
    return [{ id, submittedAtMs: input.submittedAtMs, isOver: await isOver(context, id) }]
  })
  return [...indexed, ...read.flat()]
}

async function isOver({ store }: Context, jobId: string): Promise<boolean> {
  const last = await new Gaps().read('', () => readRecords(store, jobId, { last: 1 }))
  return last !== undefined && resultOf(last) !== undefined
}

export interface ListedJob {
  id: string
  name: string
  submittedAtMs: number
}

/** Returns every job of the store, newest first, without a request to Temporal. */
export async function knownJobs(context: Context): Promise<ListedJob[]> {
  const ids = await context.store.listFolders(layout.jobs())
  const jobs = await eachOf(ids, async (id) => ({ id, input: await readableSubmission(context, id) }))
  return jobs
    .flatMap(({ id, input }) =>
      input === undefined ? [] : [{ id, name: input.spec.name, submittedAtMs: input.submittedAtMs }],
    )
    .sort((a, b) => b.submittedAtMs - a.submittedAtMs)
}

async function ambiguous(context: Context, meant: string, ids: string[]): Promise<CrucibleError> {
  const shown = await eachOf(ids.slice(0, NAMED_MAX), async (id) => {
    const input = await readableSubmission(context, id)
    return input === undefined
      ? `  ${id}`
      : `  ${id}  ${oneLine(input.spec.name)}  submitted ${formatInstant(input.submittedAtMs)}`
  })
  const more = ids.length > NAMED_MAX ? ['  and more'] : []
  return new CrucibleError('usage', [`"${meant}" matches several jobs:`, ...shown, ...more].join('\n'), {
    hint: 'Use the id of one of them.',
    details: { candidates: ids.slice(0, NAMED_MAX) },
  })
}
