/** Whether a workflow execution with this status (Temporal's names) is open. A paused one continues when a person resumes it. */
export function isOpenStatus(name: string): boolean {
  return name === 'RUNNING' || name === 'PAUSED'
}
