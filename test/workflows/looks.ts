/** How the tests of workflows see what became of a job, and wait until it has: for events, however busy the machine is. */
import type { JobReason, JobState } from '../../core/job/job'
import type { Beat } from '../../core/documents'
import { layout } from '../../storage/layout'
import { until } from '../support/until'
import { statusOf, type Deployment, type JobHandle } from './harness'

/** Far more than anything takes that is waited for, on a machine that does other work. */
const PATIENCE_MS = 120_000
/** For `jest.setTimeout`. */
export const TEST_LIMIT_MS = 180_000

/** https://grpc.io/docs/guides/status-codes/ */
const NOT_FOUND = 5

export function eventually(isSo: () => boolean | Promise<boolean>): Promise<void> {
  return until(isSo, PATIENCE_MS)
}

export function inState(job: JobHandle, state: JobState): Promise<void> {
  return eventually(async () => (await statusOf(job)).state === state)
}

export function forReason(job: JobHandle, reason: JobReason): Promise<void> {
  return eventually(async () => (await statusOf(job)).reason === reason)
}

export function running(job: JobHandle, attempt = 1): Promise<void> {
  return eventually(async () => {
    const status = await statusOf(job)
    return status.state === 'running' && status.attemptsTotal === attempt
  })
}

/** What the runner of an attempt said last. */
export async function beatOf({ store }: Deployment, attempt = 1): Promise<Beat | undefined> {
  const body = await store.get(layout.beat('job-test', attempt))
  return body === undefined ? undefined : (JSON.parse(body.toString()) as Beat)
}

/** The workload of an attempt has come so far. */
export function atStep(deployment: Deployment, step: number, attempt = 1): Promise<void> {
  return eventually(async () => ((await beatOf(deployment, attempt))?.progress?.step ?? -1) >= step)
}

/** The first machine has lost its way to the store, and so does not obey what is put there. */
export function silent({ world }: Deployment): Promise<void> {
  return eventually(() => world.machines[0]?.isSilent === true)
}

/** The provider was asked so many times more about its machines, by watches that live to judge each answer. */
export function observed({ world }: Deployment, times: number): Promise<void> {
  const before = world.callsOf('observe').length
  return eventually(() => world.callsOf('observe').length >= before + times)
}

/** Sends updates that no worker can take yet, and waits until the server has them; the answers come with `result`. */
export async function waitingUpdates(
  { client, namespace }: Deployment,
  { workflowId }: JobHandle,
  updates: readonly [name: string, ...args: object[]][],
): Promise<{ result: Promise<unknown> }> {
  const handle = client.workflow.getHandle(workflowId)
  const sent = updates.map(([name, ...args], index) => {
    const updateId = `${name}-${index}`
    return { updateId, result: handle.executeUpdate(name, { updateId, args: args as [object] }) }
  })
  const isThere = (updateId: string): Promise<boolean> =>
    client.workflowService
      .pollWorkflowExecutionUpdate({ namespace, updateRef: { workflowExecution: { workflowId }, updateId } })
      .then(
        () => true,
        (error: { code?: number }) => {
          if (error.code === NOT_FOUND) return false
          throw error
        },
      )
  for (const { updateId } of sent) await eventually(() => isThere(updateId))
  return { result: Promise.all(sent.map(({ result }) => result)) }
}

/** How the job closed, with the failure's type and message where it failed. */
export async function ended(job: JobHandle): Promise<{ status: string; type?: string; message?: string }> {
  const outcome = await job.result().then(
    () => ({}),
    (error: { cause?: { type?: string; message?: string } }) => ({
      type: error.cause?.type,
      message: error.cause?.message,
    }),
  )
  const { status } = await job.describe()
  return { status: status.name, ...outcome }
}
