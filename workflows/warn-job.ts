import { getExternalWorkflowHandle, setCurrentDetails, workflowInfo } from '@temporalio/workflow'
import { failureFrom } from '../core/failure'
import { WARNING_SIGNAL, type WarningNotice } from '../core/messages'
import { sentence } from './markdown'

/** Sends a warning of the runner to the job, whose page shows it. Does nothing where the job was terminated by hand. */
export async function warnJob(notice: WarningNotice): Promise<void> {
  const { parent } = workflowInfo()
  if (parent === undefined) return
  try {
    await getExternalWorkflowHandle(parent.workflowId).signal(WARNING_SIGNAL, notice)
  } catch (error) {
    setCurrentDetails(`The job could not be told: ${sentence(failureFrom(error).message)}`)
  }
}
