import { execFile } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import type { WorldText } from '#small-cloud'

import { RETRY_SIGNAL } from '../../core/messages'
import { reservationWorkflowId } from '../../core/queues'
import { RESERVATION_QUERY, type ReservationStatus } from '../../core/reservation/reserving'
import { DAY_MS } from '../../core/time/time'
import type { Report } from '../kit/harness'
import type { TreasuryView } from '../../core/money/treasury'
import type { Product } from '../chaos/stage'
import { PROVIDERS } from '../clouds/providers'
import { patient } from '../support/patience'
import { connectTo } from '../support/temporal'
import { Jobs } from '../workflows/harness'
import { undisturbedProcesses } from './processes'
import { RealStage } from './real-stage'

const TYPE = 'p5.48xlarge'
const COUNT = 2
const USD_PER_HOUR = 31.464
/** Of one block: 24 hours of each machine. */
const BLOCK_USD = COUNT * USD_PER_HOUR * 24
const WORLD: WorldText = {
  durations: { payment: '3s' },
  blockOfferings: [{ type: TYPE, zone: 'us-east-1a', count: 64, usdPerInstanceHour: USD_PER_HOUR }],
}

export interface CrowdPlan {
  wishes: number
  /** Commands that ask for the same reservation at once. */
  commands: number
  /** Wishes that the budget of the month pays for. */
  paid: number
  backendWorkers: number
}

/** Many commands of the built product ask at once for more than the month's budget pays for, and several processes buy. */
export async function runCrowd(plan: CrowdPlan, product: Product): Promise<Report> {
  const stage = await RealStage.open(
    undisturbedProcesses(),
    { provider: PROVIDERS.ec2, product },
    {
      world: WORLD,
      backendWorkers: plan.backendWorkers,
      settings: {
        CRUCIBLE_EC2_TYPES: TYPE,
        CRUCIBLE_BUDGET_MONTH: String(Math.round(BLOCK_USD * (plan.paid + 0.5))),
      },
    },
  )
  const at = await connectTo(stage.server.address)
  try {
    const from = new Date(Date.now() + DAY_MS).toISOString()
    const ids = Array.from({ length: plan.wishes }, (_, index) => `res-crowd-${index}`)
    const asked = ids.flatMap((id, index) =>
      Array.from({ length: index === 0 ? plan.commands : 1 }, () => reserve(stage, product, { id, from })),
    )
    const begun = (await Promise.all(asked)).filter(({ isNew }) => isNew).length
    const { client } = new Jobs(at, 'default', { key: await stage.key() })
    const statuses = await settled(plan, ids, (id) => client.workflow.getHandle(reservationWorkflowId(id)))
    const budget = await crucible<TreasuryView>(stage, product, ['budget', '--json'])
    const bought = stage.ground.cloud.reservations().length
    const refused = statuses.filter(isRefused).length
    return {
      state: `${begun} reservations begun, ${bought} blocks bought, ${refused} refused by the budget`,
      breaches: [...breachesOf(stage, plan, statuses), ...moneyOf(stage, budget), ...stage.failures],
      story: [],
    }
  } finally {
    await at.close()
    await stage.close()
  }
}

function reserve(
  stage: RealStage,
  product: Product,
  { id, from }: { id: string; from: string },
): Promise<{ id: string; isNew: boolean }> {
  const what = ['--type', TYPE, '--count', String(COUNT), '--for', '23h', '--from', from]
  const rule = ['--unasked', '100000', '--max-upfront', '100000']
  return crucible(stage, product, ['reservations', 'reserve', '--id', id, ...what, ...rule, '--json'])
}

async function crucible<T>(stage: RealStage, product: Product, args: string[]): Promise<T> {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [product.path('dist', 'cli', 'main.js'), ...args],
    { env: stage.environment },
  )
  return JSON.parse(stdout) as T
}

const PATIENCE_MS = 180_000
const NUDGE_MS = 500

interface Told {
  query(name: string): Promise<unknown>
  signal(name: string): Promise<void>
}

const isHeld = ({ state }: ReservationStatus): boolean => state === 'scheduled'
const isRefused = ({ state, trouble }: ReservationStatus): boolean =>
  state === 'searching' && trouble !== undefined && /budget/i.test(trouble)

/** Until each is held, or refused by the budget after the last one was held. */
async function settled(
  { paid }: CrowdPlan,
  ids: readonly string[],
  at: (id: string) => Told,
): Promise<ReservationStatus[]> {
  const untilMs = Date.now() + patient(PATIENCE_MS)
  for (;;) {
    const statuses = await Promise.all(
      ids.map((id) => at(id).query(RESERVATION_QUERY) as Promise<ReservationStatus>),
    )
    const isOver = statuses.every((one) => isHeld(one) || isRefused(one))
    if ((isOver && statuses.filter(isHeld).length >= paid) || Date.now() > untilMs) return statuses
    for (const [index, one] of statuses.entries())
      if (!isHeld(one)) await at(ids[index]!).signal(RETRY_SIGNAL)
    await sleep(NUDGE_MS)
  }
}

function breachesOf(
  { ground: { cloud } }: RealStage,
  { wishes, paid }: CrowdPlan,
  statuses: readonly ReservationStatus[],
): string[] {
  const made = cloud.reservations()
  const sent = cloud.journal.calls({ action: 'PurchaseCapacityBlock' }).filter(({ isDryRun }) => !isDryRun)
  const wrong: string[] = []
  if (made.length !== paid) wrong.push(`${made.length} blocks were bought, and the budget pays for ${paid}`)
  if (sent.length !== made.length) wrong.push(`${sent.length} purchases were sent for ${made.length} blocks`)
  const held = statuses.flatMap(({ reservation }) => reservation?.id ?? [])
  if (new Set(held).size !== held.length) wrong.push(`two wishes hold one block: ${held.join(', ')}`)
  for (const { id } of made) if (!held.includes(id)) wrong.push(`no wish holds ${id}`)
  const settledOnes = statuses.filter((one) => isHeld(one) || isRefused(one)).length
  if (settledOnes !== wishes)
    wrong.push(
      ...statuses.map(({ id, state, message, trouble }) => `${id} is ${state}: ${message} ${trouble ?? ''}`),
    )
  return wrong
}

function moneyOf({ ground: { cloud } }: RealStage, { total, jobs }: TreasuryView): string[] {
  const billed = cloud.reservations().reduce((sum, { bill }) => sum + Math.round(bill.upfrontUsd * 1e6), 0)
  const wrong: string[] = []
  if (total.spentMicroUsd !== billed) wrong.push(`the month says ${total.spentMicroUsd}, the cloud ${billed}`)
  if (total.promisedMicroUsd !== 0)
    wrong.push(`${total.promisedMicroUsd} is still promised, to ${jobs.map(({ jobId }) => jobId).join(', ')}`)
  return wrong
}
