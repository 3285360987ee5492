import type { Client, WorkflowExecutionDescription } from '@temporalio/client'
import { jobWorkflowId, terminateCommand, WORKFLOW_TYPES } from '../core/queues'
import { eachOf } from '../storage/parallel'

/** A workflow that needs a person. */
export interface StuckWorkflow {
  workflowId: string
  message: string
  /** Command that ends it. */
  command: string
  /** Failed tries of its task; 0 if it takes no more signals. */
  tries: number
}

/** Tries of a workflow task before it counts as stuck: it may be retried after a worker was stopped. */
const TRIES_MAX = 3

/**
 * Temporal's limit on the signals of one run (`history.maximumSignalsPerExecution`). Each is an event, and workflows of Crucible begin a fresh
 * history, or end, long before they have as many events.
 */
const SIGNALS_MAX = 10_000

/** Beginning of the ids of jobs and attempts. */
const JOBS = jobWorkflowId('')

/** Why a workflow cannot continue or be told anything without a person; undefined if it can. */
export function stuckOf({
  workflowId,
  raw,
}: Pick<WorkflowExecutionDescription, 'workflowId' | 'raw'>): StuckWorkflow | undefined {
  const tries = raw?.pendingWorkflowTask?.attempt ?? 1
  const events = Number(raw?.workflowExecutionInfo?.historyLength ?? 0)
  const isFailing = tries > TRIES_MAX
  if (!isFailing && events < SIGNALS_MAX) return undefined
  const command = terminateCommand(workflowId)
  const ends = `\`${command}\` ends it${workflowId.startsWith(JOBS) ? ' and its machine' : ''}.`
  const message = isFailing
    ? `No worker can continue the workflow ${workflowId}: see its page. If this lasts, ${ends}`
    : `The workflow ${workflowId} has ${events} events, as after a flood of signals, and may take no more of them. If it is in the way, ${ends}`
  return { workflowId, message, command, tries: isFailing ? tries : 0 }
}

/** Open workflows that are looked at, newest first. */
const LOOKED_AT_MAX = 1_000

/** The open workflows that need a person, and how many were looked at; some may be workflows of others. */
export async function stuckWorkflows(client: Client): Promise<{ stuck: StuckWorkflow[]; lookedAt: number }> {
  const types = Object.values(WORKFLOW_TYPES).map((type) => `'${type}'`)
  const query = `ExecutionStatus = 'Running' AND WorkflowType IN (${types.join(', ')})`
  const ids: string[] = []
  for await (const { workflowId } of client.workflow.list({ query })) {
    ids.push(workflowId)
    if (ids.length === LOOKED_AT_MAX) break
  }
  const found = await eachOf(ids, async (workflowId) => {
    // One that has ended since is fine.
    const description = await client.workflow
      .getHandle(workflowId)
      .describe()
      .catch(() => undefined)
    return description && stuckOf(description)
  })
  return { stuck: found.filter((one) => one !== undefined), lookedAt: ids.length }
}
