/** Scopes of workflow code that runs in a test, in place of Temporal's. */
import { AsyncLocalStorage } from 'node:async_hooks'
import { ActivityFailure, CancelledFailure, RetryState } from '@temporalio/common'

const scopes = new AsyncLocalStorage<CancellationScope>()

export class CancellationScope {
  /** Of the whole workflow: it is cancelled from outside. Each test needs its own. */
  static root = new CancellationScope()
  consideredCancelled = false
  private reject!: (error: Error) => void
  readonly cancelRequested = new Promise<never>((_, reject) => (this.reject = reject))

  constructor() {
    this.cancelRequested.catch(() => undefined)
  }

  static current(): CancellationScope {
    return scopes.getStore() ?? CancellationScope.root
  }

  static nonCancellable<T>(work: () => T): T {
    return new CancellationScope().run(work)
  }

  run<T>(work: () => T): T {
    return scopes.run(this, work)
  }

  cancel(): void {
    this.consideredCancelled = true
    const cause = new CancelledFailure('cancelled')
    const state = RetryState.CANCEL_REQUESTED
    this.reject(new ActivityFailure('cancelled', 'activity', '1', state, undefined, cause))
  }
}

/** A promise that rejects once the scope around it is cancelled, as an activity does that gives up. */
export const untilCancelled = (): Promise<never> => CancellationScope.current().cancelRequested
