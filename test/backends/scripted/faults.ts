import type { Failure } from '../../../core/failure'

export type Verb =
  'check' | 'offers' | 'launch' | 'find' | 'start' | 'drain' | 'observe' | 'terminate' | 'list' | 'interrupt'

/** What goes wrong with one call. Whatever is not scripted keeps every promise of the contract. */
export type Fault =
  /** Thrown before any effect: throttling, bad credentials, trouble in passing. */
  | { kind: 'throws'; failure: Failure }
  /** A launch that certainly buys nothing. */
  | { kind: 'refuses'; failure: Failure }
  | { kind: 'slow'; durationMs: number }
  /** Not answered until the caller leaves. */
  | { kind: 'hangs'; hasEffect: boolean }
  /** A launch with an unknown result. */
  | { kind: 'loses-answer'; hasEffect: boolean; findAfterMs: number }
  /** A launch without an answer that has its effect only after so long, at most `Manners.effectWithinMs`. */
  | { kind: 'late'; effectAfterMs: number; findAfterMs: number }
  /** A launch that makes two machines. */
  | { kind: 'duplicates' }
  /** An observation that says of every living machine that it is gone. */
  | { kind: 'lies-gone' }
  /** A termination that is accepted, and nothing happens. */
  | { kind: 'ignored' }

interface Scripted<V, F> {
  verb: V
  fault: F
  /** The attempt or the intent that meets it. */
  only: string | undefined
  times: number
}

/** The faults to come, each met by the next call that it is meant for. */
export class FaultScript<V extends string = Verb, F = Fault> {
  #scripted: Scripted<V, F>[] = []

  /** The next `times` calls of a verb, of one attempt or intent if it is named, meet this fault. */
  add(verb: V, fault: F, options: { times?: number; attemptId?: string; intent?: string } = {}): void {
    const { times = 1, attemptId, intent } = options
    this.#scripted.push({ verb, fault, times, only: attemptId ?? intent })
  }

  take(verb: V, ids: string[]): F | undefined {
    const next = this.#scripted.find(
      (one) => one.verb === verb && (one.only === undefined || ids.includes(one.only)),
    )
    if (next === undefined) return undefined
    if (--next.times === 0) this.#scripted = this.#scripted.filter((one) => one !== next)
    return next.fault
  }

  clear(): void {
    this.#scripted = []
  }
}
