import { WorkflowExecutionAlreadyStartedError } from '@temporalio/common'
import { startChild } from '@temporalio/workflow'
import { defined } from '../../core/defined'
import { failureFrom, isWithoutEffect, type Failure } from '../../core/failure'
import { plural } from '../../core/plural'
import { shareInWords } from '../../core/reservation/hold'
import { formatUsd, type MicroUsd } from '../../core/money/money'
import { ORCHESTRATOR_QUEUE, reservationWorkflowId, WORKFLOW_TYPES } from '../../core/queues'
import type { OwnedReservation } from '../../core/reservation/reservation'
import {
  shareOfLimit,
  type PurchaseRule,
  type ReservationCarry,
  type ReservationInput,
  type ReservationStatus,
  type ResizeReservationUpdate,
  type SplitReservationUpdate,
} from '../../core/reservation/reserving'
import type { HoldState } from '../../core/reservation/activities'
import { formatInstant } from '../../core/time/time'
import { attributesOf } from '../attributes'
import { forever } from '../forever'
import { reservationDocuments, reservingOn } from './activities'
import type { ReservationRun } from './run'

/** Sets the number, the end and the limit of a reservation. The money for a higher limit is promised first. */
export async function resizeOnRequest(run: ReservationRun): Promise<void> {
  const asked = run.requests.resize!
  const { count, endsAtMs, startsAtMs, spendMaxMicroUsd, share } = asked.update
  const { page } = run
  const { spendMaxMicroUsd: limitBefore = 0 } = page.status.rule
  try {
    const { wish, rule } = page.status
    const wanted = spendMaxMicroUsd === undefined ? rule : { ...rule, spendMaxMicroUsd }
    const refusal = spendMaxMicroUsd === undefined ? undefined : await run.raiseMoney(spendMaxMicroUsd)
    if (refusal !== undefined) return asked.refuse(refusal)
    const { id, region } = run.held!.reservation!
    let reservation = run.held!.reservation!
    if (count !== undefined || endsAtMs !== undefined || startsAtMs !== undefined)
      reservation = await reservingOn(wish.backend, 'change the reservation').changeReservation({
        ...run.task(),
        ref: { id, region },
        rule: wanted,
        spentMicroUsd: page.status.spentMicroUsd,
        count,
        endsAtMs,
        startsAtMs,
      })
    if (share !== undefined) await reservationDocuments.shareReservation({ ...run.task(), share })
    const next = { ...wanted, ...defined({ share }) }
    page.update({ reservation, rule: next, wish: { ...wish, count: reservation.total } })
    asked.done(inWords(reservation, { startsAtMs, spendMaxMicroUsd, share }))
  } catch (error) {
    if (spendMaxMicroUsd !== undefined) await run.lowerMoney(limitBefore)
    asked.refuse(failureFrom(error).message)
  } finally {
    run.requests.resize = undefined
  }
}

function inWords(
  { id, total, endsAtMs }: OwnedReservation,
  { startsAtMs, spendMaxMicroUsd, share }: Omit<ResizeReservationUpdate, 'by' | 'count' | 'endsAtMs'>,
): string {
  const end = endsAtMs === undefined ? 'until it is released' : `until ${formatInstant(endsAtMs)}`
  const limit =
    spendMaxMicroUsd === undefined
      ? ''
      : ` Its unused time may cost ${formatUsd(spendMaxMicroUsd)} before it is released.`
  const use = share === undefined ? '' : ` Idle places are for ${shareInWords(share)}.`
  const start = startsAtMs === undefined ? '' : ` from ${formatInstant(startsAtMs)}`
  return `${id} has ${plural(total, 'machine')}${start}, ${end}.${limit}${use}`
}

/**
 * Moves free places into a separate reservation, which begins as held: it never searches, so it buys nothing. It gets its share of the
 * limit and of the month's reserved money.
 */
export async function splitOnRequest(run: ReservationRun): Promise<void> {
  const asked = run.requests.split!
  try {
    asked.done(await split(run, asked.update))
  } catch (error) {
    asked.refuse(failureFrom(error).message)
  } finally {
    run.requests.split = undefined
  }
}

