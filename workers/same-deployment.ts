import { ApplicationFailure, Context } from '@temporalio/activity'
import type { Client } from '@temporalio/client'
import type { ActivityExecuteInput, Next, ActivityInboundCallsInterceptor } from '@temporalio/worker'
import type { ObjectStore } from '../storage/store'
import { knownDeployment } from './deployment'

/** A worker was started with the server of one deployment and the store of another. */
export class ForeignDeploymentError extends Error {
  constructor(at: { address: string; known: string; store: ObjectStore; deployment: string }) {
    super(
      `The Temporal server at ${at.address} belongs to deployment ${at.known}, the store ${at.store.url} to ${at.deployment}. ` +
        'Name the server and the store of one deployment (TEMPORAL_ADDRESS, CRUCIBLE_HOME, CRUCIBLE_STORE). ' +
        'If the server was reset or is to change hands: crucible gc --adopt.',
    )
    this.name = 'ForeignDeploymentError'
  }
}

/** Throws `ForeignDeploymentError` before a worker takes its first task, where the server is known to be another deployment's. */
export async function checkSameDeployment(
  client: Client,
  at: { address: string; store: ObjectStore; deployment: string },
): Promise<void> {
  const known = await knownDeployment(client)
  if (known !== undefined && known !== at.deployment) throw new ForeignDeploymentError({ ...at, known })
}

/**
 * Refuses each task that names another deployment, before anything is read or written. Retryable: a worker of that deployment may
 * take it.
 */
export function onlyFor(deployment: string): Pick<Required<ActivityInboundCallsInterceptor>, 'execute'> {
  return {
    async execute(
      input: ActivityExecuteInput,
      next: Next<ActivityInboundCallsInterceptor, 'execute'>,
    ): Promise<unknown> {
      const named = JUDGES.includes(Context.current().info.activityType)
        ? undefined
        : deploymentIn(input.args[0])
      if (named === undefined || named === deployment) return next(input)
      throw ApplicationFailure.create({
        type: 'transient',
        message: `This worker belongs to deployment ${deployment}, and the task to ${named}. Stop this worker, or start it with the store of ${named}.`,
        nonRetryable: false,
      })
    },
  }
}

/** They compare deployments themselves, and answer in the words of their verdicts. */
const JUDGES: readonly string[] = ['collectGarbage', 'collectStoreGarbage']

/** The deployment that an activity's input names, of itself or in its order. */
function deploymentIn(input: unknown): string | undefined {
  const { deployment, order } = (input ?? {}) as { deployment?: unknown; order?: { deployment?: unknown } }
  const named = deployment ?? order?.deployment
  return typeof named === 'string' ? named : undefined
}
