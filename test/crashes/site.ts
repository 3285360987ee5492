import { ApplicationFailure, CompleteAsyncError, type Context } from '@temporalio/activity'
import type { Client } from '@temporalio/client'
import { createBackendActivities } from '../../activities/machine/backend'
import { createCopyingActivities } from '../../activities/copying'
import { createDecidingActivities } from '../../activities/plan/deciding'
import { WatchLoop } from '../../activities/watch/loop'
import { createPlanningActivities } from '../../activities/plan/planning'
import type { OwnerLookup } from '../../activities/garbage/garbage'
import { createDrainingActivities } from '../../activities/machine/draining'
import { createStoreActivities } from '../../activities/garbage/store'
import { Treasury } from '../../activities/money/treasury'
import { createWatchActivities } from '../../activities/watch/activities'
import type { Timing } from '../../core/time/timing'
import type { MonthlyLimits } from '../../core/money/treasury'
import { offersThroughWorkers } from '../../workers/offers'
import { ownersThrough } from '../../workers/owners'
import type { ObjectStore } from '../../storage/store'
import { backendOver, handOversIn, SEND_LIMIT_MS, type CloudGround, type CloudWishes } from '../clouds/cloud'
import { gatedStore } from './gates'
import { tokenless } from './tokenless'
import { gate, OurProcess, type Activities, type Death } from './process'

/** What runs as one process of the product: `crucible worker orchestrator`, `crucible worker ec2`. */
export const ROLES = ['orchestrator', 'backend'] as const
export type Role = (typeof ROLES)[number]

export interface SiteOptions {
  jobId: string
  deployment: string
  ground: CloudGround
  config: CloudWishes['config']
  timing: Timing
  client: Client
  /** Missing where nothing limits what a month may cost. */
  monthly: MonthlyLimits | undefined
  /** The cloud recognises no repeated order. */
  isTokenless?: boolean
  /** The death that this call, the so-manieth of its name, meets. */
  deathAt: (call: string, occurrence: number) => (Death & { isOfBoth: boolean }) | undefined
}

/**
 * A deployment of one job: a cloud, a store, and processes that die. What they remember (the backend with its caches, the loop) dies with
 * them, and in their place come others at once, as under a supervisor. The server misses only what they had begun.
 */
export class Site {
  /** How often each call was made so far, by `activity: call`. */
  readonly calls = new Map<string, number>()
  /** When processes died so far. */
  readonly diedAtMs: number[] = []
  /** Every time that a watch was taken up, and when its process first asked about the machine after that. */
  readonly watches: { begunAtMs: number; lookedAtMs?: number }[] = []
  readonly store: ObjectStore
  private readonly processes: Record<Role, OurProcess>

  constructor(readonly options: SiteOptions) {
    const { store } = options.ground.storage
    // A bucket's calls are seen where they go over the wire.
    this.store = store.url.startsWith('memory:') ? gatedStore(store) : store
    this.processes = { orchestrator: this.begin('orchestrator'), backend: this.begin('backend') }
  }

  /** Runs an activity in the name of the process that has that role now; the server hears of it only while that lives. */
  async perform(role: Role, context: Context, next: () => Promise<unknown>): Promise<unknown> {
    const process = this.processes[role]
    const beat = context.heartbeat.bind(context)
    const heartbeat = (details?: unknown): void => (process.isDead ? undefined : beat(details))
    Object.assign(context, { heartbeat })
    const { activityType, isLocal } = context.info
    if (activityType === 'watch') this.watches.push({ begunAtMs: Date.now() })
    const work = process.run(activityType, next)
    work.catch(() => undefined)
    const answer = await Promise.race([work, process.died])
    if (!process.isDead) return answer
    // A local activity lives in the task of its workflow: that comes again with it.
    if (isLocal) throw ApplicationFailure.retryable('the process died', 'transient')
    throw new CompleteAsyncError()
  }

  /** All processes die, and others take their place. */
  die(): void {
    for (const role of ROLES) this.kill(role)
  }

  private kill(role: Role): void {
    const process = this.processes[role]
    this.succeed(role)
    process.die()
  }

  private begin(role: Role): OurProcess {
    const activities = role === 'orchestrator' ? this.orchestrate() : this.serve()
    return new OurProcess(activities, (call) => this.meet(role, call))
  }

  private meet(role: Role, call: string): Death | undefined {
    const occurrence = (this.calls.get(call) ?? 0) + 1
    this.calls.set(call, occurrence)
    if (call === `watch: ${this.options.ground.provider.asks}`) this.noteLook()
    const death = this.options.deathAt(call, occurrence)
    if (death === undefined) return undefined
    // The one that made the call dies of it.
    this.succeed(role)
    if (death.isOfBoth) ROLES.filter((other) => other !== role).forEach((other) => this.kill(other))
    return death
  }

  private noteLook(): void {
    const watch = this.watches.at(-1)
    if (watch !== undefined) watch.lookedAtMs ??= Date.now()
  }

  private succeed(role: Role): void {
    this.processes[role] = this.begin(role)
    this.diedAtMs.push(Date.now())
  }

  private orchestrate(): Activities {
    const { client, timing } = this.options
    const { store } = this
    const now = Date.now
    const owners = ownersThrough(client)
    const treasury = this.treasury(owners)
    return {
      ...createPlanningActivities({
        store,
        backends: [this.options.ground.provider.name],
        now,
        timing,
        treasury,
        askOffers: offersThroughWorkers(client, now),
        publishRunner: () => Promise.resolve('0'.repeat(64)),
      }),
      ...createCopyingActivities({ store, now }),
      ...createDecidingActivities({ client, store, now, treasury }),
      ...createDrainingActivities({ client, store, now }),
      ...createStoreActivities({ store, now, owners, treasury }),
    }
  }

  private treasury(owners: OwnerLookup): Pick<Treasury, 'promise' | 'settle' | 'endedPromises'> | undefined {
    const { client, monthly: limits } = this.options
    if (limits === undefined) return undefined
    const treasury = new Treasury({ client, store: this.store, owners, limits })
    return {
      promise: (wanted, signal) => gate('promise out of the month', () => treasury.promise(wanted, signal)),
      settle: (month, request, signal) =>
        gate('settle with the month', () => treasury.settle(month, request, signal)),
      endedPromises: (month) => gate('ask what is promised', () => treasury.endedPromises(month)),
    }
  }

  private serve(): Activities {
    const { ground, config = {}, deployment, client, isTokenless = false } = this.options
    const { store } = this
    const handOver = handOversIn(store)
    const real = backendOver(ground, { config, deployment, handOver, around: gate })
    const backend = isTokenless ? tokenless(real, handOver) : real
    const owners = ownersThrough(client)
    return {
      ...createBackendActivities({
        backend,
        store,
        now: Date.now,
        monotonicMs: () => performance.now(),
        sendLimitMs: SEND_LIMIT_MS,
        handOverSecrets: async () => undefined,
        maskSecrets: async (_jobId, text) => text,
        owners: (who) => gate('describe the owner', () => owners(who)),
      }),
      ...createWatchActivities(new WatchLoop(backend, store, Date.now, () => performance.now())),
    }
  }
}
