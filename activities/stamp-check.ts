import { ApplicationFailure, type Context } from '@temporalio/activity'
import { carrying } from '../core/failure'
import { activityProblem, answering, refusalOfArguments, unstamped } from '../core/stamps'

/** Delay before a task is offered again: another worker may have the right key, or the right store. */
export const ELSEWHERE_MS = 10_000

interface Input {
  args: unknown[]
}

interface StampCheck {
  execute<I extends Input>(input: I, next: (input: I) => Promise<unknown>): Promise<unknown>
}

/**
 * An inbound interceptor of activity workers: removes the stamp from an activity's arguments and, if `isRequired`, refuses
 * arguments that were not signed for this activity of this run. The result names the history that asked for it.
 */
export function stampCheck({ info }: Pick<Context, 'info'>, isRequired: boolean): StampCheck {
  const { activityType, workflowExecution } = info
  return {
    async execute(input, next) {
      const { args, stamp } = unstamped(input.args)
      if (isRequired) {
        const unsigned = refusalOfArguments(input.args)
        if (unsigned !== undefined) throw refusal(activityType, unsigned, { nextRetryDelay: ELSEWHERE_MS })
        const problem = activityProblem(stamp, { name: activityType, run: workflowExecution?.runId })
        if (problem !== undefined) throw refusal(activityType, problem, { nonRetryable: true })
      }
      return answering(await next({ ...input, args }), stamp)
    },
  }
}

function refusal(
  activityType: string,
  problem: string,
  retry: { nonRetryable: true } | { nextRetryDelay: number },
): ApplicationFailure {
  const message = `This worker refused ${activityType}: ${problem}. Clients and workers of one deployment share one key file (CRUCIBLE_SECRET_KEY_FILE).`
  return ApplicationFailure.create({ ...carrying({ class: 'auth', message }), ...retry })
}
