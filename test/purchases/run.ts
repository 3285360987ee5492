import { setTimeout as sleep } from 'node:timers/promises'
import { WorkflowExecutionAlreadyStartedError, type WorkflowHandle } from '@temporalio/client'
import { RETRY_SIGNAL, TREASURY_QUERY } from '../../core/messages'
import {
  ORCHESTRATOR_QUEUE,
  reservationWorkflowId,
  treasuryWorkflowId,
  WORKFLOW_TYPES,
} from '../../core/queues'
import {
  DECIDE_PURCHASE_UPDATE,
  isReservationFinal,
  REJECT_UPDATE,
  RESERVATION_QUERY,
  type ReservationInput,
  type ReservationStatus,
} from '../../core/reservation/reserving'
import { monthOf, type TreasuryState } from '../../core/money/treasury'
import { Purchases } from '../../storage/purchases'
import { DEPLOYMENT_ID, Deployment } from '../workflows/harness'
import type { Report } from '../kit/harness'
import { patient } from '../support/patience'
import type { TestConnection } from '../support/temporal'
import { breachesOfSales, type Buyer, type Sale } from '../kit/sales'
import {
  killAt,
  LIMITS,
  LOOK_PAUSES_MS,
  RULE,
  SENT_WITHIN_MS,
  wishOf,
  worldOf,
  type PurchaseWorld,
} from './world'

/** What came of one seed. */
export interface PurchaseReport extends Report {
  /** How each wish ended. */
  ends: string[]
  bought: number
  decidedByPerson: number
}

const PATIENCE_MS = 90_000
const NUDGE_MS = 150

/** Lets the wishes of one seed live until each is held, refused or decided, and compares them with what the provider really sold. */
export async function runPurchases(at: TestConnection, seed: number): Promise<PurchaseReport> {
  const world = worldOf(seed)
  const deployments: Deployment[] = []
  try {
    for (const { skewMs } of world.deployments)
      deployments.push(
        await Deployment.start(at, {
          market: world.market,
          monthly: LIMITS,
          purchaseLimitMs: SENT_WITHIN_MS,
          skewMs,
        }),
      )
    const lives = world.deployments.flatMap(({ wishes }, index) =>
      wishes.map((wish) => new Wish(world, deployments[index]!, wish)),
    )
    for (const trouble of world.troubles) if (trouble.startsWith('dies')) killAt(deployments[0]!, trouble)
    if (world.troubles.includes('list fails'))
      world.market.faults.add(
        'reservations',
        { kind: 'throws', failure: { class: 'transient', message: 'no answer' } },
        { times: 3 },
      )
    await Promise.all(lives.map((life) => life.start()))
    await Promise.all([...lives.map((life) => life.live()), meddle(world, deployments[0]!, lives[0]!)])
    // What was settled when it was troubled once more is settled again.
    const ended = await Promise.all(lives.map((life) => life.live()))
    const treasuries = await Promise.all(deployments.map(treasuryOf))
    const ends = ended.map(({ status: { state } }) => state)
    return {
      state: [...new Set(ends)].sort().join(', '),
      breaches: breachesOfSales(world.market.purchases.map(saleOf), ended, treasuries),
      story: world.story,
      ends,
      bought: world.market.purchases.length,
      decidedByPerson: lives.reduce((sum, { decisions }) => sum + decisions, 0),
    }
  } finally {
    for (const deployment of deployments) await deployment.close()
  }
}

function saleOf({ id, intent, send, isPaid, quote }: PurchaseWorld['market']['purchases'][number]): Sale {
  return { id, intent, send, isPaid, upfrontMicroUsd: quote.upfrontMicro }
}

async function treasuryOf({ client }: Deployment): Promise<TreasuryState | undefined> {
  const handle = client.workflow.getHandle(treasuryWorkflowId(monthOf(Date.now())))
  return handle.query<TreasuryState>(TREASURY_QUERY).catch(() => undefined)
}

/** One reservation, and the person who answers its questions. */
class Wish {
  decisions = 0
  private readonly handle: WorkflowHandle

  constructor(
    private readonly world: PurchaseWorld,
    readonly deployment: Deployment,
    readonly wish: { id: string; owner: string },
  ) {
    this.handle = deployment.client.workflow.getHandle(reservationWorkflowId(wish.id))
  }

  /** Twice, as by a client that has lost the answer. */
  async start(): Promise<void> {
    const { client, world } = this.deployment
    const { id: reservationId, owner } = this.wish
    const input: ReservationInput = {
      reservationId,
      owner,
      wish: wishOf(world.name),
      rule: RULE,
      deployment: DEPLOYMENT_ID,
      submittedAtMs: Date.now(),
      lookPausesMs: LOOK_PAUSES_MS,
    }
    for (let times = 0; times < 2; times++)
      await client.workflow
        .start(WORKFLOW_TYPES.reserveCapacity, {
          workflowId: reservationWorkflowId(reservationId),
          workflowIdReusePolicy: 'REJECT_DUPLICATE',
          taskQueue: ORCHESTRATOR_QUEUE,
          args: [input],
        })
        .catch((error: unknown) => {
          if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error
        })
  }

