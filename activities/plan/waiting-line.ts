import type { PlanInput } from '../../core/activities'
import type { BackendName } from '../../core/offer'
import { MINUTE_MS, SECOND_MS } from '../../core/time/time'
import {
  aheadOf,
  inOrder,
  poolOf,
  wishNamed,
  type Asker,
  type LinePlace,
  type Waiter,
} from '../../core/job/waiting'
import { readRecord } from '../../storage/record'
import type { ObjectStore } from '../../storage/store'
import {
  endTurns,
  giveTurnBack,
  leaveLine,
  putWaiter,
  recentLine,
  takeTurn,
  waiterKey,
  type Line,
  type StoredWaiter,
} from '../../storage/waiting-line'
import { sha256 } from './asking'
import type { OwnerLookup } from '../garbage/garbage'
import { wakeAll, type Wake } from '../waking'
import { HeldTurns } from './held-turns'
import { Lingering } from './lingering'

export interface WaitingLineDeps {
  store: ObjectStore
  owners: OwnerLookup
  now: () => number
  /** The backends of this deployment. */
  backends: readonly BackendName[]
  /** Backends that count their free places and hold them for callers, so that as many jobs may ask at once as places are free. */
  near: readonly BackendName[]
  /** Random number from 0 to 1. */
  random: () => number
  /** Wakes a job; without it, each job waits for the end of its pause. */
  wake?: Wake | undefined
  /** Called with the reason if the order could not be kept; the job then asks independently. */
  onTrouble: (error: unknown) => void
}

/** Whether a job may ask the provider now, and if not, when to try again. */
export type Admission =
  /** `at` is missing if no order is kept. */
  { kind: 'ask'; at?: Standing } | { kind: 'wait'; place: LinePlace; retryInMs: number }

/** Position of a job that asks. */
export interface Standing {
  waiter: Waiter
  place: LinePlace
  /** The older jobs, oldest first. */
  ahead: readonly string[]
  /** Requirements of a turn in another line (`HeldTurns`). */
  turn?: string
}

/** Result of asking. */
export interface Answered {
  /** `aside`: an obstacle of this job alone must not block others. */
  came: 'place' | 'wait' | 'aside'
  /** Number of places for jobs with this request before this one got its own; missing if they are not counted. */
  freePlaces?: number | undefined
}

/** The first in the queue is checked after this long without a sign of life: it may have been terminated. */
const CHECK_AFTER_MS = 5 * SECOND_MS
/** Time after which a job with an open workflow that does not ask counts as busy with something else. */
export const FORGET_WAITER_MS = 5 * MINUTE_MS
/** A launch answers within this long, or no longer blocks the others. */
export const FORGET_TURN_MS = 30 * SECOND_MS
/** Average interval of questions from a long line. The last job of it asks far less often than the first. */
const CROWD_GAP_MS = 20
/** Far less than `FORGET_WAITER_MS`. */
const CROWD_PAUSE_MAX_MS = 2 * MINUTE_MS
/** Free places counted this long ago are counted again. */
const FORGET_PLACES_MS = 2 * SECOND_MS
/** Largest number of jobs that a job with a near place wakes; each of them wakes as many again. */
const WAKE_MAX = 4
/** Number of the next jobs for a near backend that wait inside their activities, before Temporal takes over. */
const LINGER_POSITIONS = 2
const LINGER_MS = 30 * SECOND_MS
/** Interval at which a lingering job asks again; it grows over time. */
const LINGER_GAP = { firstMs: 400, laterMs: SECOND_MS, shareOfTime: 0.05 }
/** Upper bound on the older jobs reported to a backend; a job with more ahead does not ask. */
const AHEAD_MAX = 200
const WISH_LENGTH = 16

/**
 * The order in which jobs with equal requests ask for machines: oldest first. It is a few small documents in the store, without a
 * process that could fail; if it cannot be read, a job asks independently. docs/reference/waiting.md.
 */
export class WaitingLine {
  private readonly sinceMs = new Map<string, number>()
  /** The number of places for a request at a near backend, from its last answer. */
  private readonly places = new Map<string, { free: number; atMs: number }>()
  private readonly lingering = new Lingering()

  readonly held: HeldTurns

  constructor(private readonly deps: WaitingLineDeps) {
    this.held = new HeldTurns(deps.now)
  }