async function split(run: ReservationRun, update: SplitReservationUpdate): Promise<string> {
  const { page } = run
  const { count, newId } = update
  if (run.parts.includes(newId)) return `${newId} already exists; nothing more was split.`
  const { wish } = page.status
  const { id, region } = run.held!.reservation!
  const part = partOf(run, update)
  const acts = reservingOn(wish.backend, 'split the reservation')
  const task = { ...run.task(), ref: { id, region }, count, part }
  // The step may have had its effect, so it is repeated until its outcome is certain.
  const outcome = await forever(() => acts.splitReservation(task).catch(refusalOf), page)
  if ('class' in outcome) throw new Error(outcome.message)
  run.parts.push(newId)
  const microUsd = part.rule.spendMaxMicroUsd ?? 0
  await startPart(part, outcome, await run.moveMoney(newId, microUsd))
  const { total, free } = run.held!.reservation!
  const reservation = { ...run.held!.reservation!, total: total - count, free: free - count }
  run.held = { ...run.held!, reservation }
  page.update({
    rule: ruleWithout(page.status.rule, microUsd),
    wish: { ...wish, count: total - count },
    reservation,
  })
  return `${plural(count, 'machine')} of ${id} ${count === 1 ? 'is' : 'are'} ${outcome.id} now, held by ${newId}.`
}

function refusalOf(error: unknown): Failure {
  const failure = failureFrom(error)
  if (isWithoutEffect(failure)) return failure
  throw error
}

function partOf(run: ReservationRun, { count, newId }: SplitReservationUpdate): ReservationInput {
  const { page, input, held } = run
  const { wish, rule, spentMicroUsd } = page.status
  const { owner, deployment, purpose, webhookOf } = input
  const { total } = held!.reservation!
  return {
    reservationId: newId,
    owner,
    deployment,
    submittedAtMs: Date.now(),
    wish: { ...wish, count },
    rule: { ...rule, ...defined({ spendMaxMicroUsd: shareOfLimit(rule, { total, count, spentMicroUsd }) }) },
    purpose,
    webhookOf,
  }
}

function ruleWithout(rule: PurchaseRule, microUsd: MicroUsd): PurchaseRule {
  const { spendMaxMicroUsd } = rule
  return spendMaxMicroUsd === undefined ? rule : { ...rule, spendMaxMicroUsd: spendMaxMicroUsd - microUsd }
}

/** Starts the part as a reservation that is already held. */
async function startPart(
  part: ReservationInput,
  reservation: OwnedReservation,
  promise: { jobId: string; month: string; microUsd: MicroUsd },
): Promise<void> {
  const { reservationId, owner, wish, rule, submittedAtMs, purpose } = part
  const status: ReservationStatus = {
    id: reservationId,
    owner,
    wish,
    rule,
    submittedAtMs,
    reservation,
    state: 'active',
    message: `${reservation.id} was split off another reservation.`,
    alternatives: [],
    spentMicroUsd: 0,
    idleMicroUsd: 0,
    purpose,
  }
  const { jobId, month, microUsd } = promise
  const held: HoldState = {
    state: 'active',
    reservation,
    upfrontMicroUsd: 0,
    idleMicroUsd: 0,
    idleMs: 0,
    misses: 0,
  }
  const carry: ReservationCarry = {
    status,
    sends: 1,
    recordSeq: 1,
    paymentFailures: 0,
    held,
    promise: { jobId, month, microUsd },
  }
  try {
    await startChild(WORKFLOW_TYPES.reserveCapacity, {
      workflowId: reservationWorkflowId(reservationId),
      workflowIdReusePolicy: 'REJECT_DUPLICATE',
      taskQueue: ORCHESTRATOR_QUEUE,
      args: [{ ...part, carry }],
      // The part outlives the reservation from which it was split.
      parentClosePolicy: 'ABANDON',
      typedSearchAttributes: attributesOf({
        name: purpose ?? reservationId,
        owner,
        state: 'active',
        backend: wish.backend,
      }),
      staticSummary: `capacity: ${wish.count} × ${reservation.type}`,
    })
  } catch (error) {
    if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error
  }
}