  status(): Promise<ReservationStatus> {
    return this.handle.query<ReservationStatus>(RESERVATION_QUERY)
  }

  /** Until something is held for certain, or nothing ever will be. */
  async live(): Promise<Buyer> {
    const untilMs = Date.now() + patient(PATIENCE_MS)
    for (;;) {
      const status = await this.status().catch(() => undefined)
      if (status !== undefined) {
        const isHeld = status.state === 'scheduled' && status.reservation?.phase === 'scheduled'
        if (isReservationFinal(status.state)) await this.handle.result().catch(() => undefined)
        if (isHeld || isReservationFinal(status.state)) return { id: this.wish.id, status }
        if (status.state === 'undecided') await this.decide(status)
        else if (status.state === 'searching' && this.isSoldOut()) await this.reject()
        else await this.handle.signal(RETRY_SIGNAL).catch(() => undefined)
      }
      if (Date.now() > untilMs) return { id: this.wish.id, status: status!, isStuck: true }
      await sleep(NUDGE_MS)
    }
  }

  private isSoldOut(): boolean {
    const { market } = this.world
    const wish = wishOf(this.deployment.world.name)
    return market.regions.every((region) => market.quotes(wish, region).length === 0)
  }

  private async reject(): Promise<void> {
    // What is late may still be bought: the person is in no hurry.
    await sleep(LOOK_PAUSES_MS.at(-1))
    await this.handle
      .executeUpdate(REJECT_UPDATE, { args: [{ by: 'a person', reason: 'sold out' }] })
      .catch(() => undefined)
  }

  /** The person reads the provider's bill, which is the truth. */
  private async decide({ id, undecided }: ReservationStatus): Promise<void> {
    const { send } = undecided!.order
    const made = this.world.market.purchases.find((one) => one.intent === id && one.send === send)
    this.decisions += 1
    const answer = made === undefined ? { kind: 'not-bought' } : { kind: 'bought', reservationId: made.id }
    await this.handle
      .executeUpdate(DECIDE_PURCHASE_UPDATE, { args: [{ by: 'a person', ...answer }] })
      .catch(() => undefined)
  }
}

/** What strangers and outages do while the first deployment buys. */
async function meddle(
  { troubles, dice }: PurchaseWorld,
  deployment: Deployment,
  { wish }: Wish,
): Promise<void> {
  const { client } = deployment
  const workflowId = reservationWorkflowId(wish.id)
  const buyer = client.workflow.getHandle(`buyer/${deployment.world.name}/account-1/r`)
  if (troubles.includes('buyer is terminated')) {
    await sleep(dice.between(0, 400))
    await buyer.terminate('by hand').catch(() => undefined)
  }
  if (troubles.includes('worker restarts')) {
    await sleep(dice.between(0, 400))
    await deployment.restart('verbs')
  }
  if (troubles.includes('duplicate buyer')) await startDuplicate(deployment, wish)
  if (troubles.includes('history goes back')) {
    await sleep(dice.between(0, 600))
    await client.workflowService
      .resetWorkflowExecution({
        namespace: deployment.namespace,
        workflowExecution: { workflowId },
        reason: 'a backup was restored',
        requestId: `reset-${wish.id}`,
        // The first workflow task.
        workflowTaskFinishEventId: 4 as never,
      })
      .catch(() => undefined)
  }
}

/** Sends the first purchase again, as soon as its mark shows what it is. */
async function startDuplicate(
  { client, store }: Deployment,
  { id, owner }: { id: string; owner: string },
): Promise<void> {
  const purchases = new Purchases(store, Date.now)
  for (let tries = 0; tries < 20; tries++) {
    const mark = await purchases.read({ intent: id, send: 1 }).catch(() => undefined)
    if (mark?.kind === 'sent') {
      const task = {
        reservationId: id,
        deployment: DEPLOYMENT_ID,
        owner,
        recordSeq: 900,
        order: mark.order,
        rule: RULE,
      }
      await client.workflow
        .execute(WORKFLOW_TYPES.buyCapacity, {
          workflowId: `buyer/duplicate/${id}`,
          taskQueue: ORCHESTRATOR_QUEUE,
          args: [{ ...task, lookPausesMs: LOOK_PAUSES_MS }],
        })
        .catch(() => undefined)
      return
    }
    await sleep(50)
  }
}
