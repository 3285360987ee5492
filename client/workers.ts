import { POLL_FRESH_MS, pollTimes, type QueueType } from './clock'
import type { Context } from './context'
import { CrucibleError } from './errors'

/** Returns the number of workers that have polled a task queue recently. */
export async function pollersOf(context: Context, queue: string, type: QueueType): Promise<number> {
  const { namespace } = context.config.temporal
  const times = await pollTimes(await context.temporal(), { namespace, queue, type })
  const sinceMs = context.now() - POLL_FRESH_MS
  return times.filter((atMs) => atMs >= sinceMs).length
}

/** Whether a worker serves a queue; true if the server does not report it. */
export async function isQueueServed(context: Context, queue: string): Promise<boolean> {
  try {
    return (await pollersOf(context, queue, 'workflow')) > 0
  } catch {
    return true
  }
}

/** The error for a request that no worker has taken in time: none is there, or those that poll are busy. */
export async function untaken(
  context: Context,
  queue: string,
  {
    absent,
    command,
    details,
    cause,
  }: { absent: string; command: string; details?: Record<string, unknown>; cause: unknown },
): Promise<CrucibleError> {
  const pollers = await pollersOf(context, queue, 'activity').catch(() => 0)
  if (pollers === 0)
    return new CrucibleError('unavailable', absent, { hint: `Start one: \`${command}\`.`, details, cause })
  return new CrucibleError('unavailable', 'The workers are busy: none has taken the request yet.', {
    hint: `Try again soon, or start one more: \`${command}\`.`,
    cause,
  })
}
