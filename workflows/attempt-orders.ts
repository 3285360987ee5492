import { CancellationScope, defineSignal, setHandler } from '@temporalio/workflow'
import type { Wish } from '../core/activities'
import type { Limits } from '../core/documents'
import {
  DRAIN_SIGNAL,
  EXTEND_SIGNAL,
  type AttemptInput,
  type DrainRequest,
  type ExtendRequest,
} from '../core/messages'

/** Orders that an attempt receives while it runs. */
export interface AttemptOrders {
  /** The first reason counts; a later order can only shorten the window. */
  readonly drain: DrainRequest | undefined
  /** Extensions not yet passed on. */
  readonly limits: Limits[]
  readonly isClosed: boolean
  /** The owner's request, as far as the attempt knows it. */
  wish(): Wish | null
  /** The machine's reservation ends: equivalent to an order to save and stop within this time. */
  expire(windowMs: number): void
  /** The budget is reached: equivalent to an order to save and stop. */
  reachBudget(): void
  /** The attempt is over and obeys no more orders. */
  close(): void
}

const drainSignal = defineSignal<[DrainRequest]>(DRAIN_SIGNAL)
const extendSignal = defineSignal<[ExtendRequest]>(EXTEND_SIGNAL)

export function attemptOrders({ timing }: AttemptInput): AttemptOrders {
  const orders = {
    drain: undefined as DrainRequest | undefined,
    limits: [] as Limits[],
    isClosed: false,
    wish: (): Wish | null => {
      const reason = orders.drain?.reason
      return reason === undefined || reason === 'superseded' || reason === 'expired' ? null : reason
    },
    expire: (windowMs: number): void => obey({ reason: 'expired', windowMs }),
    reachBudget: () => obey({ reason: 'budget', windowMs: timing.drainMs }),
    close: (): void => {
      orders.isClosed = true
    },
  }
  const obey = (request: DrainRequest): void => {
    const { drain } = orders
    if (drain === undefined) orders.drain = request
    else if (request.windowMs < drain.windowMs) orders.drain = { ...drain, windowMs: request.windowMs }
  }
  setHandler(drainSignal, obey, { description: 'Save and stop within a window.' })
  setHandler(extendSignal, ({ limits }) => void orders.limits.push(limits), {
    description: 'New deadline or budget.',
  })
  // An external cancellation, by hand or with its job, is equivalent to an order to save and stop.
  CancellationScope.current().cancelRequested.catch(() => {
    obey({ reason: 'superseded', windowMs: timing.drainMs })
  })
  return orders
}
