import { RETRY_SIGNAL } from '../../core/messages'
import { microUsd } from '../../core/money/money'
import { ORCHESTRATOR_QUEUE, reservationWorkflowId, WORKFLOW_TYPES } from '../../core/queues'
import type { CapacityRequest } from '../../core/reservation/reservation'
import {
  quoteKey,
  RESERVATION_QUERY,
  type PurchaseRule,
  type ReservationInput,
  type ReservationState,
  type ReservationStatus,
} from '../../core/reservation/reserving'
import { DAY_MS, HOUR_MS } from '../../core/time/time'
import { RealClock } from '../backends/scripted/clock'
import type { PrepaidLot } from '../backends/scripted/reserving/lots'
import {
  ReservationMarket,
  type MarketOptions,
  type ReservingFault,
} from '../backends/scripted/reserving/market'
import { skipTime } from '../support/temporal'
import { until } from '../support/until'
import { DEPLOYMENT_ID, type Deployment } from '../workflows/harness'
import type { Scenario } from './scenario'

const ID = 'res-test'
const RESERVATION = reservationWorkflowId(ID)
const UNASKED: PurchaseRule = { unaskedMaxMicroUsd: microUsd(5_000) }

/** One block for sale, paid at once. */
function marketOf(faults: ReservingFault[] = [], options: Partial<MarketOptions> = {}): ReservationMarket {
  const block: PrepaidLot = {
    kind: 'prepaid',
    type: 'v100',
    region: 'r',
    zone: 'a',
    count: 8,
    startsAtMs: Date.now() + DAY_MS,
    durationMs: 7 * DAY_MS,
    upfrontMicro: microUsd(4_000),
    stock: 2,
  }
  const payment = { kind: 'confirmed', afterMs: 0 } as const
  const market = new ReservationMarket({ clock: new RealClock(), lots: [block], payment, ...options })
  for (const fault of faults) market.faults.add('reserve', fault)
  return market
}

class Told {
  readonly handle

  constructor(readonly deployment: Deployment) {
    this.handle = deployment.client.workflow.getHandle(RESERVATION)
  }

  status(): Promise<ReservationStatus> {
    return this.handle.query<ReservationStatus>(RESERVATION_QUERY)
  }

  /** Looks again whenever it waits for its next look. */
  async reached(state: ReservationState): Promise<ReservationStatus> {
    await until(async () => {
      const status = await this.status()
      const isThere = status.state === state
      if (!isThere && status.nextLookAtMs !== undefined) await this.handle.signal(RETRY_SIGNAL)
      return isThere
    }, 60_000)
    return this.status()
  }

  tell(update: string, argument: object): Promise<unknown> {
    return this.handle.executeUpdate(update, { args: [{ by: 'ada', ...argument }] })
  }
}

interface Play {
  wish?: Partial<CapacityRequest>
  rule?: PurchaseRule
  then?: (told: Told, market: ReservationMarket) => Promise<void>
  /** `then` sees to its end. */
  isEndedHere?: true
  /** News are posted. */
  isTold?: true
}

/** Lives through one reservation until the provider ends what is held. */
async function played(
  d: Deployment,
  market: ReservationMarket,
  { wish, rule = UNASKED, then, isEndedHere, isTold }: Play,
): Promise<void> {
  const input: ReservationInput = {
    reservationId: ID,
    owner: 'ada',
    deployment: DEPLOYMENT_ID,
    submittedAtMs: Date.now(),
    wish: {
      backend: d.world.name,
      kind: 'prepaid',
      types: ['v100'],
      count: 8,
      durationMs: 6 * DAY_MS,
      ...wish,
    },
    rule,
    lookPausesMs: [0, 100, 1_000],
    webhookOf: isTold ? ID : undefined,
  }
  await d.client.workflow.start(WORKFLOW_TYPES.reserveCapacity, {
    workflowId: RESERVATION,
    taskQueue: ORCHESTRATOR_QUEUE,
    args: [input],
  })
  const told = new Told(d)
  await then?.(told, market)
  if (input.wish.kind === 'hourly' && isEndedHere !== true) await skipTime(d.client, RESERVATION)
  else if (isEndedHere !== true) {
    const { reservation } = await told.reached('scheduled')
    market.shorten(reservation!.id, Date.now())
    await told.handle.signal(RETRY_SIGNAL)
  }
  await told.handle.result()
}

