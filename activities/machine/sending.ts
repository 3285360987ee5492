import type { Backend, FindContext } from '../../backends/backend'
import { failureOf } from '../../backends/errors'
import type { LaunchOutcome } from '../../core/activities'
import { isWithoutEffect } from '../../core/failure'
import { placesOf, type Order } from '../../core/job/plan'
import type { Ages } from '../../core/time/ages'
import { MINUTE_MS } from '../../core/time/time'
import { Sends, type SendEffect } from '../../storage/sends'
import type { ObjectStore } from '../../storage/store'
import { AttemptDocuments } from '../documents'
import { sendWithin } from './send-limit'

export interface SendingDeps {
  backend: Backend
  store: ObjectStore
  now: () => number
  /** How long ago orders and sends were written, and leases renewed. */
  ages: Ages
  /** Limit on one send to a provider that recognises no repeated order; `SEND_LIMIT_MS` if missing. */
  sendLimitMs?: number
}

/** Slow providers answer a launch within two minutes. Until this long after its mark, the send of a lost worker may be in progress. */
const SEND_LIMIT_MS = 3 * MINUTE_MS

/** Sends an order so that it makes at most one machine, however often and wherever this is called, and whichever call a worker dies in. */
export async function sendOnce(deps: SendingDeps, order: Order, signal: AbortSignal): Promise<LaunchOutcome> {
  const { backend, store, now, sendLimitMs = SEND_LIMIT_MS } = deps
  const documents = new AttemptDocuments(store, order, now)
  if (backend.capabilities.idempotency === 'token') {
    const outcome = await backend.launch(order, { signal })
    if (outcome.kind === 'launched') await documents.putMachine(outcome.handle)
    return outcome
  }
  const sends = new Sends(store, order, now)
  const mark = await sends.begin()
  if (mark === undefined) {
    const handle = await documents.readMachine()
    return handle === undefined ? { kind: 'unconfirmed', findAfterMs: 0 } : { kind: 'launched', handle }
  }
  const conclude = (effect: SendEffect): Promise<void> =>
    // Without this document the machine is searched for, which is slower and as safe.
    sends.conclude(mark, effect).catch(() => undefined)
  let outcome: LaunchOutcome
  try {
    outcome = await sendWithin({ untilMs: mark.atMs + sendLimitMs, now, signal }, (within) =>
      backend.launch(order, { ...within, send: mark.name }),
    )
  } catch (error) {
    await conclude(effectOfError(error))
    throw error
  }
  if (outcome.kind === 'launched') await documents.putMachine(outcome.handle)
  await conclude(effectOf(outcome))
  return outcome
}

function effectOf(outcome: LaunchOutcome): SendEffect {
  switch (outcome.kind) {
    case 'launched':
      return { kind: 'launched', machine: outcome.handle.id }
    case 'refused':
      return { kind: 'no-effect', failure: outcome.failure }
    case 'unconfirmed':
      return { kind: 'unconfirmed' }
  }
}

function effectOfError(error: unknown): SendEffect {
  const failure = failureOf(error)
  return isWithoutEffect(failure) ? { kind: 'no-effect', failure } : { kind: 'unconfirmed' }
}

/** Searches for resources of one order: they can only be where the order went, and a send in progress may still make one. */
export async function lookFor(
  { backend, store, now, ages, sendLimitMs = SEND_LIMIT_MS }: SendingDeps,
  order: Order,
  signal: AbortSignal,
): Promise<FindContext> {
  const within = placesOf(order)
  if (backend.capabilities.idempotency === 'token') return { signal, within }
  const sentUntilMs = await new Sends(store, order, now).sentUntilMs(sendLimitMs)
  if (sentUntilMs === undefined) return { signal, within }
  const leftMs = sendLimitMs - ages.of(`send of ${order.attemptId}`, sentUntilMs - sendLimitMs)
  return { signal, within, sentUntilMs: now() + leftMs }
}

/** Prevents further sends of the order. A provider that recognises its token needs no mark, because it would sell nothing new. */
export async function sealSends({ backend, store, now }: SendingDeps, order: Order): Promise<void> {
  if (backend.capabilities.idempotency === 'tag') await new Sends(store, order, now).seal()
}
