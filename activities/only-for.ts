import { ApplicationFailure, type Context } from '@temporalio/activity'
import { carrying } from '../core/failure'
import { deploymentOf, unstamped } from '../core/stamps'
import { ELSEWHERE_MS } from './stamp-check'

/** An inbound interceptor of an activity worker. */
interface OnlyFor {
  execute<Input extends { args: unknown[] }>(
    input: Input,
    next: (input: Input) => Promise<unknown>,
  ): Promise<unknown>
}

/**
 * Refuses each task of another deployment before anything is read or written. Every workflow names its deployment in the stamp of
 * each of its activities, so this runs before the interceptor that removes the stamp. Retryable soon: a worker of that deployment
 * may take it.
 */
export function onlyFor({ info: { activityType } }: Pick<Context, 'info'>, deployment: string): OnlyFor {
  return {
    async execute(input, next) {
      const { args, stamp } = unstamped(input.args)
      const told = stamp?.kind === 'activity' ? stamp.deployment : undefined
      // Older stamps do not name it, but the inputs of most activities do.
      const named = JUDGES.includes(activityType) ? undefined : (told ?? deploymentOf(args[0]))
      if (named === undefined || named === deployment) return next(input)
      throw ApplicationFailure.create({
        ...carrying({
          class: 'transient',
          message: `This worker belongs to deployment ${deployment}, but the task to ${named}. Stop this worker, or start it with the store of ${named}.`,
          retryAfterMs: ELSEWHERE_MS,
        }),
        nonRetryable: false,
      })
    },
  }
}

/** Activities that compare deployments themselves, and explain it in their verdicts. */
const JUDGES: readonly string[] = ['collectGarbage', 'collectStoreGarbage']
