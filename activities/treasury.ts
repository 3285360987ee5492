import {
  ServiceError,
  WithStartWorkflowOperation,
  WorkflowExecutionAlreadyStartedError,
  WorkflowNotFoundError,
  WorkflowUpdateRPCTimeoutOrCancelledError,
  type Client,
} from '@temporalio/client'
import { BackendError } from '../backends/errors'
import type { Settlement } from '../core/activities'
import { PROMISE_UPDATE, SETTLE_UPDATE, TREASURY_QUERY } from '../core/messages'
import type { MicroUsd } from '../core/money'
import { ORCHESTRATOR_QUEUE, treasuryWorkflowId, WORKFLOW_TYPES } from '../core/queues'
import {
  emptyTreasury,
  type MonthlyLimits,
  type Promised,
  type PromiseAnswer,
  type PromiseRequest,
  type SettleRequest,
  type TreasuryState,
} from '../core/treasury'
import { readRecords } from '../storage/record'
import type { ObjectStore } from '../storage/store'
import type { OwnerLookup } from './garbage/garbage'

/** Where the money of months and owners is kept. */
export interface TreasuryDeps {
  client: Client
  store: ObjectStore
  owners: OwnerLookup
  limits: MonthlyLimits
}

type Wanted = Omit<PromiseRequest, 'limits'> & { month: string }

/** Money that was promised to a job which cannot say any more that it is over. */
export interface EndedPromise extends Promised {
  jobId: string
  /** What of it counts as spent. */
  spentMicroUsd: MicroUsd
  /** When it was promised, as far as the job's record tells; else the month's begin. */
  sinceMs: number
}

/** The money of a deployment's months, for the activities of its jobs. */
export class Treasury {
  constructor(private readonly deps: TreasuryDeps) {}

  /** Promises a job its whole budget. Throws `quota`, with the arithmetic, where that is more than there is. */
  async promise({ month, ...wanted }: Wanted): Promise<void> {
    const first = await this.ask(month, wanted)
    if (first.kind === 'promised') return
    // Jobs that were ended by hand could not say so themselves.
    const isAnySettled = await this.settleEnded(month)
    const answer = isAnySettled ? await this.ask(month, wanted) : first
    if (answer.kind === 'refused') throw new BackendError({ class: 'quota', ...answer })
  }

  /** A job is over. Repeating it is harmless. */
  async settle(month: string, request: SettleRequest): Promise<void> {
    const handle = this.deps.client.workflow.getHandle(treasuryWorkflowId(month))
    try {
      await handle.executeUpdate<void, [SettleRequest]>(SETTLE_UPDATE, {
        args: [request],
        updateId: `over/${request.jobId}`,
      })
    } catch (error) {
      // Ended by hand: there is nothing left that could be wrong.
      if (!(error instanceof WorkflowNotFoundError)) throw error
    }
  }

  private async ask(month: string, wanted: Omit<PromiseRequest, 'limits'>): Promise<PromiseAnswer> {
    const { client, limits } = this.deps
    const start = new WithStartWorkflowOperation<(state: TreasuryState) => Promise<void>>(
      WORKFLOW_TYPES.treasury,
      {
        workflowId: treasuryWorkflowId(month),
        workflowIdConflictPolicy: 'USE_EXISTING',
        // One that was ended by hand knew what is promised: a new one would promise it again.
        workflowIdReusePolicy: 'REJECT_DUPLICATE',
        taskQueue: ORCHESTRATOR_QUEUE,
        args: [emptyTreasury(month)],
        staticSummary: `the money of ${month}`,
      },
    )
    try {
      return await client.workflow.executeUpdateWithStart<
        (state: TreasuryState) => Promise<void>,
        PromiseAnswer,
        [PromiseRequest]
      >(PROMISE_UPDATE, { startWorkflowOperation: start, args: [{ ...wanted, limits }] })
    } catch (error) {
      throw refusalOf(error, month)
    }
  }

  /** Takes back what was promised to jobs that were ended by hand. True when there was one. */
  private async settleEnded(month: string): Promise<boolean> {
    const ended = await this.endedPromises(month)
    for (const { jobId, owner, spentMicroUsd } of ended)
      await this.settle(month, { jobId, owner, spentMicroUsd })
    return ended.length > 0
  }

  /** What is promised to jobs whose workflows are closed and whose attempts can cost nothing any more. */
  async endedPromises(month: string): Promise<EndedPromise[]> {
    const { owners } = this.deps
    const ended: EndedPromise[] = []
    for (const [jobId, promised] of Object.entries(await this.promisedIn(month))) {
      if ((await owners({ jobId })) === 'open') continue
      const spent = await this.spentBy(jobId, promised.microUsd)
      if (spent !== undefined) ended.push({ jobId, ...promised, sinceMs: Date.parse(month), ...spent })
    }
    return ended
  }

  /** Nothing where the month has no treasury, or one that was ended by hand and takes nothing back. */
  private async promisedIn(month: string): Promise<TreasuryState['promised']> {
    const handle = this.deps.client.workflow.getHandle(treasuryWorkflowId(month))
    try {
      if ((await handle.describe()).status.name !== 'RUNNING') return {}
      return (await handle.query<TreasuryState>(TREASURY_QUERY)).promised
    } catch (error) {
      if (error instanceof WorkflowNotFoundError) return {}
      throw error
    }
  }

  /** By its record; `undefined` while one of its attempts may still cost. An attempt that nobody settled may have cost all of it. */
  private async spentBy(
    jobId: string,
    promisedMicroUsd: MicroUsd,
  ): Promise<(Pick<EndedPromise, 'spentMicroUsd'> & { sinceMs?: number }) | undefined> {
    const settled = new Map<number, MicroUsd>()
    const launched = new Set<number>()
    const records = await readRecords(this.deps.store, jobId)
    for (const { kind, attempt, data } of records) {
      if (attempt === undefined) continue
      if (kind === 'launched') launched.add(attempt)
      if (kind === 'settled') settled.set(attempt, (data as Settlement).costMicroUsd)
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

/** A server that does not answer is no reason for a job to fail: asked again, it promises the same once. */
function refusalOf(error: unknown, month: string): unknown {
  if (error instanceof WorkflowExecutionAlreadyStartedError) return ended(month)
  if (!(error instanceof ServiceError || error instanceof WorkflowUpdateRPCTimeoutOrCancelledError))
    return error
  return new BackendError(
    { class: 'transient', message: `The budget of ${month} could not be asked: ${error.message}` },
    { cause: error },
  )
}

function ended(month: string): BackendError {
  const id = treasuryWorkflowId(month)
  return new BackendError({
    class: 'quota',
    message: `The workflow ${id}, which knows what of the month's money is promised, was ended by hand.`,
    hint: `Reset it to its last event in Temporal's Web UI, or: temporal workflow reset --workflow-id ${id} --type LastWorkflowTask --reason again.`,
  })
}
