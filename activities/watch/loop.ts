import type { Backend } from '../../backends/backend'
import { failureOf } from '../../backends/errors'
import type { WatchInput, WatchOutcome } from '../../core/activities'
import type { Failure } from '../../core/failure'
import type { Observation } from '../../core/observation'
import { atPace } from '../../planner/policy/liveness'
import type { ObjectStore } from '../../storage/store'
import type { GrantSource } from './grants'
import { pause } from '../heartbeat'
import { MachineWatch } from './machine'

/** Documents read in parallel; more would only queue inside the store's client. */
const READS_AT_ONCE = 16

/** Limit on document reads per second of a loop: beats of a large loop are read less often, machine states are not. */
const READS_PER_SECOND_MAX = 200

/** Limit on a provider call, which all watches of a worker share; a longer call counts as no answer. */
const OBSERVE_LIMIT_MS = 60_000

/** Upper bound on how long one machine delays the others. */
const CHECK_LIMIT_MS = 30_000

type Look = Parameters<MachineWatch['check']>[0]

interface WatchEntry {
  input: WatchInput
  machine: MachineWatch
  resolve: (outcome: WatchOutcome) => void
  reject: (error: unknown) => void
  readDueAtMs: number
  /** Monotonic time of the last look at the machine, or of the start of its watch. */
  checkedAtMs: number
}

/**
 * Observes all machines that a worker watches together: one call to the provider for the whole loop, no more often than the provider
 * allows (`Pace.observeMs`), and beats read at a rate that depends on its size, so that a thousand jobs cost about as much as ten.
 */
export class WatchLoop {
  /** Timeout of the provider's answer about all machines. */
  observeLimitMs = OBSERVE_LIMIT_MS
  /** Time for which the loop waits for the store about one machine before it moves on. */
  checkLimitMs = CHECK_LIMIT_MS
  /** Source of the machines' credentials for the store; missing for machines with their own. */
  grants: GrantSource | undefined
  /**
   * Called with the error when the provider stops answering about its machines, again when the error changes, and with undefined
   * when it answers again.
   */
  onProviderTrouble: ((trouble: Failure | undefined) => void) | undefined
  private trouble: Failure | undefined
  private readonly entries = new Set<WatchEntry>()
  /** Machines with an observation in progress. */
  private readonly held = new Set<WatchEntry>()
  private isActive = false
  private observedAtMs = -Infinity
  /** Ends the pause between two observations early when a machine is added. */
  private wake: AbortController = new AbortController()

  constructor(
    readonly backend: Backend,
    readonly store: ObjectStore,
    readonly now: () => number,
    readonly monotonicMs: () => number,
  ) {}

  /** Resolves when the machine needs action; rejects when the signal aborts. */
  watch(input: WatchInput, signal: AbortSignal): Promise<WatchOutcome> {
    return new Promise<WatchOutcome>((resolve, reject) => {
      const timing = atPace(input.timing, this.backend.capabilities.pace)
      const machine = new MachineWatch(this, { ...input, timing })
      const checkedAtMs = this.monotonicMs()
      const entry: WatchEntry = { input, machine, resolve, reject, readDueAtMs: -Infinity, checkedAtMs }
      const leave = (): void => {
        this.entries.delete(entry)
        // The loop has no machine left to wait for.
        if (this.entries.size === 0) this.wake.abort()
        reject(signal.reason instanceof Error ? signal.reason : new Error('aborted'))
      }
      if (signal.aborted) return leave()
      signal.addEventListener('abort', leave, { once: true })
      this.entries.add(entry)
      this.wake.abort()
      if (!this.isActive) void this.runUntilEmpty()
    })
  }

  get size(): number {
    return this.entries.size
  }

  /** Time since the last look at the machine that was looked at longest ago; 0 without machines. */
  get longestUncheckedMs(): number {
    const oldestMs = Math.min(...[...this.entries].map(({ checkedAtMs }) => checkedAtMs))
    return this.entries.size === 0 ? 0 : this.monotonicMs() - oldestMs
  }

