/** Reserved capacity: wishes for it, what became of them, and words to them. */
import { TypedSearchAttributes } from '@temporalio/common'
import { randomInt, randomUUID } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import type * as temporal from '@temporalio/client'
import { defined } from '../core/defined'
import { failureFrom } from '../core/failure'
import { makeDeploymentId, makeReservationId } from '../core/ids'
import type { UpdateReceipt } from '../core/messages'
import { ORCHESTRATOR_QUEUE, reservationWorkflowId, WORKFLOW_TYPES } from '../core/queues'
import type { CapacityWish } from '../core/reservation'
import {
  APPROVE_UPDATE,
  DECIDE_PURCHASE_UPDATE,
  EXTEND_RESERVATION_UPDATE,
  quoteKey,
  REJECT_UPDATE,
  RELEASE_UPDATE,
  RESERVATION_ID_PATTERN,
  RESIZE_RESERVATION_UPDATE,
  SPLIT_RESERVATION_UPDATE,
  type PurchaseRule,
  type ReservationInput,
  type ResizeReservationUpdate,
} from '../core/reserving'
import { SECOND_MS } from '../core/time'
import { ensureDeployment } from '../storage/deployment'
import { putReservationEntry, readReservationEntries } from '../storage/reservations'
import { ensureDeploymentKey } from '../storage/secrets'
import { putWebhook } from '../storage/webhooks'
import type { Context } from './context'
import { checkSameDeployment } from './deployment'
import { CrucibleError, isTemporals } from './errors'
import { uiUrlOf } from './read-view'
import { findReservation, showReservation } from './reservation-views'
import { ATTRIBUTE_KEYS } from './attributes'
import { UPDATE_LIMIT_MS } from './updates'

/** @experimental */
export interface ReservationRequest {
  wish: CapacityWish
  rule: PurchaseRule
  purpose?: string
  /** News about it are posted there; see `ReservationEvent`. It is stored sealed. */
  webhook?: string
  /** Makes the request repeatable. Random if missing. */
  id?: string
}

/** @experimental */
export interface Reserved {
  id: string
  workflowId: string
  /** False if it existed already. */
  isNew: boolean
}

/**
 * Starts the search for capacity, which may buy what its rule allows. The same id with the same content is the same reservation; another
 * content is refused with `usage`.
 */
export async function reserve(context: Context, request: ReservationRequest): Promise<Reserved> {
  const { store, config } = context
  const { wish, rule, purpose, webhook } = request
  if (request.id !== undefined) checkId(request.id)
  const client = await context.temporal()
  await checkSameDeployment(context, client)
  const reservationId = request.id ?? makeReservationId(randomInt)
  const input: ReservationInput = {
    ...{ reservationId, wish, rule, owner: config.owner },
    deployment: await ensureDeployment(store, () => makeDeploymentId(randomInt)),
    submittedAtMs: context.now(),
    ...defined({ purpose, pageUrl: uiUrlOf(config, reservationWorkflowId(reservationId)) }),
    ...(webhook === undefined ? {} : { webhookOf: reservationId }),
  }
  const entry = await putReservationEntry(store, reservationId, {
    ...{ seq: 0, atMs: input.submittedAtMs, kind: 'requested', data: input },
    summary: `${wish.count} × ${wish.types.join(' or ')}, ${wish.kind}`,
  })
  const standing = entry.data as ReservationInput
  if (!isSameRequest(standing, input))
    throw new CrucibleError('usage', `A different reservation ${reservationId} already exists.`, {
      hint: 'Ids are never reused: choose another one, or leave it out for a generated id.',
    })
  if (webhook !== undefined) {
    const key = await ensureDeploymentKey(config.home.secretKeyFile)
    await putWebhook(store, key, { id: reservationId, url: checkedUrl(webhook) })
  }
  return {
    id: reservationId,
    workflowId: reservationWorkflowId(reservationId),
    isNew: await start(client, standing),
  }
}

/** Between reading the clock for the times of a request and sending it. */
const REQUEST_TAKES_MS = 30 * SECOND_MS

