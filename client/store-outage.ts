import { SECOND_MS } from '../core/time/time'
import type { Context } from './context'

/** A store that answers within this time was not away. */
const TOLD_AFTER_MS = 5 * SECOND_MS

/** Tells a person who follows a job when the store is away, and when it is back. */
export class StoreOutage {
  private sinceMs: number | undefined
  private isTold = false

  constructor(private readonly context: Context) {}

  begin(why: string): void {
    const nowMs = this.context.now()
    this.sinceMs ??= nowMs
    if (this.isTold || nowMs - this.sinceMs < TOLD_AFTER_MS) return
    this.isTold = true
    this.context.noteOnce(`Nothing new is known while the store does not answer; waiting for it. ${why}`)
  }

  end(): void {
    if (this.isTold) this.context.noteOnce('The store answers again.')
    this.sinceMs = undefined
    this.isTold = false
  }
}
