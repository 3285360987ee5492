import { setTimeout as sleep } from 'node:timers/promises'
import type { WorkflowHandle } from '@temporalio/client'
import type { Cloud, WorldText } from '#small-cloud'
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
  RESERVATION_QUERY,
  type ReservationInput,
  type ReservationStatus,
} from '../../core/reservation/reserving'
import { DAY_MS } from '../../core/time/time'
import type { Report } from '../kit/harness'
import { breachesOfSales, type Sale } from '../kit/sales'
import { monthOf, type TreasuryState } from '../../core/money/treasury'
import type { Product } from '../chaos/stage'
import { PROVIDERS } from '../clouds/providers'
import { patient } from '../support/patience'
import { connectTo } from '../support/temporal'
import { DEPLOYMENT_ID, Jobs } from '../workflows/harness'
import { MOMENTS } from './process'
import { undisturbedProcesses } from './processes'
import { RealStage, type ProcessPlan } from './real-stage'

const TYPE = 'p5.48xlarge'
const COUNT = 2
const USD_PER_HOUR = 31.464
const WORLD: WorldText = {
  durations: { payment: '3s' },
  blockOfferings: [{ type: TYPE, zone: 'us-east-1a', count: 8, usdPerInstanceHour: USD_PER_HOUR }],
}
const SETTINGS = { CRUCIBLE_EC2_TYPES: TYPE, CRUCIBLE_BUDGET_MONTH: '1000000' }
/** Nothing is on its way for longer, and lists are up to date. */
const LOOK_PAUSES_MS = [0, 1_000, 2_000]
const ID = 'res-killed'
const PATIENCE_MS = 180_000
const NUDGE_MS = 500

/** What came of a purchase whose processes died. */
export interface BuyingReport extends Report {
  /** Missing where many buy at once. */
  calls?: ReadonlyMap<string, number>
}

/** The steps of a purchase: its documents, the questions before it, and the request. */
const STEPS =
  /^backend: (?:PurchaseCapacityBlock|DescribeCapacityBlockOfferings|DescribeCapacityReservations|(?:Put|Get)Object (?:record|1|1-effect|holder)\b.*)/

/** Every death of a process at a step of the purchase, by the calls of an undisturbed one. */
export function buyingPlans(calls: ReadonlyMap<string, number>): ProcessPlan[] {
  return [...calls]
    .filter(([call]) => STEPS.test(call))
    .flatMap(([call, times]) =>
      Array.from({ length: Math.min(times, 2) }, (_, index) => ({ call, occurrence: index + 1 })),
    )
    .flatMap((at) =>
      MOMENTS.map((moment) => ({
        ...undisturbedProcesses(),
        name: `${moment} ${at.call} ${at.occurrence}`,
        crashes: [{ ...at, moment, lateMs: 300, isOfBoth: false }],
      })),
    )
}

/** Buys one block with real processes that are killed with SIGKILL, and compares what is said with what the cloud has sold. */
export async function runBuying(plan: ProcessPlan, product: Product): Promise<BuyingReport> {
  const stage = await RealStage.open(
    plan,
    { provider: PROVIDERS.ec2, product },
    { world: WORLD, settings: SETTINGS },
  )
  const at = await connectTo(stage.server.address)
  try {
    const { client } = new Jobs(at, 'default', { key: await stage.key() })
    const input: ReservationInput = {
      reservationId: ID,
      owner: 'ada',
      deployment: DEPLOYMENT_ID,
      submittedAtMs: Date.now(),
      wish: { backend: 'ec2', kind: 'prepaid', types: [TYPE], count: COUNT, durationMs: DAY_MS },
      rule: { unaskedMaxMicroUsd: 1e12, upfrontMaxMicroUsd: 1e12 },
      lookPausesMs: LOOK_PAUSES_MS,
    }
    const handle = await client.workflow.start(WORKFLOW_TYPES.reserveCapacity, {
      workflowId: reservationWorkflowId(ID),
      taskQueue: ORCHESTRATOR_QUEUE,
      args: [input],
    })
    const { status, decided } = await lived(handle, stage)
    await stage.whole()
    const treasury = await client.workflow
      .getHandle(treasuryWorkflowId(monthOf(Date.now())))
      .query<TreasuryState>(TREASURY_QUERY)
    const breaches = [...breachesOf(stage, status, treasury), ...stage.failures]
    const asked = decided === 0 ? '' : ', decided by a person'
    const state = `${status.state}${asked}${stage.struck.length === 0 ? ', none died' : ''}`
    return { state, breaches, story: [], calls: stage.calls }
  } finally {
    await at.close()
    await stage.close()
  }
}

/** Until it is held and paid, or over; the person who decides reads the provider's bill. */
async function lived(
  handle: WorkflowHandle,
  { ground: { cloud } }: RealStage,
): Promise<{ status: ReservationStatus; decided: number }> {
  const untilMs = Date.now() + patient(PATIENCE_MS)
  let decided = 0
  for (;;) {
    const status = await handle.query<ReservationStatus>(RESERVATION_QUERY).catch(() => undefined)
    if (status !== undefined) {
      if (status.state === 'scheduled' || isReservationFinal(status.state)) return { status, decided }
      if (status.state === 'undecided') {
        const [made] = cloud.reservations()
        const said = made === undefined ? { kind: 'not-bought' } : { kind: 'bought', reservationId: made.id }
        await handle
          .executeUpdate(DECIDE_PURCHASE_UPDATE, { args: [{ by: 'a person', ...said }] })
          .then(() => (decided += 1))
          .catch(() => undefined)
      } else await handle.signal(RETRY_SIGNAL).catch(() => undefined)
      if (Date.now() > untilMs) return { status, decided }
    }
    await sleep(NUDGE_MS)
  }
}

function breachesOf(
  { ground: { cloud } }: RealStage,
  status: ReservationStatus,
  treasury: TreasuryState,
): string[] {
  const sales = salesOf(cloud, () => ID)
  const isHeld = status.state === 'scheduled'
  return [
    ...(isHeld ? [] : [`it is ${status.state}: ${status.message} ${status.trouble ?? ''}`]),
    ...breachesOfSales(sales, [{ id: ID, status }], [treasury]),
  ]
}

/** The blocks that a cloud has sold, each to the reservation that `intentOf` names. */
function salesOf(cloud: Cloud, intentOf: (id: string) => string): Sale[] {
  return cloud.reservations().map(({ id, bill }) => ({
    id,
    intent: intentOf(id),
    send: undefined,
    isPaid: true,
    upfrontMicroUsd: Math.round(bill.upfrontUsd * 1e6),
  }))
}
