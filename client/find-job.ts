import type { JobInput } from '../core/messages'
import { layout } from '../storage/layout'
import { eachOf } from '../storage/parallel'
import { readRecord } from '../storage/record'
import type { Context } from './context'
import { CrucibleError } from './errors'
import { submissionOf } from './history'
import { listJobs } from './list'
import { noSuchJob } from './look'

/** Jobs that a message about an ambiguous name lists. */
const NAMED_MAX = 10

/** What a job was submitted with, or `undefined` when there is no such job. */
export async function submissionWithId({ store }: Context, jobId: string): Promise<JobInput | undefined> {
  const first = await readRecord(store, jobId, 0)
  return first && submissionOf([first])
}

/**
 * The id of the job that a person means by an id, the beginning of one, or a name. Throws `not-found`, or `usage` with the
 * candidates when several could be meant.
 */
export async function findJob(context: Context, meant: string): Promise<string> {
  if (!isKeyPart(meant)) throw noSuchJob(context, meant)
  if ((await context.store.head(layout.record(meant, 0))) !== undefined) return meant
  const byId = await idsBeginningWith(context, meant)
  const byName = byId.length > 0 ? [] : await idsNamed(context, meant)
  const found = [...new Set([...byId, ...byName])]
  if (found.length === 1) return found[0]!
  if (found.length === 0) throw noSuchJob(context, meant)
  throw await ambiguous(context, meant, found)
}

/** Text that can stand in a key of the store; anything else is no job's id or name. */
function isKeyPart(text: string): boolean {
  return /^[\w.-]+$/.test(text) && text !== '.' && text !== '..'
}

async function idsBeginningWith({ store }: Context, beginning: string): Promise<string[]> {
  return store.listFolders(`${layout.jobs()}${beginning}`)
}

/** Asked of Temporal's index where it answers; else of each job's record. */
async function idsNamed(context: Context, name: string): Promise<string[]> {
  try {
    return (await listJobs(context, { name, limit: NAMED_MAX + 1 })).map(({ id }) => id)
  } catch {
    const jobs = await knownJobs(context)
    return jobs.filter((job) => job.name === name).map(({ id }) => id)
  }
}

export interface KnownJob {
  id: string
  name: string
  submittedAtMs: number
}

/** Every job of the store, newest first, without asking Temporal. */
export async function knownJobs(context: Context): Promise<KnownJob[]> {
  const ids = await context.store.listFolders(layout.jobs())
  const jobs = await eachOf(ids, async (id) => ({ id, input: await submissionWithId(context, id) }))
  return jobs
    .flatMap(({ id, input }) =>
      input === undefined ? [] : [{ id, name: input.spec.name, submittedAtMs: input.submittedAtMs }],
    )
    .sort((a, b) => b.submittedAtMs - a.submittedAtMs)
}

async function ambiguous(context: Context, meant: string, ids: string[]): Promise<CrucibleError> {
  const shown = await eachOf(ids.slice(0, NAMED_MAX), async (id) => {
    const input = await submissionWithId(context, id)
    return input === undefined
      ? `  ${id}`
      : `  ${id}  ${input.spec.name}  submitted ${new Date(input.submittedAtMs).toISOString()}`
  })
  const more = ids.length > NAMED_MAX ? ['  and more'] : []
  return new CrucibleError('usage', [`"${meant}" may be any of these jobs:`, ...shown, ...more].join('\n'), {
    hint: 'Name one by its id.',
    details: { candidates: ids.slice(0, NAMED_MAX) },
  })
}
