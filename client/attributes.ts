import type { WorkflowExecutionInfo } from '@temporalio/client'
import { defineSearchAttributeKey } from '@temporalio/common'
import { JOB_REASONS, JOB_STATES, type JobReason, type JobState } from '../core/job/job'
import { SEARCH_ATTRIBUTES } from '../core/queues'
import { isOpenStatus } from '../core/workflow-status'

const keyOf = (name: keyof typeof SEARCH_ATTRIBUTES) =>
  defineSearchAttributeKey(SEARCH_ATTRIBUTES[name], 'KEYWORD')

/** The search attributes as the SDK names them. */
export const ATTRIBUTE_KEYS = {
  name: keyOf('name'),
  owner: keyOf('owner'),
  state: keyOf('state'),
  reason: keyOf('reason'),
  backend: keyOf('backend'),
}

/** The search attributes of a job's or an attempt's workflow; empty texts for missing ones. */
export function attributeOf(
  { typedSearchAttributes }: Pick<WorkflowExecutionInfo, 'typedSearchAttributes'>,
  name: keyof typeof ATTRIBUTE_KEYS,
): string {
  return typedSearchAttributes.get(ATTRIBUTE_KEYS[name]) ?? ''
}

/** State of a job, and its reason if known. */
export interface StateKnown {
  state: JobState
  reason: JobReason | null
}

/** How a workflow's close status ends a job, if the search attributes lack its last state. */
const STATE_OF_CLOSED: Readonly<Record<string, StateKnown>> = {
  COMPLETED: { state: 'succeeded', reason: 'completed' },
  CANCELLED: { state: 'cancelled', reason: 'cancelled' },
  FAILED: { state: 'failed', reason: null },
}

/**
 * The state of a job as Temporal alone knows it; `undefined` if its workflow was ended from outside, because only the store knows more. Anybody
 * who reaches the server can start a workflow with any search attributes: they count only if they are states and reasons of a job, and agree
 * with the end of the workflow.
 */
export function stateInTemporal(
  execution: Pick<WorkflowExecutionInfo, 'typedSearchAttributes' | 'status'>,
): StateKnown | undefined {
  const { name } = execution.status
  const state = JOB_STATES.find((one) => one === attributeOf(execution, 'state'))
  const reason = JOB_REASONS.find((one) => one === attributeOf(execution, 'reason')) ?? null
  if (isOpenStatus(name)) return state && { state, reason }
  const closed = STATE_OF_CLOSED[name]
  return closed?.state === state ? closed && { ...closed, reason } : closed
}
