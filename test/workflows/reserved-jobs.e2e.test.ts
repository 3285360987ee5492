import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals'
import type { WorkflowHandle } from '@temporalio/client'
import type { JobSpec } from '../../core/job/job'
import { RETRY_SIGNAL, type JobInput } from '../../core/messages'
import { microUsd } from '../../core/money/money'
import { ORCHESTRATOR_QUEUE, reservationWorkflowId, WORKFLOW_TYPES } from '../../core/queues'
import {
  RESERVATION_QUERY,
  type PurchaseRule,
  type ReservationInput,
  type ReservationStatus,
} from '../../core/reservation/reserving'
import type { CapacityRequest } from '../../core/reservation/reservation'
import { HOUR_MS, SECOND_MS } from '../../core/time/time'
import { readReservationEntries } from '../../storage/reservations'
import { RealClock } from '../backends/scripted/clock'
import { ReservationMarket } from '../backends/scripted/reserving/market'
import { connectTo, quietWorkers, type TestConnection } from '../support/temporal'
import { DEPLOYMENT_ID, LONG, SPOT, worldsOn, type Deployment, type JobHandle } from './harness'
import { atStep, eventually, forReason, running, TEST_LIMIT_MS } from './looks'

jest.setTimeout(TEST_LIMIT_MS)

let at: TestConnection
beforeAll(async () => {
  quietWorkers()
  at = await connectTo()
})
afterAll(() => at.close())
const inWorld = worldsOn(() => at)

const ID = 'res-test'
const lots = [{ kind: 'hourly', type: 'v100', region: 'r', zone: 'b', perHourMicro: microUsd(3) } as const]

const statusOf = (one: WorkflowHandle): Promise<ReservationStatus> =>
  one.query<ReservationStatus>(RESERVATION_QUERY)

/** One place, which is held soon. */
async function reserved(
  { client, world }: Deployment,
  wish: Partial<CapacityRequest> = {},
  rule: PurchaseRule = { spendMaxMicroUsd: microUsd(100) },
): Promise<WorkflowHandle> {
  const workflowId = reservationWorkflowId(ID)
  const input: ReservationInput = {
    reservationId: ID,
    owner: 'ann',
    deployment: DEPLOYMENT_ID,
    submittedAtMs: Date.now(),
    wish: {
      backend: world.name,
      kind: 'hourly',
      types: ['v100'],
      count: 1,
      durationMs: 10 * HOUR_MS,
      ...wish,
    },
    rule: { unaskedMaxMicroUsd: microUsd(100), ...rule },
  }
  const handle = await client.workflow.start(WORKFLOW_TYPES.reserveCapacity, {
    workflowId,
    taskQueue: ORCHESTRATOR_QUEUE,
    args: [input],
  })
  await eventually(async () => (await statusOf(handle)).state === 'active')
  return handle
}

const RESERVED: Partial<JobSpec> = { backends: [{ backend: 'scripted', capacityType: 'reserved' }] }

describe('the only place of a reservation', () => {
  it.concurrent(
    'goes to the job that names it, then to the other jobs of its owner, and never to a job of another owner',
    inWorld(
      {
        market: new ReservationMarket({ clock: new RealClock(), lots: [...lots] }),
        wares: [SPOT],
        behave: ({ jobId }) => (jobId === 'first' ? LONG : {}),
        // A shared answer, a second old, shows the place as free: the others would try it, and avoid it for minutes.
        looksOnce: true,
      },
      async (deployment) => {
        await reserved(deployment)
        const submit = (
          jobId: string,
          spec: Partial<JobSpec>,
          more: Partial<JobInput> = {},
        ): Promise<JobHandle> => deployment.submit(spec, { jobId, owner: 'ann', ...more })
        const first = await submit('first', { reservation: ID })
        await running(first)
        const other = await submit('other', RESERVED)
        await forReason(other, 'waiting-for-capacity')
        const naming = await submit('naming', { reservation: ID })
        await forReason(naming, 'waiting-for-capacity')

        // A place elsewhere is not what a job wants that names a reservation, and its own is not for everybody.
        const bobs = await submit('bobs', {}, { owner: 'bob' })
        expect((await bobs.result()).state).toBe('succeeded')
        const refusal = submit('copied', { reservation: ID }, { owner: 'bob' })
        await expect((await refusal).result()).rejects.toMatchObject({
          cause: {
            message: expect.stringMatching(/held by res-test of ann .* only for jobs of ann/) as unknown,
          },
        })

        await first.cancel()
        await Promise.all([naming.result(), other.result()])
        const places = deployment.world.machines.map(({ order, handle }) => [
          order.jobId,
          handle.realised.capacityType,
        ])
        expect(places).toEqual([
          ['first', 'reserved'],
          ['bobs', 'spot'],
          ['naming', 'reserved'],
          ['other', 'reserved'],
        ])
      },
    ),
  )
})

describe('a prepaid reservation that is too short for its job', () => {
  const market = new ReservationMarket({
    clock: new RealClock(),
    lots: [],
    payment: { kind: 'confirmed', afterMs: 0 },
  })
  it.concurrent(
    'is extended for it, once, by the shortest extension that is long enough',
    inWorld(
      {
        market,
        wares: [],
        behave: () => ({ ...LONG, stepsPerSecond: 0.5, tellsFirstStep: true }),
      },
      async (deployment) => {
        market.sell({
          kind: 'prepaid',
          type: 'v100',
          region: 'r',
          zone: 'b',
          count: 1,
          startsAtMs: Date.now() + 4 * SECOND_MS,
          durationMs: 4 * HOUR_MS,
          upfrontMicro: microUsd(50),
        })
        const wish = { kind: 'prepaid', durationMs: 3 * HOUR_MS } as const
        const reservation = await reserved(deployment, wish, { extendMaxMicroUsd: microUsd(20) })
        const { id, endsAtMs } = (await statusOf(reservation)).reservation!
        // The job needs five and a half hours.
        for (const [hours, usd] of [
          [1, 1],
          [24, 15],
          [48, 15],
        ] as const)
          market.sell({
            kind: 'extension',
            reservation: id,
            durationMs: hours * HOUR_MS,
            upfrontMicro: microUsd(usd),
          })
        const job = await deployment.submit({ reservation: ID }, { owner: 'ann' })
        await running(job)
        await atStep(deployment, 1)
        await eventually(async () => {
          await reservation.signal(RETRY_SIGNAL)
          return (await statusOf(reservation)).reservation!.endsAtMs !== endsAtMs
        })
        expect(await statusOf(reservation)).toMatchObject({
          spentMicroUsd: microUsd(65),
          reservation: { endsAtMs: endsAtMs! + 24 * HOUR_MS },
        })
        expect(market.purchases.map(({ kind }) => kind)).toEqual(['reservation', 'extension'])
        const judged = (await readReservationEntries(deployment.store, ID)).filter(
          ({ kind }) => kind === 'judged-extension',
        )
        expect(judged.at(-1)!.summary).toMatch(
          /^job-test would be done .* it is extended to .* for \$15\.00, because no other offer has room/,
        )
        await job.cancel()
      },
    ),
  )
})
