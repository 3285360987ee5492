import {
  isGrpcServiceError,
  ServiceError,
  WithStartWorkflowOperation,
  WorkflowExecutionAlreadyStartedError,
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
  WorkflowUpdateRPCTimeoutOrCancelledError,
  type Client,
} from '@temporalio/client'
import { BackendError } from '../../backends/errors'
import { failureFrom } from '../../core/failure'
import { PROMISE_UPDATE, SETTLE_UPDATE, TREASURY_QUERY } from '../../core/messages'
import { isAmount } from '../../core/figures'
import type { MicroUsd } from '../../core/money/money'
import {
  ORCHESTRATOR_QUEUE,
  resetCommand,
  terminateCommand,
  treasuryWorkflowId,
  WORKFLOW_TYPES,
} from '../../core/queues'
import {
  emptyTreasury,
  parseReservationBudgetId,
  reservationBudgetId,
  type MonthlyLimits,
  type ReservedBudget,
  type BudgetAnswer,
  type MonthlyBudgetRequest,
  type BudgetRequest,
  type SettleRequest,
  type TreasuryState,
} from '../../core/money/treasury'
import { ignoreUnreadable } from '../../storage/json'
import { Purchases } from '../../storage/purchases'
import { readRecords } from '../../storage/record'
import type { ObjectStore } from '../../storage/store'
import { isOfOthers } from '../../storage/workflow-origin'
import type { OwnerLookup } from '../garbage/garbage'

/** Stores and clients for the money of months and owners. */
export interface TreasuryDeps {
  client: Client
  store: ObjectStore
  owners: OwnerLookup
  limits: MonthlyLimits
}

/** Money reserved for a job that can no longer report its end. */
export interface EndedBudget extends ReservedBudget {
  jobId: string
  /** The part that counts as spent. */
  spentMicroUsd: MicroUsd
  /** Time of the reservation according to the job's record; otherwise the start of the month. */
  sinceMs: number
}

/** Who started the newest workflow of a month's id. */
type Origin =
  /** The deployment, or the id is free. */
  | { kind: 'own' }
  /** Somebody without the deployment's key. */
  | { kind: 'others' }
  /** Somebody without the key, after this run of the deployment was terminated by hand. */
  | { kind: 'ended'; runId: string }

/** The money of a deployment's months, for the activities of its jobs. */
export class Treasury {
  constructor(private readonly deps: TreasuryDeps) {}

  /** Reserves a job's whole budget. Throws `quota`, with the arithmetic, if that exceeds the rest. */
  async promise({ month, ...wanted }: MonthlyBudgetRequest, signal: AbortSignal): Promise<void> {
    const ask = (): Promise<BudgetAnswer> => this.within(signal, () => this.ask(month, wanted))
    const first = await ask()
    if (first.kind === 'promised') return
    // Jobs that were terminated by hand could not report their end.
    const isAnySettled = await this.settleEnded(month, signal)
    const answer = isAnySettled ? await ask() : first
    if (answer.kind === 'refused') throw new BackendError({ class: 'quota', ...answer })
  }

  /** Reports the end of a job. Idempotent. */
  async settle(month: string, request: SettleRequest, signal: AbortSignal): Promise<void> {
    const { kind } = await this.originOf(month)
    if (kind === 'own' && (await this.isSettled(month, request, signal))) return
    // A treasury that was terminated by hand needs no correction. One that never began, on a server that was restored from an older backup or
    // where somebody else has taken its id, begins with this.
    if (request.isCertain !== true || kind === 'ended') return
    await this.settleFirst(month, request, { origin: kind, signal })
  }

  /** False if the month has no open treasury. */
  private async isSettled(month: string, request: SettleRequest, signal: AbortSignal): Promise<boolean> {
    const handle = this.deps.client.workflow.getHandle(treasuryWorkflowId(month))
    try {
      await this.within(signal, () =>
        handle.executeUpdate<void, [SettleRequest]>(SETTLE_UPDATE, {
          args: [request],
          updateId: `over/${request.jobId}`,
        }),
      )
      return true
    } catch (error) {
      if (!(error instanceof WorkflowNotFoundError)) throw error
      return false
    }
  }

  /** Begins the month with money that is already spent. A month that was terminated by hand stays closed. */
  private async settleFirst(
    month: string,
    request: SettleRequest,
    { origin, signal }: { origin: 'own' | 'others'; signal: AbortSignal },
  ): Promise<void> {
    const startWorkflowOperation = starting(month, origin)
    try {
      await this.within(signal, () =>
        this.deps.client.workflow.executeUpdateWithStart<
          (state: TreasuryState) => Promise<void>,
          void,
          [SettleRequest]
        >(SETTLE_UPDATE, { startWorkflowOperation, args: [request], updateId: `over/${request.jobId}` }),
      )
    } catch (error) {
      if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error
      if (origin === 'others') throw taken(month)
    }
  }

