import { setTimeout as sleep } from 'node:timers/promises'
import { formatDuration, SECOND_MS } from '../core/time/time'
import type { Context } from './context'

/** A store that answers within this time was not away. */
const TOLD_AFTER_MS = 5 * SECOND_MS

/** Tells a person who follows a job when the store is away, and when it is back. */
export class StoreOutage {
  private sinceMs: number | undefined
  private isTold = false

  constructor(
    private readonly context: Context,
    private readonly toldAfterMs = TOLD_AFTER_MS,
  ) {}

  begin(why: string): void {
    const nowMs = this.context.now()
    this.sinceMs ??= nowMs
    if (nowMs - this.sinceMs >= this.toldAfterMs) this.tell(why)
  }

  end(): void {
    if (this.isTold) this.context.noteOnce('The store answers again.')
    this.sinceMs = undefined
    this.isTold = false
  }

  /** Waits for a look at the store, whose requests may take longer to fail than a person waits without a word. */
  async during<T>(look: Promise<T>): Promise<T> {
    const over = new AbortController()
    const isLate = sleep(this.toldAfterMs, undefined, { signal: over.signal, ref: false })
    isLate.then(
      () => this.tell(`Its last answer came ${formatDuration(this.toldAfterMs)} ago.`),
      () => undefined,
    )
    return look.finally(() => over.abort())
  }

  private tell(why: string): void {
    if (this.isTold) return
    this.isTold = true
    this.context.noteOnce(`Nothing new is known while the store does not answer; waiting for it. ${why}`)
  }
}