  private async runUntilEmpty(): Promise<void> {
    this.isActive = true
    while (this.entries.size > 0) {
      this.wake = new AbortController()
      const entries = [...this.entries]
      await this.checkAll(entries)
      const paceMs = Math.min(...entries.map(({ input }) => input.timing.observeMs))
      if (this.entries.size > 0) await pause(paceMs, this.wake.signal).catch(() => undefined)
    }
    this.isActive = false
  }

  private async checkAll(all: WatchEntry[]): Promise<void> {
    const entries = all.filter((entry) => !this.held.has(entry))
    const observations = this.isObserveDue() ? await this.observe(entries) : undefined
    const queue = entries.map((entry) => ({
      entry,
      observation: observations === undefined ? ('not-due' as const) : observations.get(entry),
    }))
    const next = async (): Promise<void> => {
      for (let item = queue.pop(); item !== undefined; item = queue.pop()) {
        await this.checkWithinLimit(item.entry, item.observation)
      }
    }
    await Promise.all(Array.from({ length: READS_AT_ONCE }, next))
  }

  /** Documents of the store are read in between. */
  private isObserveDue(): boolean {
    const { observeMs = 0 } = this.backend.capabilities.pace ?? {}
    const nowMs = this.monotonicMs()
    if (nowMs < this.observedAtMs + observeMs) return false
    this.observedAtMs = nowMs
    return true
  }

  private async observe(entries: WatchEntry[]): Promise<Map<WatchEntry, Observation>> {
    const limit = new AbortController()
    const timer = setTimeout(() => limit.abort(), this.observeLimitMs)
    try {
      const observations = new Map<WatchEntry, Observation>()
      const asked = await Promise.allSettled(
        this.groups(entries).map(async (group) => {
          const handles = group.map(({ input }) => input.handle)
          const answers = await this.backend.observe(handles, { signal: limit.signal })
          group.forEach((entry, at) => {
            const answer = answers[at]
            if (answer !== undefined) observations.set(entry, answer)
          })
        }),
      )
      const failed = asked.find((one) => one.status === 'rejected')
      // A failed call proves nothing about any machine: each machine notes that the provider did not answer.
      this.note(failed && failureOf(failed.reason))
      return observations
    } finally {
      clearTimeout(timer)
    }
  }

  /** Machines by the part of the provider that answers for them. */
  private groups(entries: WatchEntry[]): WatchEntry[][] {
    const groups = new Map<string, WatchEntry[]>()
    for (const entry of entries) {
      const place = this.backend.placeOf?.(entry.input.handle) ?? ''
      groups.set(place, [...(groups.get(place) ?? []), entry])
    }
    return [...groups.values()]
  }

  private note(trouble: Failure | undefined): void {
    const isSame = trouble?.class === this.trouble?.class && trouble?.code === this.trouble?.code
    this.trouble = trouble
    if (!isSame) this.onProviderTrouble?.(trouble)
  }

  /** Resolves when the check is over, or takes too long. */
  private async checkWithinLimit(entry: WatchEntry, observation: Look): Promise<void> {
    this.held.add(entry)
    const look = this.check(entry, observation).finally(() => this.held.delete(entry))
    const limit = new AbortController()
    await Promise.race([look, pause(this.checkLimitMs, limit.signal).catch(() => undefined)])
    limit.abort()
  }

  private async check(entry: WatchEntry, observation: Look): Promise<void> {
    if (!this.entries.has(entry)) return
    const nowMs = this.monotonicMs()
    const isGone = typeof observation === 'object' && observation.state === 'gone'
    const isReadDue = nowMs >= entry.readDueAtMs || isGone
    if (isReadDue) entry.readDueAtMs = nowMs + this.readEveryMs(entry)
    entry.checkedAtMs = nowMs
    try {
      const outcome = await entry.machine.check(observation, isReadDue)
      if (outcome === undefined || !this.entries.delete(entry)) return
      entry.resolve(outcome)
    } catch (error) {
      if (this.entries.delete(entry)) entry.reject(error)
    }
  }

  private readEveryMs({ input }: WatchEntry): number {
    return Math.max(input.timing.beatMs, (this.entries.size / READS_PER_SECOND_MAX) * 1_000)
  }
}
