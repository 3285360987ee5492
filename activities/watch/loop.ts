import type { Backend } from '../../backends/backend'
import { failureOf } from '../../backends/errors'
import type { WatchInput, WatchOutcome } from '../../core/activities'
import type { Failure } from '../../core/failure'
import type { Observation } from '../../core/observation'
import type { ObjectStore } from '../../storage/store'
import type { GrantSource } from './grants'
import { pause } from '../heartbeat'
import { MachineWatch } from './machine'

/** Documents read at once; more only queue up inside the store's client. */
const READS_AT_ONCE = 16

/** Document reads per second that a loop may cost: a large loop is read more slowly, its machines' states are not. */
const READS_PER_SECOND_MAX = 200

/** All watches of a worker wait for one answer of the provider; one that takes longer than this is none. */
const OBSERVE_LIMIT_MS = 60_000

/** A look at one machine holds up the others for so long at most. */
const CHECK_LIMIT_MS = 30_000

interface WatchEntry {
  input: WatchInput
  machine: MachineWatch
  resolve: (outcome: WatchOutcome) => void
  reject: (error: unknown) => void
  readDueAtMs: number
}

/**
 * All the machines that a worker watches, looked at together: one call to the provider for the whole loop, and beats read
 * at a pace that follows its size, so that a thousand jobs cost about what ten do.
 */
export class WatchLoop {
  /** How long the provider may take for an answer about all machines. */
  observeLimitMs = OBSERVE_LIMIT_MS
  /** How long the store may take about one machine before the others are looked at without waiting for it. */
  checkLimitMs = CHECK_LIMIT_MS
  /** Where the machines' credentials for the store come from; none where they have their own. */
  grants: GrantSource | undefined
  /** Told when the provider begins not to answer about its machines, why when that changes, and nothing when it answers again. */
  onProviderTrouble: ((trouble: Failure | undefined) => void) | undefined
  private trouble: Failure | undefined
  private readonly entries = new Set<WatchEntry>()
  /** Those whose last look is not over. */
  private readonly held = new Set<WatchEntry>()
  private isActive = false
  /** Cuts the pause between two looks short when a machine is added. */
  private wake: AbortController = new AbortController()

  constructor(
    readonly backend: Backend,
    readonly store: ObjectStore,
    readonly now: () => number,
  ) {}

  /** Resolves when something must be done about the machine; rejects when the signal aborts. */
  watch(input: WatchInput, signal: AbortSignal): Promise<WatchOutcome> {
    return new Promise<WatchOutcome>((resolve, reject) => {
      const machine = new MachineWatch(this, input)
      const entry: WatchEntry = { input, machine, resolve, reject, readDueAtMs: 0 }
      const leave = (): void => {
        this.entries.delete(entry)
        // Nobody is left to pause for.
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
    const observations = await this.observe(entries)
    const queue = entries.map((entry) => ({ entry, observation: observations.get(entry) }))
    const next = async (): Promise<void> => {
      for (let item = queue.pop(); item !== undefined; item = queue.pop()) {
        await this.checkWithinLimit(item.entry, item.observation)
      }
    }
    await Promise.all(Array.from({ length: READS_AT_ONCE }, next))
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
          group.forEach((entry, at) => observations.set(entry, answers[at]!))
        }),
      )
      const failed = asked.find((one) => one.status === 'rejected')
      // Not an answer about any machine: each machine notes that the provider did not answer.
      this.note(failed && failureOf(failed.reason))
      return observations
    } finally {
      clearTimeout(timer)
    }
  }

  /** Those whose machines one part of the provider answers for. */
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

  /** Resolves when the look is over, or takes too long to wait for. */
  private async checkWithinLimit(entry: WatchEntry, observation: Observation | undefined): Promise<void> {
    this.held.add(entry)
    const look = this.check(entry, observation).finally(() => this.held.delete(entry))
    const limit = new AbortController()
    await Promise.race([look, pause(this.checkLimitMs, limit.signal).catch(() => undefined)])
    limit.abort()
  }

  private async check(entry: WatchEntry, observation: Observation | undefined): Promise<void> {
    if (!this.entries.has(entry)) return
    const nowMs = this.now()
    const isReadDue = nowMs >= entry.readDueAtMs || observation?.state === 'gone'
    if (isReadDue) entry.readDueAtMs = nowMs + this.readEveryMs(entry)
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
