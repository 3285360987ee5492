import { getExternalWorkflowHandle, setCurrentDetails, workflowInfo } from '@temporalio/workflow'
import { failureFrom } from '../core/failure'
import { WARNING_SIGNAL, type WarningNotice } from '../core/messages'
import { sentence } from './markdown'

/** Forwards a warning of the runner to the job, whose page shows it. Does nothing if the job was terminated by hand. */
export async function warnJob(notice: WarningNotice): Promise<void> {
  const { parent } = workflowInfo()
  if (parent === undefined) return
  try {
    await getExternalWorkflowHandle(parent.workflowId).signal(WARNING_SIGNAL, notice)
  } catch (error) {
    setCurrentDetails(
      `The warning could not be delivered to the job: ${sentence(failureFrom(error).message)}`,
    )
  }
}
