/** A signed result that somebody without the key has copied, and sends as the answer to a later request. */
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals'
import { microUsd } from '../../core/money/money'
import { ORCHESTRATOR_QUEUE, reservationWorkflowId, WORKFLOW_TYPES } from '../../core/queues'
import {
  RESERVATION_QUERY,
  type ReservationInput,
  type ReservationStatus,
} from '../../core/reservation/reserving'
import { DAY_MS } from '../../core/time/time'
import { RealClock } from '../backends/scripted/clock'
import { ReservationMarket } from '../backends/scripted/reserving/market'
import type { PrepaidLot } from '../backends/scripted/reserving/lots'
import { connectTo, quietWorkers, skipTime, type TestConnection } from '../support/temporal'
import { eventually, TEST_LIMIT_MS } from './looks'
import { DEPLOYMENT_ID, worldsOn } from './harness'

jest.setTimeout(TEST_LIMIT_MS)

let at: TestConnection
beforeAll(async () => {
  quietWorkers()
  at = await connectTo()
})
afterAll(() => at.close())
const inWorld = worldsOn(() => at)

const BLOCK: PrepaidLot = {
  kind: 'prepaid',
  type: 'v100',
  region: 'r',
  zone: 'a',
  count: 8,
  startsAtMs: Date.now() + DAY_MS,
  durationMs: 7 * DAY_MS,
  upfrontMicro: microUsd(4_000),
}
/** A market whose lists show a purchase late. */
const market = new ReservationMarket({
  clock: new RealClock(),
  lots: [BLOCK, { ...BLOCK, startsAtMs: BLOCK.startsAtMs + 1 }],
  payment: { kind: 'confirmed', afterMs: 100 },
  listsLagMs: 4_000,
})

const INPUT: ReservationInput = {
  reservationId: 'res-test',
  wish: {
    backend: 'scripted',
    kind: 'prepaid',
    types: ['v100'],
    count: 8,
    durationMs: 6 * DAY_MS,
    latestStartAtMs: Date.now() + 14 * DAY_MS,
  },
  rule: { unaskedMaxMicroUsd: microUsd(5_000) },
  owner: 'ada',
  deployment: DEPLOYMENT_ID,
  submittedAtMs: Date.now(),
  lookPausesMs: [0, 100, 200, 400, 800],
}

function signalled(): { promise: Promise<void>; happen: () => void } {
  let happen!: () => void
  const promise = new Promise<void>((resolve) => (happen = resolve))
  return { promise, happen }
}

const isSent = signalled()
const isCopied = signalled()
let sends = 0
async function buyCapacity(_: never, perform: () => Promise<unknown>): Promise<unknown> {
  sends += 1
  if (sends === 1) return { kind: 'refused', failure: { class: 'capacity', message: 'Sold out.' } }
  const outcome = await perform()
  isSent.happen()
  await isCopied.promise
  return outcome
}

interface Completed {
  activityTaskCompletedEventAttributes?: { result: object }
}

describe('a purchase', () => {
  it(
    'is made once when its answer is the signed "refused" of an earlier purchase',
    inWorld({ market, answers: { buyCapacity } }, async ({ client, namespace, world }) => {
      const handle = await client.workflow.start(WORKFLOW_TYPES.reserveCapacity, {
        workflowId: reservationWorkflowId(INPUT.reservationId),
        taskQueue: ORCHESTRATOR_QUEUE,
        args: [{ ...INPUT, wish: { ...INPUT.wish, backend: world.name } }],
      })
      await skipTime(client, handle.workflowId)
      await isSent.promise
      const query = `WorkflowType = '${WORKFLOW_TYPES.buyCapacity}' AND ExecutionStatus = 'Completed'`
      let first: { workflowId: string; runId: string } | undefined
      await eventually(async () => {
        for await (const one of client.workflow.list({ query })) first = one
        return first !== undefined
      })
      const { workflowId, runId } = first!
      const { events } = await client.workflow.getHandle(workflowId, runId).fetchHistory()
      const { result } = (events as Completed[]).flatMap(
        ({ activityTaskCompletedEventAttributes: completed }) => completed ?? [],
      )[0]!
      const answer = { namespace, workflowId, activityId: '1', result }
      await client.workflowService.respondActivityTaskCompletedById(answer)
      const stateNow = async (): Promise<string> =>
        (await handle.query<ReservationStatus>(RESERVATION_QUERY)).state
      await eventually(async () => ['scheduled', 'undecided'].includes(await stateNow()))
      isCopied.happen()
      expect(market.purchases).toHaveLength(1)
    }),
  )
})