/** A repeated command means the same, although `in 30 days` is another instant by then. */
function isSameRequest(standing: ReservationInput, asked: ReservationInput): boolean {
  const laterMs = asked.submittedAtMs - standing.submittedAtMs
  const asStanding = (was: number | undefined, is: number | undefined): number | undefined =>
    was !== undefined && is !== undefined && Math.abs(is - was - laterMs) <= REQUEST_TAKES_MS ? was : is
  const { earliestStartAtMs, latestStartAtMs, latestEndAtMs } = standing.wish
  const { wish, rule } = asked
  const same = {
    wish: {
      ...wish,
      earliestStartAtMs: asStanding(earliestStartAtMs, wish.earliestStartAtMs),
      latestStartAtMs: asStanding(latestStartAtMs, wish.latestStartAtMs),
      latestEndAtMs: asStanding(latestEndAtMs, wish.latestEndAtMs),
    },
    rule: { ...rule, searchUntilAtMs: asStanding(standing.rule.searchUntilAtMs, rule.searchUntilAtMs) },
  }
  return isDeepStrictEqual({ wish: standing.wish, rule: standing.rule }, JSON.parse(JSON.stringify(same)))
}

function checkedUrl(webhook: string): string {
  const { protocol = '', username, password } = URL.parse(webhook) ?? {}
  if (username || password)
    throw new CrucibleError(
      'usage',
      'The webhook has a user name or a password in its URL, and no request can be sent so.',
      {
        hint: 'Leave them out: a webhook is trusted by its path.',
      },
    )
  if (/^https?:$/.test(protocol)) return webhook
  throw new CrucibleError('usage', 'The webhook is not a URL of http or https.', {
    hint: 'Such as --notify https://hooks.example.com/crucible.',
  })
}

function checkId(id: string): void {
  if (RESERVATION_ID_PATTERN.test(id)) return
  throw new CrucibleError('usage', `"${id}" is not an id of a reservation.`, {
    hint: 'Write res- and at most 40 of a-z, 0-9 and dashes, such as res-ranker-2027-q1.',
  })
}

async function start(client: temporal.Client, input: ReservationInput): Promise<boolean> {
  try {
    await client.workflow.start(WORKFLOW_TYPES.reserveCapacity, {
      workflowId: reservationWorkflowId(input.reservationId),
      workflowIdReusePolicy: 'REJECT_DUPLICATE',
      taskQueue: ORCHESTRATOR_QUEUE,
      args: [input],
      typedSearchAttributes: new TypedSearchAttributes([
        { key: ATTRIBUTE_KEYS.name, value: input.purpose ?? input.reservationId },
        { key: ATTRIBUTE_KEYS.owner, value: input.owner },
        { key: ATTRIBUTE_KEYS.state, value: 'searching' },
        { key: ATTRIBUTE_KEYS.backend, value: input.wish.backend },
      ]),
      staticSummary: `capacity: ${input.wish.count} × ${input.wish.types.join(' or ')}`,
    })
    return true
  } catch (error) {
    if (isTemporals(error, 'WorkflowExecutionAlreadyStartedError')) return false
    throw error
  }
}

/** Buys the offer that is shown now. Throws `failed` if nothing waits for approval. */
export async function approveReservation(
  context: Context,
  meant: string,
  seen?: string,
): Promise<UpdateReceipt> {
  const { status } = await showReservation(context, meant)
  if (status.quote === undefined)
    throw new CrucibleError(
      'failed',
      `Nothing of ${status.id} waits for approval: its state is ${status.state}.`,
    )
  return tell(context, status.id, {
    name: APPROVE_UPDATE,
    update: { quote: seen ?? quoteKey(status.quote.quote) },
  })
}

export async function rejectReservation(
  context: Context,
  meant: string,
  reason?: string,
): Promise<UpdateReceipt> {
  return tell(context, await findReservation(context, meant), {
    name: REJECT_UPDATE,
    update: defined({ reason }),
  })
}

/** Says what became of an undecided purchase; null: it was certainly not made. */
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

export async function extendReservation(
  context: Context,
  meant: string,
  wish: { durationMs: number; upfrontMaxMicroUsd: number },
): Promise<UpdateReceipt> {
  return tell(context, await findReservation(context, meant), {
    name: EXTEND_RESERVATION_UPDATE,
    update: wish,
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
 * Moves free places of an hourly reservation into one of their own, which begins as held. With an id that exists already, nothing more is
 * split off.
 */
export async function splitReservation(
  context: Context,
  meant: string,
  { count, id = makeReservationId(randomInt) }: { count: number; id?: string },
): Promise<UpdateReceipt & { newId: string }> {
  checkId(id)
  const source = await findReservation(context, meant)
  const [first] = await readReservationEntries(context.store, id)
  if (first !== undefined) return { newId: id, message: `${id} exists already: nothing more was split off.` }
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
  return tell(context, await findReservation(context, meant), {
    name: RELEASE_UPDATE,
    update: { chargeMaxMicroUsd },
  })
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
    return await client.withDeadline(Date.now() + TELL_LIMIT_MS, () =>
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
