import type { BackendName } from './offer'

/** Task queue of the orchestrator: workflows, planning, decisions, documents. */
export const ORCHESTRATOR_QUEUE = 'crucible'

/** Task queue of a backend's verbs. */
export function backendQueue(backend: BackendName): string {
  return `crucible.${backend}`
}

/** Task queue of the launches of a backend whose account limits them per minute (`Pace.launchesPerMinute`). */
export function launchQueue(backend: BackendName): string {
  return `crucible.${backend}.launch`
}

/** Task queue of a backend's watches: thousands of slots, so that they never starve a launch or a terminate. */
export function watchQueue(backend: BackendName): string {
  return `crucible.${backend}.watch`
}

/** Role of the process that runs the workflows. */
export const ORCHESTRATOR_ROLE = 'orchestrator'

/** The role whose workers serve a queue: the orchestrator or a backend. Undefined for a queue of others. */
export function roleServing(queue: string): string | undefined {
  if (queue === ORCHESTRATOR_QUEUE) return ORCHESTRATOR_ROLE
  return /^crucible\.([^.]+)(?:\.watch|\.launch)?$/.exec(queue)?.[1]
}

export const WORKFLOW_TYPES = {
  job: 'job',
  attempt: 'attempt',
  garbageCollection: 'garbageCollection',
  treasury: 'treasury',
  reserveCapacity: 'reserveCapacity',
  buyCapacity: 'buyCapacity',
  retrain: 'retrain',
} as const

export const GARBAGE_COLLECTION_SCHEDULE_ID = 'crucible-garbage-collection'

export function jobWorkflowId(jobId: string): string {
  return `job/${jobId}`
}

/** The Temporal Schedule of a retraining file, and the beginning of the ids of its runs. */
export function retrainScheduleId(name: string): string {
  return `retrain/${name}`
}

/** The money of one calendar month (UTC), such as `2026-11`. */
export function treasuryWorkflowId(month: string): string {
  return `treasury/${month}`
}

/** Id of the workflow that manages a reservation from request to end. */
export function reservationWorkflowId(reservationId: string): string {
  return `reservation/${reservationId}`
}

/** The only buyer of an account in a Region: two purchases never run at once. */
export function buyerWorkflowId({
  backend,
  account,
  region,
}: {
  backend: BackendName
  account: string
  region: string
}): string {
  return `buyer/${backend}/${account}/${region}`
}

export function attemptWorkflowId(jobId: string, attempt: number): string {
  return `job/${jobId}/${attempt}`
}

/** Legal as a resource name with every provider: at most 60 of `[a-z0-9-]`. */
export function attemptIdOf(jobId: string, attempt: number): string {
  return `${jobId}-${attempt}`
}

/** Environment variable of every process of a machine; its value is the machine's name on its host. */
export const MACHINE_VARIABLE = 'CRUCIBLE_MACHINE'

/**
 * The name of an attempt's machine on its host: of its processes, its control group and its container. Deployments that share a host may
 * have equal attempt ids.
 */
export function machineNameOf({ attemptId, deployment }: { attemptId: string; deployment: string }): string {
  return `${attemptId}.${deployment}`
}

/** The idempotency token of an attempt's order. Deployments that share an account may have equal attempt ids. */
export function orderTokenOf(attemptId: string, deployment: string): string {
  return `${attemptId}-${deployment}`
}

/** The name of one send of an attempt's order, legal as a hostname; never an attempt id. */
export function sendNameOf(attemptId: string, seq: number): string {
  return `${attemptId}-s${seq}`
}

/** Returns the job and the number in an attempt id, or `undefined` if the text is not an attempt id. */
export function parseAttemptId(attemptId: string): { jobId: string; attempt: number } | undefined {
  const match = /^(.+)-(\d+)$/.exec(attemptId)
  return match === null ? undefined : { jobId: match[1]!, attempt: Number(match[2]) }
}

/**
 * Form of a job id. The client makes an id from the job's name (`ids.ts`); a caller may supply another one. Forty characters leave room for
 * an attempt number and an owner's prefix within the sixty that every provider accepts as a name.
 */
export const JOB_ID_PATTERN = /^[a-z](?:[0-9a-z-]{0,38}[0-9a-z])?$/

/** The keyword search attributes, at most five of the ten that a SQL server has. They drive `list` and the Temporal UI. */
export const SEARCH_ATTRIBUTES = {
  name: 'CrucibleName',
  owner: 'CrucibleOwner',
  state: 'CrucibleState',
  reason: 'CrucibleReason',
  backend: 'CrucibleBackend',
} as const

/** Command that lets a workflow continue where a person terminated it; its newest run unless `runId` names another. */
export function resetCommand(workflowId: string, runId?: string): string {
  const run = runId === undefined ? '' : ` --run-id ${runId}`
  return `temporal workflow reset --workflow-id ${workflowId}${run} --type LastWorkflowTask --reason again`
}

/** Command that ends a workflow, so that another one can have its id. */
export function terminateCommand(workflowId: string): string {
  return `temporal workflow terminate --workflow-id ${workflowId}`
}
