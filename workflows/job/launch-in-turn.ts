import { CancellationScope, condition, isCancellation } from '@temporalio/workflow'
import type { LaunchOutcome } from '../../core/activities'
import type { DrainReason } from '../../core/job/drain'
import type { AttemptInput } from '../../core/messages'
import { MINUTE_MS } from '../../core/time/time'
import { inTurn } from '../activities'
import type { AttemptCommands } from './attempt-commands'
import { kept } from '../forever'

/** While an order waits for its turn, the workers of its backend may all have stopped. */
const ASKED_EVERY_MS = 10 * MINUTE_MS

export type TurnOutcome =
  | LaunchOutcome
  /** The backend has no worker that launches. */
  | { kind: 'unserved' }
  /** The attempt was asked to stop while the order waited. */
  | { kind: 'called-off'; by: DrainReason }

/**
 * Sends an order that waits behind others of its account, for as long as that takes. A separate activity asks whether the backend has a
 * worker; a request to stop takes the order out of the queue. Throws the launch's error.
 */
export async function launchInTurn(
  { order, launchSeq }: AttemptInput,
  commands: Pick<AttemptCommands, 'drain'>,
): Promise<TurnOutcome> {
  const { asking, launching } = inTurn(order.backend)
  const stopReason = (): DrainReason | undefined => commands.drain?.reason
  const isServed = (): Promise<boolean> => asking.servesLaunches({}).catch(() => false)
  if (!(await isServed())) return { kind: 'unserved' }
  const before = stopReason()
  if (before !== undefined) return { kind: 'called-off', by: before }
  const scope = new CancellationScope({ cancellable: true })
  const state = { isAnswered: false }
  const launch = kept(
    scope
      .run(() => launching.launch({ order, recordSeq: launchSeq }))
      .finally(() => (state.isAnswered = true)),
  )
  const isOver = (): boolean => state.isAnswered || stopReason() !== undefined
  const options = { summary: 'until its workers are checked again' }
  while (!(await condition(isOver, ASKED_EVERY_MS, options))) if (!(await isServed())) break
  scope.cancel()
  try {
    // The launch may have begun, so its answer counts.
    return await launch
  } catch (error) {
    if (!isCancellation(error)) throw error
    const by = stopReason()
    return by === undefined ? { kind: 'unserved' } : { kind: 'called-off', by }
  }
}
