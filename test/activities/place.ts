import { mkdtemp, rename, rm, utimes } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Info } from '@temporalio/activity'
import { MockActivityEnvironment } from '@temporalio/testing'
import { DefaultLogger } from '@temporalio/worker'
import { createBackendActivities, type BackendDeps } from '../../activities/machine/backend'
import { failureInterceptor } from '../../activities/failures'
import type { Backend } from '../../backends/backend'
import type { BackendActivities } from '../../core/activities'
import type { Beat, RunnerResult } from '../../core/documents'
import type { MachineHandle } from '../../core/handle'
import { microUsd } from '../../core/money/money'
import type { Order } from '../../core/job/plan'
import { DEFAULT_TIMING, type Timing } from '../../core/time/timing'
import { putDocument } from '../../storage/json'
import { layout } from '../../storage/layout'
import { openStore } from '../../storage/open-store'
import { StoreError, type ObjectStore } from '../../storage/store'
import { RealClock } from '../backends/scripted/clock'
import { createScriptedBackend } from '../backends/scripted/scripted-backend'
import { ScriptedWorld, type Ware, type WorldOptions } from '../backends/scripted/world'
import { makeOrder, type OrderOptions } from '../backends/orders'
import { unlikeReplays } from '../kit/replays'

/** Waits of milliseconds where something has to be waited for at all. */
export const QUICK: Timing = {
  ...DEFAULT_TIMING,
  observeMs: 5,
  goneConfirmMs: 10,
  powerOffMs: 20,
  drainMs: 100,
}

export const SPOT: Ware = {
  capacityType: 'spot',
  type: 'v100',
  place: 'a',
  stock: 100,
  priceMicroUsdPerHour: microUsd(360),
}

/** The context of an activity: long enough to be no limit, unless a test says otherwise. */
const INFO: Partial<Info> = { startToCloseTimeoutMs: 600_000, heartbeatTimeoutMs: 20_000 }

/**
 * A provider whose machines live and say nothing, so that a test writes what it wants their runners to have said; a folder as
 * the store; and activities over both, run as a worker runs them.
 */
export class Place {
  readonly store: ObjectStore
  readonly world: ScriptedWorld
  readonly backend: Backend
  /** How far the clock of the activities is ahead of the machines'. */
  aheadMs = 0
  /** Time that has passed by the monotonic clock in addition to the real one. */
  passedMs = 0

  private constructor(
    private readonly root: string,
    wishes: Partial<WorldOptions>,
  ) {
    this.store = openStore(pathToFileURL(root).href)
    this.world = new ScriptedWorld({
      clock: new RealClock(),
      store: this.store,
      wares: [SPOT],
      behave: () => ({ neverStarts: true }),
      ...wishes,
    })
    this.backend = createScriptedBackend(this.world)
  }

  static async make(wishes: Partial<WorldOptions> = {}): Promise<Place> {
    return new Place(await mkdtemp(join(tmpdir(), 'crucible-activities-')), wishes)
  }

  readonly now = (): number => Date.now() + this.aheadMs

  order(options: Partial<OrderOptions> = {}): Order {
    return makeOrder({ store: this.store, offers: this.world.offers({}), timing: QUICK, ...options })
  }

  /** An order and its machine, whose runner never speaks. */
  launched(order = this.order()): { order: Order; handle: MachineHandle } {
    const outcome = this.world.buy(order)
    if (outcome.kind !== 'launched') throw new Error(`no machine: ${JSON.stringify(outcome)}`)
    return { order, handle: outcome.handle }
  }

  /** Whether each machine still is, oldest first. */
  lives(): ('alive' | 'gone')[] {
    return this.world.machines.map(({ state }) => (state === 'gone' ? 'gone' : 'alive'))
  }

  verbs(deps: Partial<BackendDeps> = {}): BackendActivities {
    const { backend, store, now } = this
    const owners = async (): Promise<'absent'> => 'absent'
    return createBackendActivities({
      backend,
      store,
      now,
      // Real time: a test that moves the wall clock sets it, and no time passes.
      monotonicMs: () => performance.now() + this.passedMs,
      handOverSecrets: async () => undefined,
      maskSecrets: async (_jobId, text) => text,
      owners,
      ...deps,
    })
  }

  beat({ jobId, attempt, attemptId }: Order, beat: Partial<Beat> = {}): Promise<void> {
    return putDocument(this.store, layout.beat(jobId, attempt), {
      attemptId,
      seq: 1,
      phase: 'running',
      progress: null,
      gpus: [],
      checkpoint: null,
      restoredFrom: null,
      limitsSeq: 0,
      leaseSeq: 0,
      logLines: 0,
      clockMs: this.now(),
      uptimeMs: 1_000,
      ...beat,
    } satisfies Beat)
  }

  result({ jobId, attempt, attemptId }: Order, result: Partial<RunnerResult> = {}): Promise<void> {
    return putDocument(this.store, layout.result(jobId, attempt), {
      version: 1,
      attemptId,
      outcome: 'succeeded',
      reason: 'completed',
      message: 'done',
      exitCode: 0,
      signal: null,
      progress: null,
      checkpoint: null,
      restoredFrom: null,
      artifacts: [],
      phases: [],
      logLines: 0,
      finishedAtMs: this.now(),
      ...result,
    } satisfies RunnerResult)
  }

  async read<T>(key: string): Promise<T | undefined> {
    const body = await this.store.get(key)
    return body === undefined ? undefined : (JSON.parse(body.toString()) as T)
  }

  /** Makes an object older. */
  async age(key: string, byMs: number): Promise<void> {
    const at = new Date(Date.now() - byMs)
    await utimes(join(this.root, key), at, at)
  }

  /** The store's disk is not there. Returns how to bring it back. */
  async storeDown(): Promise<() => Promise<void>> {
    const aside = `${this.root}.aside`
    await rename(this.root, aside)
    return () => rename(aside, this.root)
  }

  /** Ends all; every decision that the test put on record can be made again from it. */
  async dispose(): Promise<void> {
    this.world.dispose()
    const wrong = await unlikeReplays(this.store).catch((error: unknown) => {
      if (error instanceof StoreError) return []
      throw error
    })
    // A runner may be in the midst of its last write.
    const wholly = { recursive: true, force: true, maxRetries: 5 }
    await Promise.all([this.root, `${this.root}.aside`].map((path) => rm(path, wholly)))
    if (wrong.length > 0) throw new Error(wrong.join('\n'))
  }
}

/** An activity's surroundings as a worker makes them, the turning of errors into failures included. */
export function surroundings(info: Partial<Info> = {}): MockActivityEnvironment {
  const interceptors = [() => ({ inbound: failureInterceptor })]
  // What fails here is meant to.
  const logger = new DefaultLogger('ERROR')
  return new MockActivityEnvironment({ ...INFO, ...info }, { interceptors, logger })
}

type Input<Activity> = Activity extends (input: infer I) => Promise<unknown> ? I : never
type Output<Activity> = Activity extends (...input: never[]) => Promise<infer O> ? O : never

/** Runs one activity alone. */
export function perform<Activities extends object, Name extends keyof Activities>(
  activities: Activities,
  name: Name,
  input: Input<Activities[Name]>,
  info: Partial<Info> = {},
): Promise<Output<Activities[Name]>> {
  const activity = activities[name] as (input: unknown) => Promise<Output<Activities[Name]>>
  return surroundings(info).run((one: unknown) => activity(one), input)
}