  /** Admits a job. A job that asks for the first time joins a queue only if others already wait, or if its machines are near. */
  async admit(input: PlanInput, { isWaiting }: { isWaiting: boolean }): Promise<Admission> {
    // A migration goes to one place or nowhere, and waits for none.
    if (input.target !== undefined) return { kind: 'ask' }
    try {
      return await this.admitInOrder(input, isWaiting)
    } catch (error) {
      this.deps.onTrouble(error)
      return { kind: 'ask' }
    }
  }

  /** The job for which a place is held while its order is on its way; `undefined` for a job that orders later. */
  askerOf({ startsInMs = 0 }: PlanInput, at: Standing | undefined): Asker | undefined {
    if (at === undefined || startsInMs > 0) return undefined
    const { jobId, sinceMs } = at.waiter
    return { jobId, sinceMs, ahead: at.ahead }
  }

  /** Records the result of asking. A turn lasts until the order has been answered (`endTurn`). */
  async asked(input: PlanInput, at: Standing | undefined, { came, ...counted }: Answered): Promise<void> {
    const { store, now } = this.deps
    if (at === undefined) return
    const { waiter } = at
    const placed = came === 'place' ? 1 : 0
    const freePlaces = this.isNear(input) ? counted.freePlaces : undefined
    if (freePlaces !== undefined) this.places.set(waiter.wish, { free: freePlaces - placed, atMs: now() })
    try {
      if (came === 'wait') {
        if (this.isNear(input)) return
        await putWaiter(store, waiter)
        if (at.turn !== undefined) await giveTurnBack(store, { ...waiter, wish: at.turn })
        return await giveTurnBack(store, waiter)
      }
      const keepsTurn = came === 'place' && (input.startsInMs ?? 0) <= 0
      const waiters = await leaveLine(store, { jobId: waiter.jobId, waiter })
      if (!keepsTurn) await endTurns(store, waiter.jobId)
      if (freePlaces === undefined) return
      const next = inOrder(waiters.filter(({ wish }) => wish === waiter.wish))
      // Lingering jobs come forward, because another machine may have ended since the places were counted.
      const count = Math.max(LINGER_POSITIONS, Math.min(WAKE_MAX, freePlaces - placed))
      await wakeAll(this.wake, next.slice(0, count))
    } catch (error) {
      this.deps.onTrouble(error)
    }
  }

  /** Waits inside the activity if the job is one of the next for near machines; returns false if it should wait outside. */
  async linger(
    input: PlanInput,
    { position, sinceMs, signal }: { position?: number | undefined; sinceMs: number; signal: AbortSignal },
  ): Promise<boolean> {
    if (position === undefined || position > LINGER_POSITIONS || !this.isNear(input)) return false
    const lingeredMs = this.deps.now() - sinceMs
    // The clock may have been set back.
    if (lingeredMs < 0 || lingeredMs >= LINGER_MS || !this.lingering.hasRoom) return false
    const { firstMs, laterMs, shareOfTime } = LINGER_GAP
    const gapMs = Math.max(position === 1 ? firstMs : laterMs, lingeredMs * shareOfTime)
    await this.lingering.wait(input.jobId, gapMs * this.jitter(), signal)
    return this.isInLine(input)
  }

  /**
   * False when the job has left: a cancelled activity hears of that only with a heartbeat, after up to 12 s. Until then it would
   * take a place that it never uses.
   */
  private async isInLine(input: PlanInput): Promise<boolean> {
    try {
      return (await this.deps.store.head(waiterKey(await this.waiterOf(input)))) !== undefined
    } catch (error) {
      this.deps.onTrouble(error)
      return false
    }
  }

  /** Returns when a waiting job asks again: the next ones soon, the others later. */
  retryInMs(input: PlanInput, position: number, tries: number): number {
    const pauseMs = this.isNear(input)
      ? Math.min(10 * SECOND_MS, position === 1 ? SECOND_MS : 2 * position * SECOND_MS)
      : Math.min(30 * SECOND_MS, (position === 1 ? 2 * tries : 5 * position) * SECOND_MS)
    const crowdedMs = Math.min(CROWD_PAUSE_MAX_MS, position * CROWD_GAP_MS)
    return Math.round(Math.max(pauseMs, crowdedMs) * this.jitter())
  }

  private jitter(): number {
    return 0.75 + this.deps.random() / 2
  }

  private readonly wake: Wake = async (jobId) => {
    if (!this.lingering.wake(jobId)) await this.deps.wake?.(jobId)
  }

