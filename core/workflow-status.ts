/** Whether a workflow execution of this status (Temporal's names) is not over. A paused one continues when a person resumes it. */
export function isOpenStatus(name: string): boolean {
  return name === 'RUNNING' || name === 'PAUSED'
}