  /** Settles a promise for a purchase, if one exists, by its marks. From then on the purchase can no longer be sent. */
  async settlePurchase(
    month: string,
    purchase: { reservationId: string; send: number },
    signal: AbortSignal,
  ): Promise<void> {
    const jobId = reservationBudgetId(purchase.reservationId, purchase.send)
    const promised = (await this.promisedIn(month))[jobId]
    if (promised === undefined) return
    const { owner, microUsd } = promised
    const { spentMicroUsd } = await this.spentByPurchase(purchase, { month, promisedMicroUsd: microUsd })
    await this.settle(month, { jobId, owner, spentMicroUsd }, signal)
  }

  /** The workflow may be served by this very worker: once that shuts down, no answer comes. */
  private within<T>(signal: AbortSignal, ask: () => Promise<T>): Promise<T> {
    return this.deps.client.withAbortSignal(signal, ask)
  }

  private async ask(month: string, wanted: Omit<BudgetRequest, 'limits'>): Promise<BudgetAnswer> {
    const { client, limits } = this.deps
    let origin: Origin = { kind: 'own' }
    try {
      origin = await this.originOf(month)
      if (origin.kind === 'ended') throw ended(month, origin.runId)
      const start = starting(month, origin.kind)
      return await client.workflow.executeUpdateWithStart<
        (state: TreasuryState) => Promise<void>,
        BudgetAnswer,
        [BudgetRequest]
      >(PROMISE_UPDATE, { startWorkflowOperation: start, args: [{ ...wanted, limits }] })
    } catch (error) {
      const isTaken = origin.kind === 'others' && error instanceof WorkflowExecutionAlreadyStartedError
      throw isTaken ? taken(month) : refusalOf(error, month)
    }
  }

  /** Who started the newest workflow of the month. Somebody else's knows no money. */
  private async originOf(month: string): Promise<Origin> {
    const { client } = this.deps
    const workflowId = treasuryWorkflowId(month)
    try {
      if (!(await isOfOthers(client, { workflowId }))) return { kind: 'own' }
      for await (const { runId } of client.workflow.list({ query: `WorkflowId = '${workflowId}'` }))
        if (!(await isOfOthers(client, { workflowId, runId }))) return { kind: 'ended', runId }
      return { kind: 'others' }
    } catch (error) {
      throw isGrpcServiceError(error) ? new ServiceError(error.message, { cause: error }) : error
    }
  }

  /** Releases reservations of jobs that were terminated by hand. Returns true if one existed. */
  private async settleEnded(month: string, signal: AbortSignal): Promise<boolean> {
    const ended = await this.endedPromises(month)
    for (const { jobId, owner, spentMicroUsd } of ended)
      await this.settle(month, { jobId, owner, spentMicroUsd }, signal)
    return ended.length > 0
  }

  /** Returns reservations of jobs whose workflows are closed and whose attempts cannot cost more. */
  async endedPromises(month: string): Promise<EndedBudget[]> {
    const { owners } = this.deps
    const ended: EndedBudget[] = []
    for (const [jobId, promised] of Object.entries(await this.promisedIn(month))) {
      const purchase = parseReservationBudgetId(jobId)
      const owner = purchase && { jobId: purchase.reservationId, isReservation: true as const }
      if ((await owners(owner ?? { jobId })) === 'open') continue
      const spent =
        purchase === undefined
          ? await this.spentBy(jobId, promised.microUsd)
          : await this.spentByPurchase(purchase, { month, promisedMicroUsd: promised.microUsd })
      if (spent !== undefined) ended.push({ jobId, ...promised, sinceMs: Date.parse(month), ...spent })
    }
    return ended
  }

  /** Returns the month's promises; nothing if the month has no treasury, or its treasury was terminated by hand and releases nothing. */
  private async promisedIn(month: string): Promise<TreasuryState['promised']> {
    const handle = this.deps.client.workflow.getHandle(treasuryWorkflowId(month))
    try {
      if ((await handle.describe()).status.name !== 'RUNNING') return {}
      if ((await this.originOf(month)).kind !== 'own') return {}
      return (await handle.query<TreasuryState>(TREASURY_QUERY)).promised
    } catch (error) {
      if (error instanceof WorkflowNotFoundError) return {}
      throw error
    }
  }