  private async admitInOrder(input: PlanInput, isWaiting: boolean): Promise<Admission> {
    const { store } = this.deps
    const self = await this.waiterOf(input)
    const isStrict = isWaiting || this.isNear(input)
    if (isStrict) await putWaiter(store, self)
    const line = await recentLine(store)
    const ahead = await this.alive(aheadOf(self, line.waiters), line, self)
    const position = ahead.length + 1
    const place = { position, pool: poolOf(input.resolved.spec) }
    const mayAsk = this.isNear(input)
      ? this.hasPlace(self, ahead.length)
      : ahead.length === 0 && (!isStrict || (await this.hasTurn(self, line)))
    const at = { waiter: self, place, ahead: ahead.map(({ jobId }) => jobId) }
    if (mayAsk) return { kind: 'ask', at }
    const turn = this.held.turnOf(input, self.wish)
    if (turn !== undefined && (await this.hasTurn({ ...self, wish: turn }, line)))
      return { kind: 'ask', at: { ...at, turn } }
    if (!isStrict) await putWaiter(store, self)
    return { kind: 'wait', place, retryInMs: this.retryInMs(input, position, 1) }
  }

  /** The first always asks; its answer says how many of the next ones may. */
  private hasPlace({ wish }: Waiter, ahead: number): boolean {
    const known = this.places.get(wish)
    if (ahead === 0 || known === undefined) return ahead === 0
    const ageMs = Math.abs(this.deps.now() - known.atMs)
    return ahead < known.free && ahead <= AHEAD_MAX && ageMs <= FORGET_PLACES_MS
  }

  /** Drops the first job of the queue if it has vanished; one check per question is enough for the others. */
  private async alive(ahead: StoredWaiter[], line: Line, self: Waiter): Promise<StoredWaiter[]> {
    const nowMs = this.storeNowMs(line, self)
    for (let first = 0; first < ahead.length; first++) {
      if (!(await this.isGone(ahead[first]!, nowMs))) return ahead.slice(first)
      await this.deps.store.delete(ahead[first]!.key)
    }
    return []
  }

  private async isGone({ jobId, seenAtMs }: StoredWaiter, nowMs: number): Promise<boolean> {
    const silentMs = nowMs - seenAtMs
    if (silentMs < CHECK_AFTER_MS) return false
    return silentMs > FORGET_WAITER_MS || (await this.deps.owners({ jobId })) !== 'open'
  }

  private async hasTurn(self: Waiter, line: Line): Promise<boolean> {
    const { store } = this.deps
    const turn = line.turns.find(({ wish }) => wish === self.wish)
    if (turn !== undefined && this.storeNowMs(line, self) - turn.takenAtMs > FORGET_TURN_MS)
      await store.delete(turn.key)
    return takeTurn(store, self)
  }

  /** The store's clock, taken from the newest document: ours may differ. */
  private storeNowMs({ waiters }: Line, { jobId }: Waiter): number {
    const own = waiters.find((waiter) => waiter.jobId === jobId)
    return own?.seenAtMs ?? Math.max(0, ...waiters.map(({ seenAtMs }) => seenAtMs))
  }

  private async waiterOf(input: PlanInput): Promise<Waiter> {
    const { jobId } = input
    const sinceMs =
      this.sinceMs.get(jobId) ?? (await readRecord(this.deps.store, jobId, 0))?.atMs ?? this.deps.now()
    if (this.sinceMs.size > SINCE_MAX) this.sinceMs.clear()
    this.sinceMs.set(jobId, sinceMs)
    return { jobId, sinceMs, wish: wishOf(input), backends: this.wantedBy(input) }
  }

  private isNear(input: PlanInput): boolean {
    const wanted = this.wantedBy(input)
    return wanted.length > 0 && wanted.every((name) => this.deps.near.includes(name))
  }

  private wantedBy({ resolved: { spec } }: PlanInput): BackendName[] {
    return this.deps.backends.filter(
      (name) => spec.backends.length === 0 || spec.backends.some(({ backend }) => backend === name),
    )
  }
}

/** Ages kept in memory. */
const SINCE_MAX = 10_000

/** Returns the requirements of a job; jobs with equal ones accept the same offers. */
function wishOf({ resolved: { spec, owner } }: PlanInput): string {
  const { resources, backends, isInterruptible, isolation, accepts, optimize, image } = spec
  const { regions, priceMaxMicroUsdPerHour } = spec
  const wish = {
    resources,
    backends,
    isInterruptible,
    isolation,
    accepts,
    optimize,
    regions,
    priceMaxMicroUsdPerHour,
    hasImage: image !== undefined,
    // The owner decides whether the named reservation is for the job.
    owner: spec.reservation !== undefined ? owner : undefined,
  }
  return wishNamed(sha256(JSON.stringify(wish)).slice(0, WISH_LENGTH), spec.reservation)
}
