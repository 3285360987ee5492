import { ApplicationFailure, Context } from '@temporalio/activity'

/** An inbound interceptor of an activity worker. */
interface OnlyFor {
  execute<Input extends { args: unknown[] }>(
    input: Input,
    next: (input: Input) => Promise<unknown>,
  ): Promise<unknown>
}

/**
 * Refuses each task that names another deployment, before anything is read or written. Retryable: a worker of that deployment may
 * take it.
 */
export function onlyFor(deployment: string): OnlyFor {
  return {
    async execute(input, next) {
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
