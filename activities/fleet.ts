import type { Backend } from '../backends/backend'
import { failureOf } from '../backends/errors'
import type { WatchInput, WatchOutcome } from '../core/activities'
import type { Failure } from '../core/failure'
import type { Observation } from '../core/observation'
import type { ObjectStore } from '../storage/store'
import type { GrantSource } from './grants'
import { pause } from './heartbeat'
import { Sentry } from './sentry'

/** Documents read at once; more only queue up inside the store's client. */
const READS_AT_ONCE = 16

/** Document reads per second that a fleet may cost: a large fleet is read more slowly, its machines' states are not. */
const READS_PER_SECOND_MAX = 200

/** All watches of a worker wait for one answer of the provider; one that takes longer than this is none. */
const OBSERVE_LIMIT_MS = 60_000

/** A look at one machine holds up the others for so long at most. */
const LOOK_LIMIT_MS = 30_000

interface Post {
  input: WatchInput
  sentry: Sentry
  resolve: (outcome: WatchOutcome) => void
  reject: (error: unknown) => void
  readDueAtMs: number
}

/**
 * All the machines that a worker watches, looked at together: one call to the provider for the whole fleet, and beats read
 * at a pace that follows its size, so that a thousand jobs cost about what ten do.
 */
export class Fleet {
  /** How long the provider may take for an answer about all machines. */
  observeLimitMs = OBSERVE_LIMIT_MS
  /** How long the store may take about one machine before the others are looked at without waiting for it. */
  lookLimitMs = LOOK_LIMIT_MS
  /** Where the machines' credentials for the store come from; none where they have their own. */
  grants: GrantSource | undefined
  /** Told when the provider begins not to answer about its machines, why when that changes, and nothing when it answers again. */
  onProviderTrouble: ((trouble: Failure | undefined) => void) | undefined
  private trouble: Failure | undefined
  private readonly posts = new Set<Post>()
  /** Those whose last look is not over. */
  private readonly held = new Set<Post>()
  private isLooking = false
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
      const sentry = new Sentry(this, input)
      const post: Post = { input, sentry, resolve, reject, readDueAtMs: 0 }
      const leave = (): void => {
        this.posts.delete(post)
        // Nobody is left to pause for.
        if (this.posts.size === 0) this.wake.abort()
        reject(signal.reason instanceof Error ? signal.reason : new Error('aborted'))
      }
      if (signal.aborted) return leave()
      signal.addEventListener('abort', leave, { once: true })
      this.posts.add(post)
      this.wake.abort()
      if (!this.isLooking) void this.lookUntilEmpty()
    })
  }

  get size(): number {
    return this.posts.size
  }

  private async lookUntilEmpty(): Promise<void> {
    this.isLooking = true
    while (this.posts.size > 0) {
      this.wake = new AbortController()
      const posts = [...this.posts]
      await this.look(posts)
      const paceMs = Math.min(...posts.map(({ input }) => input.timing.observeMs))
      if (this.posts.size > 0) await pause(paceMs, this.wake.signal).catch(() => undefined)
    }
    this.isLooking = false
  }

  private async look(all: Post[]): Promise<void> {
    const posts = all.filter((post) => !this.held.has(post))
    const observations = await this.observe(posts)
    const queue = posts.map((post) => ({ post, observation: observations.get(post) }))
    const next = async (): Promise<void> => {
      for (let item = queue.pop(); item !== undefined; item = queue.pop()) {
        await this.considerAside(item.post, item.observation)
      }
    }
    await Promise.all(Array.from({ length: READS_AT_ONCE }, next))
  }

  private async observe(posts: Post[]): Promise<Map<Post, Observation>> {
    const limit = new AbortController()
    const timer = setTimeout(() => limit.abort(), this.observeLimitMs)
    try {
      const observations = new Map<Post, Observation>()
      const asked = await Promise.allSettled(
        this.groups(posts).map(async (group) => {
          const handles = group.map(({ input }) => input.handle)
          const answers = await this.backend.observe(handles, { signal: limit.signal })
          group.forEach((post, at) => observations.set(post, answers[at]!))
        }),
      )
      const failed = asked.find((one) => one.status === 'rejected')
      // Not an answer about any machine: each sentry notes that the provider did not answer.
      this.note(failed && failureOf(failed.reason))
      return observations
    } finally {
      clearTimeout(timer)
    }
  }

  /** Those whose machines one part of the provider answers for. */
  private groups(posts: Post[]): Post[][] {
    const groups = new Map<string, Post[]>()
    for (const post of posts) {
      const place = this.backend.placeOf?.(post.input.handle) ?? ''
      groups.set(place, [...(groups.get(place) ?? []), post])
    }
    return [...groups.values()]
  }

  private note(trouble: Failure | undefined): void {
    const isSame = trouble?.class === this.trouble?.class && trouble?.code === this.trouble?.code
    this.trouble = trouble
    if (!isSame) this.onProviderTrouble?.(trouble)
  }

  /** Resolves when the look is over, or takes too long to wait for. */
  private async considerAside(post: Post, observation: Observation | undefined): Promise<void> {
    this.held.add(post)
    const look = this.consider(post, observation).finally(() => this.held.delete(post))
    const limit = new AbortController()
    await Promise.race([look, pause(this.lookLimitMs, limit.signal).catch(() => undefined)])
    limit.abort()
  }

  private async consider(post: Post, observation: Observation | undefined): Promise<void> {
    if (!this.posts.has(post)) return
    const nowMs = this.now()
    const isReadDue = nowMs >= post.readDueAtMs || observation?.state === 'gone'
    if (isReadDue) post.readDueAtMs = nowMs + this.readEveryMs(post)
    try {
      const outcome = await post.sentry.look(observation, isReadDue)
      if (outcome === undefined || !this.posts.delete(post)) return
      post.resolve(outcome)
    } catch (error) {
      if (this.posts.delete(post)) post.reject(error)
    }
  }

  private readEveryMs({ input }: Post): number {
    return Math.max(input.timing.beatMs, (this.posts.size / READS_PER_SECOND_MAX) * 1_000)
  }
}