  /**
   * Returns the spending of a purchase according to its marks: certainly nothing if it was never sent or had no effect, or if another month
   * pays for it because a history was reset between reserving and sending; otherwise the whole amount.
   */
  private async spentByPurchase(
    { reservationId: intent, send }: { reservationId: string; send: number },
    { month, promisedMicroUsd }: { month: string; promisedMicroUsd: MicroUsd },
  ): Promise<{ spentMicroUsd: MicroUsd }> {
    const purchases = new Purchases(this.deps.store, Date.now)
    // An unreadable document proves nothing, so the amount counts.
    const mark = await purchases.seal({ intent, send }).catch(ignoreUnreadable)
    const effect = await purchases.effect({ intent, send }).catch(ignoreUnreadable)
    const isElsewhere = mark?.kind === 'sent' && (mark.order.month ?? month) !== month
    const isFree = mark?.kind === 'sealed' || isElsewhere || effect?.kind === 'no-effect'
    return { spentMicroUsd: isFree ? 0 : promisedMicroUsd }
  }

  /**
   * Returns the spending of a job according to its record; `undefined` while one of its attempts may still cost. An unsettled attempt, or a
   * record that cannot be read, may have cost the whole budget.
   */
  private async spentBy(
    jobId: string,
    promisedMicroUsd: MicroUsd,
  ): Promise<(Pick<EndedBudget, 'spentMicroUsd'> & { sinceMs?: number }) | undefined> {
    const settled = new Map<number, MicroUsd>()
    const launched = new Set<number>()
    const records = await readRecords(this.deps.store, jobId).catch(ignoreUnreadable)
    if (records === undefined) return { spentMicroUsd: promisedMicroUsd }
    for (const { kind, attempt, data } of records) {
      if (attempt === undefined) continue
      if (kind === 'launched') launched.add(attempt)
      if (kind === 'settled' && isAmount(data.costMicroUsd)) settled.set(attempt, data.costMicroUsd)
    }
    const [first] = records
    const since = first === undefined ? {} : { sinceMs: first.atMs }
    for (const attempt of launched) {
      if (settled.has(attempt)) continue
      if ((await this.deps.owners({ jobId, attempt })) === 'open') return undefined
      return { spentMicroUsd: promisedMicroUsd, ...since }
    }
    return { spentMicroUsd: [...settled.values()].reduce((sum, cost) => sum + cost, 0), ...since }
  }
}

/** The treasury of a month, which the first request begins. An id that others have taken is free once their workflow ends. */
function starting(
  month: string,
  origin: 'own' | 'others',
): WithStartWorkflowOperation<(state: TreasuryState) => Promise<void>> {
  return new WithStartWorkflowOperation(WORKFLOW_TYPES.treasury, {
    workflowId: treasuryWorkflowId(month),
    workflowIdConflictPolicy: origin === 'others' ? 'FAIL' : 'USE_EXISTING',
    // A treasury that was terminated by hand knew the reservations; a new one would reserve them again.
    workflowIdReusePolicy: origin === 'others' ? 'ALLOW_DUPLICATE' : 'REJECT_DUPLICATE',
    taskQueue: ORCHESTRATOR_QUEUE,
    args: [emptyTreasury(month)],
    staticSummary: `the money of ${month}`,
  })
}

/** A server that does not answer does not fail a job: asked again, it reserves the same amount once. */
function refusalOf(error: unknown, month: string): unknown {
  if (error instanceof WorkflowExecutionAlreadyStartedError) return ended(month)
  if (error instanceof WorkflowUpdateFailedError)
    return new BackendError({ ...failureFrom(error), class: 'transient' }, { cause: error })
  if (!(error instanceof ServiceError || error instanceof WorkflowUpdateRPCTimeoutOrCancelledError))
    return error
  return new BackendError(
    { class: 'transient', message: `The budget of ${month} could not be read: ${error.message}` },
    { cause: error },
  )
}

function ended(month: string, runId?: string): BackendError {
  const id = treasuryWorkflowId(month)
  return new BackendError({
    class: 'quota',
    message: `The workflow ${id}, which tracks the month's reserved money, was terminated by hand.`,
    hint: `Reset it to its last event in Temporal's Web UI, or run: ${resetCommand(id, runId)}.`,
  })
}

/** The job waits until that workflow has ended. */
function taken(month: string): BackendError {
  const id = treasuryWorkflowId(month)
  return new BackendError({
    class: 'transient',
    message: `No budget can be reserved: the workflow ${id} was not started with this deployment's key. End it: ${terminateCommand(id)}.`,
  })
}
