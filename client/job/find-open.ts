import type { Client, WorkflowExecutionDescription } from '@temporalio/client'
import { GRPC } from '../../core/grpc'
import { SEARCH_ATTRIBUTES, jobWorkflowId, WORKFLOW_TYPES } from '../../core/queues'
import { SECOND_MS } from '../../core/time/time'
import type { Context } from '../context'
import { withLimit } from '../deadline'
import { CrucibleError, grpcCodeOf, isTemporals } from '../errors'
import { findJob } from './find-job'
import { jobIdOf } from './list'

/** Time for the server to answer. */
const ANSWER_LIMIT_MS = 10 * SECOND_MS
/** Candidates that a message lists. */
const NAMED_MAX = 10

/**
 * Returns the id of the job for an id, a name, or a prefix of an id, for a command that acts on an open job. Temporal alone answers for an
 * open job, so the store may be away or damaged. Throws like `findJob`.
 */
export async function findOpenJob(context: Context, meant: string): Promise<string> {
  const client = await connect(context, meant)
  if ((await describeWorkflow(client, meant)) !== undefined) return meant
  const open = await openJobs(client, meant)
  const [id, ...others] = open
  if (id !== undefined && others.length === 0) return id
  if (id === undefined) return findJob(context, meant)
  throw new CrucibleError(
    'usage',
    [`"${meant}" matches several open jobs:`, ...open.slice(0, NAMED_MAX).map((each) => `  ${each}`)].join(
      '\n',
    ),
    { hint: 'Use the id of one of them.', details: { candidates: open.slice(0, NAMED_MAX) } },
  )
}

/** Without a server, the store still knows a wrong name. */
async function connect(context: Context, meant: string): Promise<Client> {
  try {
    return await context.temporal()
  } catch (error) {
    await findJob(context, meant).catch((wrong: unknown) => {
      if (wrong instanceof CrucibleError && (wrong.kind === 'not-found' || wrong.kind === 'usage'))
        throw wrong
    })
    throw error
  }
}

/** The workflow of a job; `undefined` if the server does not know it. */
export async function describeWorkflow(
  client: Client,
  jobId: string,
): Promise<WorkflowExecutionDescription | undefined> {
  try {
    return await withLimit(client, ANSWER_LIMIT_MS, () =>
      client.workflow.getHandle(jobWorkflowId(jobId)).describe(),
    )
  } catch (error) {
    if (isTemporals(error, 'WorkflowNotFoundError')) return undefined
    throw error
  }
}

/** The open jobs with a name; without any, those whose ids begin with the text. */
async function openJobs(client: Client, text: string): Promise<string[]> {
  // Quotes and backslashes are in no name or id.
  if (!/^[\w.-]+$/.test(text)) return []
  const named = await openWhere(client, `${SEARCH_ATTRIBUTES.name} = '${text}'`)
  return named.length > 0 ? named : openWhere(client, `WorkflowId STARTS_WITH '${jobWorkflowId(text)}'`)
}

async function openWhere(client: Client, term: string): Promise<string[]> {
  const query = `WorkflowType = '${WORKFLOW_TYPES.job}' AND ${term} AND ExecutionStatus = 'Running'`
  const ids: string[] = []
  try {
    for await (const { workflowId } of client.workflow.list({ query, pageSize: NAMED_MAX })) {
      ids.push(jobIdOf(workflowId))
      if (ids.length > NAMED_MAX) break
    }
  } catch (error) {
    // A server without any worker so far does not know the search attributes.
    if (grpcCodeOf(error) !== GRPC.invalidArgument) throw error
  }
  return ids
}
