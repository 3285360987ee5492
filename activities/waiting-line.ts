import type { PlanInput } from '../core/activities'
import type { BackendName } from '../core/offer'
import { MINUTE_MS, SECOND_MS } from '../core/time'
import { aheadOf, poolOf, type LinePlace, type Waiter } from '../core/waiting'
import { readRecord } from '../storage/record'
import type { ObjectStore } from '../storage/store'
import {
  giveTurnBack,
  leaveLine,
  putWaiter,
  readLine,
  takeTurn,
  type Line,
  type SeenWaiter,
} from '../storage/waiting-line'
import { sha256 } from './asking'
import type { OwnerLookup } from './garbage'

export interface WaitingLineDeps {
  store: ObjectStore
  owners: OwnerLookup
  now: () => number
  /** The backends of this deployment. */
  backends: readonly BackendName[]
  /** Those whose launch answers within a second and whose capacity is known exactly: orders go one by one, and soon. */
  near: readonly BackendName[]
  /** From 0 to 1. */
  random: () => number
  /** Told why the order could not be kept; the job asks on its own then. */
  onTrouble?: (error: unknown) => void
}

/** Whether a job may ask the provider now. */
export type Admission =
  /** `waiter` is missing where no order is kept. */
  { kind: 'ask'; waiter?: Waiter } | { kind: 'wait'; place: LinePlace; retryInMs: number }

/** The first in line is checked on when it has not been heard of for this long: it may have been terminated. */
const CHECK_AFTER_MS = 5 * SECOND_MS
/** A job whose workflow is open and that has not asked for this long does something else. */
const FORGET_WAITER_MS = 5 * MINUTE_MS
/** A launch answers within this long, or no longer holds up the others. */
const FORGET_TURN_MS = 30 * SECOND_MS
const WISH_LENGTH = 16

/**
 * The order in which jobs with equal wishes ask for machines: oldest first. It is a few small documents in the store, so there is no
 * process that could be missing; where it cannot be read, a job asks on its own. docs/waiting.md.
 */
export class WaitingLine {
  private readonly sinceMs = new Map<string, number>()

  constructor(private readonly deps: WaitingLineDeps) {}

  /** A job that asks for the first time joins a line only if others stand in it already, or if its machines are near. */
  async admit(input: PlanInput, { isWaiting }: { isWaiting: boolean }): Promise<Admission> {
    // A migration goes to one place or nowhere, and waits for none.
    if (input.target !== undefined) return { kind: 'ask' }
    try {
      return await this.admitInOrder(input, isWaiting)
    } catch (error) {
      this.deps.onTrouble?.(error)
      return { kind: 'ask' }
    }
  }

  /** What came of asking. A turn is kept until the order has been answered, which `activities/backend.ts` says. */
  async asked(
    { jobId, startsInMs = 0 }: PlanInput,
    waiter: Waiter | undefined,
    came: 'place' | 'wait' | 'aside',
  ): Promise<void> {
    const { store } = this.deps
    if (waiter === undefined) return
    try {
      if (came !== 'wait')
        return await leaveLine(store, jobId, { keepsTurn: came === 'place' && startsInMs <= 0 })
      await putWaiter(store, waiter)
      await giveTurnBack(store, waiter)
    } catch (error) {
      this.deps.onTrouble?.(error)
    }
  }

  /** When a job that waits looks again: those who are next soon, the others at leisure. */
  retryInMs(input: PlanInput, position: number, tries: number): number {
    const pauseMs = this.isNear(input)
      ? Math.min(5 * SECOND_MS, position <= 2 ? SECOND_MS / 2 : (position * SECOND_MS * 3) / 5)
      : Math.min(30 * SECOND_MS, (position === 1 ? 2 * tries : 5 * position) * SECOND_MS)
    return Math.round(pauseMs * (0.75 + this.deps.random() / 2))
  }

  private async admitInOrder(input: PlanInput, isWaiting: boolean): Promise<Admission> {
    const { store } = this.deps
    const self = await this.waiterOf(input)
    const isStrict = isWaiting || this.isNear(input)
    if (isStrict) await putWaiter(store, self)
    const line = await readLine(store)
    const ahead = await this.alive(aheadOf(self, line.waiters), line, self)
    if (ahead.length === 0 && !isStrict) return { kind: 'ask', waiter: self }
    if (ahead.length === 0 && (await this.hasTurn(self, line))) return { kind: 'ask', waiter: self }
    if (!isStrict) await putWaiter(store, self)
    const position = ahead.length + 1
    const place = { position, pool: poolOf(input.resolved.spec) }
    return { kind: 'wait', place, retryInMs: this.retryInMs(input, position, 1) }
  }

  /** Drops the first in line while it has vanished; one look per question is enough for the others. */
  private async alive(ahead: SeenWaiter[], line: Line, self: Waiter): Promise<SeenWaiter[]> {
    const nowMs = this.storeNowMs(line, self)
    for (let first = 0; first < ahead.length; first++) {
      if (!(await this.isGone(ahead[first]!, nowMs))) return ahead.slice(first)
      await this.deps.store.delete(ahead[first]!.key)
    }
    return []
  }

  private async isGone({ jobId, seenAtMs }: SeenWaiter, nowMs: number): Promise<boolean> {
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

  /** The store's own clock, as the newest document tells it: ours may differ. */
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
    return { jobId, sinceMs, wish: wishOf(input) }
  }

  private isNear({ resolved: { spec } }: PlanInput): boolean {
    const { near, backends } = this.deps
    const wanted = backends.filter(
      (name) => spec.backends.length === 0 || spec.backends.some(({ backend }) => backend === name),
    )
    return wanted.length > 0 && wanted.every((name) => near.includes(name))
  }
}

/** Ages kept in memory. */
const SINCE_MAX = 10_000

/** Jobs with the same one accept the same offers. */
function wishOf({ resolved: { spec } }: PlanInput): string {
  const { resources, backends, isInterruptible, optimize, image } = spec
  const wish = { resources, backends, isInterruptible, optimize, hasImage: image !== undefined }
  return sha256(JSON.stringify(wish)).slice(0, WISH_LENGTH)
}
