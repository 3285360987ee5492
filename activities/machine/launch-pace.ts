import type { Pace } from '../../core/capabilities'
import { MINUTE_MS } from '../../core/time/time'
import { LaunchTurns, type TurnClocks } from '../../storage/launch-turns'
import type { ObjectStore } from '../../storage/store'
import { pause } from '../heartbeat'

/** Stretches the gap between launches, because the time from a turn to its request varies. */
const MARGIN_FACTOR = 1.05

/** Keeps the launches of one account to the provider's limit, and delays all of them after a throttled one. */
export class LaunchPace {
  private readonly turns: LaunchTurns
  private readonly gapMs: number
  /** Monotonic. */
  private notBeforeMs = -Infinity
  /** Launches of this worker, in the order in which they came. */
  private line: Promise<unknown> = Promise.resolve()

  constructor(
    {
      store,
      backend,
      launchesPerMinute,
    }: { store: ObjectStore; backend: string } & Required<Pick<Pace, 'launchesPerMinute'>>,
    private readonly clocks: TurnClocks,
  ) {
    this.gapMs = (MINUTE_MS / launchesPerMinute) * MARGIN_FACTOR
    this.turns = new LaunchTurns(store, { backend, gapMs: this.gapMs }, clocks)
  }

  /** Resolves when the next launch may be sent. Rejects when the signal aborts. */
  turn(signal: AbortSignal): Promise<void> {
    const mine = this.line.then(() => this.next(signal))
    this.line = mine.catch(() => undefined)
    return Promise.race([mine, aborted(signal)])
  }

  /** Takes a turn for the first launch of this worker only, so that few turns are lost when launches are called off. */
  private async next(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    const { now, monotonicMs } = this.clocks
    const atMs = await this.turns.take(now() + this.notBeforeMs - monotonicMs())
    await pause(Math.max(0, atMs - now()), signal)
  }

  /** The provider asked to slow down: until then, no launch of this worker is sent. */
  slowDown(retryAfterMs = this.gapMs): void {
    this.notBeforeMs = Math.max(this.notBeforeMs, this.clocks.monotonicMs() + retryAfterMs)
  }
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const onAbort = (): void => reject(signal.reason instanceof Error ? signal.reason : new Error('aborted'))
    if (signal.aborted) onAbort()
    else signal.addEventListener('abort', onAbort, { once: true })
  })
}
