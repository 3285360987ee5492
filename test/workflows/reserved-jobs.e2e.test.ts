import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals'
import type { JobSpec } from '../../core/job'
import type { JobInput } from '../../core/messages'
import { microUsd } from '../../core/money'
import { ORCHESTRATOR_QUEUE, reservationWorkflowId, WORKFLOW_TYPES } from '../../core/queues'
import { RESERVATION_QUERY, type ReservationInput, type ReservationStatus } from '../../core/reserving'
import { HOUR_MS } from '../../core/time'
import { RealClock } from '../backends/scripted/clock'
import { ReservationMarket } from '../backends/scripted/reserving/market'
import { connectTo, quietWorkers, type TestConnection } from '../support/temporal'
import { DEPLOYMENT_ID, LONG, SPOT, worldsOn, type Deployment, type JobHandle } from './harness'
import { eventually, forReason, running, TEST_LIMIT_MS } from './looks'

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

/** One place, which is held at once. */
async function reserved({ client, world }: Deployment): Promise<void> {
  const workflowId = reservationWorkflowId(ID)
  const input: ReservationInput = {
    ...{ reservationId: ID, owner: 'ann', deployment: DEPLOYMENT_ID, submittedAtMs: Date.now() },
    wish: { backend: world.name, kind: 'hourly', types: ['v100'], count: 1, durationMs: 10 * HOUR_MS },
    rule: { unaskedMaxMicroUsd: microUsd(100), spendMaxMicroUsd: microUsd(100) },
  }
  const handle = await client.workflow.start(WORKFLOW_TYPES.reserveCapacity, {
    ...{ workflowId, taskQueue: ORCHESTRATOR_QUEUE, args: [input] },
  })
  await eventually(async () => (await handle.query<ReservationStatus>(RESERVATION_QUERY)).state === 'active')
}

const RESERVED: Partial<JobSpec> = { backends: [{ backend: 'scripted', capacityType: 'reserved' }] }

describe('the only place of a reservation', () => {
  it.concurrent(
    'goes to the job that names it, then to the other jobs of its owner, and never to a job of another owner',
    inWorld(
      {
        ...{ market: new ReservationMarket({ clock: new RealClock(), lots: [...lots] }), wares: [SPOT] },
        behave: ({ jobId }) => (jobId === 'first' ? LONG : {}),
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
