import { randomUUID } from 'node:crypto'
import { Context } from '@temporalio/activity'

/** An id for what a worker sends, which begins with the run that asked for it, if one did. */
export function sentId(): string {
  const run = askingRun()
  return run === undefined ? randomUUID() : `${run}/${randomUUID()}`
}

function askingRun(): string | undefined {
  try {
    return Context.current().info.workflowExecution?.runId
  } catch {
    // Outside an activity.
    return undefined
  }
}