/** The run of the first purchase. */
async function firstPurchase({ client }: Deployment): Promise<{ workflowId: string; runId: string }> {
  const { events } = await client.workflow.getHandle(RESERVATION).fetchHistory()
  const [started] = events!.flatMap((event) => event.childWorkflowExecutionStartedEventAttributes ?? [])
  const { workflowId, runId } = started!.workflowExecution!
  return { workflowId: workflowId!, runId: runId! }
}

interface Kept extends Play {
  market: () => ReservationMarket
  /** Keeps the history of its first purchase instead. */
  buyer?: true
}

function scenario(name: string, { market: make, buyer, ...play }: Kept): Scenario {
  const market = make()
  return {
    name: `${buyer ? 'buyCapacity' : 'reserveCapacity'}.${name}`,
    wishes: { market, purchaseLimitMs: 500, posted: [] },
    play: async (d) => {
      await played(d, market, play)
      return buyer ? firstPurchase(d) : RESERVATION
    },
  }
}

const approves = async (told: Told): Promise<void> => {
  const { quote } = await told.reached('awaiting-approval')
  await told.tell('approve', { quote: quoteKey(quote!.quote) })
}

const decides = async (told: Told): Promise<void> => {
  await told.reached('undecided')
  await told.tell('decidePurchase', { kind: 'not-bought' })
}

/** After the first block is paid, another day of it. */
const extended = async (told: Told, market: ReservationMarket): Promise<void> => {
  const { reservation } = await told.reached('scheduled')
  market.sell({
    kind: 'extension',
    reservation: reservation!.id,
    durationMs: DAY_MS,
    upfrontMicro: microUsd(500),
  })
  await told.tell('extendReservation', { durationMs: DAY_MS, upfrontMaxMicroUsd: microUsd(500) })
}

const paysLater = async (_: Told, market: ReservationMarket): Promise<void> => {
  await until(() => market.purchases.length === 1)
  market.payment = { kind: 'confirmed', afterMs: 0 }
}

const TAKEN: ReservingFault = {
  kind: 'refuses',
  failure: { class: 'capacity', message: 'another customer has it' },
}
const UNKNOWN: ReservingFault = { kind: 'loses-answer', hasEffect: false }
const HOURLY: Kept = {
  market: () =>
    marketOf([], {
      lots: [{ kind: 'hourly', type: 'v100', region: 'r', zone: 'a', perHourMicro: microUsd(3) }],
    }),
  wish: { kind: 'hourly', durationMs: 10 * DAY_MS },
  rule: {
    unaskedMaxMicroUsd: microUsd(6_000),
    spendMaxMicroUsd: microUsd(6_000),
    idleMaxMs: HOUR_MS / 2,
  },
}

const resized = async (told: Told): Promise<void> => {
  await told.reached('active')
  await told.tell('resizeReservation', { count: 4, spendMaxMicroUsd: microUsd(7_000) })
}

const split = async (told: Told): Promise<void> => {
  await told.reached('active')
  await told.tell('splitReservation', { count: 2, newId: 'res-part' })
  const { client } = told.deployment
  for (const id of ['res-part', ID]) {
    const part = client.workflow.getHandle(reservationWorkflowId(id))
    await part.executeUpdate('release', { args: [{ by: 'ada', chargeMaxMicroUsd: 0 }] })
    await part.result()
  }
}

/** First it is to end sooner, then it is taken away. */
const takenBack = async (told: Told, market: ReservationMarket): Promise<void> => {
  const { reservation } = await told.reached('scheduled')
  const { id, endsAtMs } = reservation!
  market.shorten(id, endsAtMs! - DAY_MS)
  await told.handle.signal(RETRY_SIGNAL)
  await until(async () => (await told.status()).reservation?.endsAtMs === endsAtMs! - DAY_MS)
  market.cancel(id)
  await told.handle.signal(RETRY_SIGNAL)
}

export const RESERVATION_SCENARIOS: readonly Scenario[] = [
  scenario('approved', { market: () => marketOf(), rule: {}, then: approves }),
  scenario('undecided-then-decided', { market: () => marketOf([UNKNOWN]), then: decides }),
  scenario('payment-failed', {
    market: () => marketOf([], { payment: { kind: 'failed', afterMs: 100 } }),
    then: paysLater,
  }),
  scenario('resized', { ...HOURLY, then: resized }),
  scenario('split', { ...HOURLY, then: split, isEndedHere: true }),
  scenario('taken-back', { market: () => marketOf(), then: takenBack, isEndedHere: true, isTold: true }),
  scenario('extended', { market: () => marketOf(), then: extended }),
  scenario('refused', { market: () => marketOf([TAKEN]), buyer: true }),
  scenario('undecided', { market: () => marketOf([UNKNOWN]), buyer: true, then: decides }),
]
