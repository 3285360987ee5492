/** Words to those who hold reserved capacity, or look for it. */
import { withLimit } from '../deadline'
import { randomInt, randomUUID } from 'node:crypto'
import { defined } from '../../core/defined'
import { failureFrom } from '../../core/failure'
import { makeReservationId } from '../../core/ids'
import type { UpdateReceipt } from '../../core/messages'
import { reservationWorkflowId } from '../../core/queues'
import { boughtUntilMs } from '../../core/reservation/reservation'
import {
  APPROVE_UPDATE,
  DECIDE_PURCHASE_UPDATE,
  EXTEND_RESERVATION_UPDATE,
  quoteKey,
  REJECT_UPDATE,
  RELEASE_UPDATE,
  RESIZE_RESERVATION_UPDATE,
  SPLIT_RESERVATION_UPDATE,
  type ExtendReservationUpdate,
  type ResizeReservationUpdate,
} from '../../core/reservation/reserving'
import { hasReservation } from '../../storage/reservations'
import type { Context } from '../context'
import { checkId } from './reserve'
import { CrucibleError, isTemporals } from '../errors'
import { findReservation, openReservation, showReservation } from './views'
import { UPDATE_LIMIT_MS } from '../updates'

/** Buys the offer that is shown now. Throws `failed` if nothing waits for approval. */
export async function approveReservation(context: Context, meant: string): Promise<UpdateReceipt> {
  const { status } = await showReservation(context, meant)
  if (status.quote === undefined)
    throw new CrucibleError(
      'failed',
      [
        `Nothing of ${status.id} waits for approval: its state is ${status.state ?? 'unknown'}.`,
        ...(status.trouble === undefined ? [] : [status.trouble]),
      ].join(' '),
    )
  return tell(context, status.id, {
    name: APPROVE_UPDATE,
    update: { quote: quoteKey(status.quote.quote) },
  })
}

export async function rejectReservation(
  context: Context,
  meant: string,
  reason?: string,
): Promise<UpdateReceipt> {
  return tell(context, await openId(context, meant), {
    name: REJECT_UPDATE,
    update: defined({ reason }),
  })
}

/** Records the outcome of an undecided purchase; null: it was certainly not made. */
export async function decidePurchase(
  context: Context,
  meant: string,
  ownedId: string | null,
): Promise<UpdateReceipt> {
  const answer = ownedId === null ? { kind: 'not-bought' } : { kind: 'bought', reservationId: ownedId }
  return tell(context, await findReservation(context, meant), {
    name: DECIDE_PURCHASE_UPDATE,
    update: answer,
  })
}

/**
 * Buys an extension, either by a duration or to a new end; a request with an end may be repeated. If the end is later than the one that the
 * caller saw (by default, the one shown now), another person has extended the reservation meanwhile, and nothing is bought.
 */
export async function extendReservation(
  context: Context,
  meant: string,
  wish: Omit<ExtendReservationUpdate, 'by'>,
): Promise<UpdateReceipt> {
  const { id, reservation } = (await showReservation(context, meant)).status
  const seenEndsAtMs = reservation && boughtUntilMs(reservation)
  return tell(context, id, {
    name: EXTEND_RESERVATION_UPDATE,
    update: { ...wish, seenEndsAtMs: wish.seenEndsAtMs ?? seenEndsAtMs },
  })
}

/** Sets machines, end (null: none) or limit of an hourly reservation, or the share of any. It states the result: a repeated one is harmless. */
export async function resizeReservation(
  context: Context,
  meant: string,
  change: Omit<ResizeReservationUpdate, 'by'>,
): Promise<UpdateReceipt> {
  return tell(context, await findReservation(context, meant), {
    name: RESIZE_RESERVATION_UPDATE,
    update: change,
  })
}

/**
 * Moves free places of an hourly reservation into a separate one, which begins as held. If the id already exists, no more places are moved.
 */
export async function splitReservation(
  context: Context,
  meant: string,
  { count, id = makeReservationId(randomInt) }: { count: number; id?: string },
): Promise<UpdateReceipt & { newId: string }> {
  checkId(id)
  const source = await findReservation(context, meant)
  if (await hasReservation(context.store, id))
    return { newId: id, message: `${id} already exists; nothing more was split.` }
  const receipt = await tell(context, source, {
    name: SPLIT_RESERVATION_UPDATE,
    update: { count, newId: id },
  })
  return { ...receipt, newId: id }
}

export async function releaseReservation(
  context: Context,
  meant: string,
  chargeMaxMicroUsd: number,
): Promise<UpdateReceipt> {
  return tell(context, await openId(context, meant), {
    name: RELEASE_UPDATE,
    update: { chargeMaxMicroUsd },
  })
}

/** For requests that end spending: the store may be away or damaged. */
async function openId(context: Context, meant: string): Promise<string> {
  return (await openReservation(context, meant))?.id ?? findReservation(context, meant)
}

/** A purchase takes longer than an answer of a worker. */
const TELL_LIMIT_MS = 6 * UPDATE_LIMIT_MS

async function tell(
  context: Context,
  id: string,
  { name, update }: { name: string; update: object },
): Promise<UpdateReceipt> {
  const client = await context.temporal()
  const handle = client.workflow.getHandle(reservationWorkflowId(id))
  const args: [object] = [{ ...update, by: context.config.owner }]
  try {
    return await withLimit(client, TELL_LIMIT_MS, () =>
      handle.executeUpdate<UpdateReceipt, [object]>(name, { updateId: randomUUID(), args }),
    )
  } catch (error) {
    if (isTemporals(error, 'WorkflowUpdateFailedError'))
      throw new CrucibleError('failed', failureFrom(error).message, { cause: error })
    if (isTemporals(error, 'WorkflowNotFoundError'))
      throw new CrucibleError('failed', `${id} is over.`, {
        hint: `See \`crucible reservations show ${id}\`.`,
      })
    if (!isTemporals(error, 'WorkflowUpdateRPCTimeoutOrCancelledError')) throw error
    const message = `Request accepted, but ${id} has not finished it within a minute.`
    throw new CrucibleError('unconfirmed', message, {
      hint: `See \`crucible reservations show ${id}\`.`,
      cause: error,
    })
  }
}
