import { getExternalWorkflowHandle, setCurrentDetails, workflowInfo } from '@temporalio/workflow'
import { failureFrom } from '../core/failure'
import type { RUNNING_SIGNAL, RunningNotice, WARNING_SIGNAL, WarningNotice } from '../core/messages'
import { sentence } from './markdown'

/** The job's page shows it; a job that is gone (ended by hand) needs no telling. */
export async function tellJob(
  ...[signal, notice]:
    | [signal: typeof RUNNING_SIGNAL, notice: RunningNotice]
    | [signal: typeof WARNING_SIGNAL, notice: WarningNotice]
): Promise<void> {
  const { parent } = workflowInfo()
  if (parent === undefined) return
  try {
    await getExternalWorkflowHandle(parent.workflowId).signal(signal, notice)
  } catch (error) {
    setCurrentDetails(`The job could not be told: ${sentence(failureFrom(error).message)}`)
  }
}
