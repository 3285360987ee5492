import { RETRY_SIGNAL } from '../../core/messages'
import { microUsd } from '../../core/money/money'
import { reservationWorkflowId } from '../../core/queues'
import type { ReservedStep } from '../../core/retraining/retraining'
import { DAY_MS, HOUR_MS } from '../../core/time/time'
import { RealClock } from '../backends/scripted/clock'
import type { PrepaidLot } from '../backends/scripted/reserving/lots'
import { ReservationMarket } from '../backends/scripted/reserving/market'
import { skipTime } from '../support/temporal'
import { until } from '../support/until'
import { LONG, SPOT } from '../workflows/harness'
import {
  GATED,
  inRunState,
  jobOfToday,
  opensIn,
  runFailure,
  runStatus,
  startRun,
  willMeasure,
} from '../workflows/retraining'
import type { Scenario } from './scenario'

const SHORT = new ReservationMarket({
  clock: new RealClock(),
  lots: [],
  payment: { kind: 'confirmed', afterMs: 0 },
})
const SOON = new ReservationMarket({
  clock: new RealClock(),
  lots: [],
  payment: { kind: 'confirmed', afterMs: 0 },
})
const RESERVED = {
  capacityType: 'reserved',
  type: 'v100',
  place: 'a',
  stock: 8,
  priceMicroUsdPerHour: 0,
} as const
const ON_SPOT = [{ backend: 'scripted', capacityType: 'spot' }] as const

export const RETRAIN_SCENARIOS: readonly Scenario[] = [
  {
    name: 'retrain.promoted-by-approval',
    play: async (d) => {
      await willMeasure(d, 1.5)
      const promotion = { ...GATED.promotion!, isAsked: true, job: { run: 'publish' } }
      const run = await startRun(d, { ...GATED, promotion })
      await inRunState(run, 'awaiting-approval')
      await run.executeUpdate('approveModel', { args: [{ by: 'ada' }] })
      await run.result()
      return run.workflowId
    },
  },
  {
    name: 'retrain.kept-by-the-gate',
    play: async (d) => {
      await willMeasure(d, 1.5)
      await (await startRun(d, GATED)).result()
      await willMeasure(d, 2, jobOfToday('eval', 'b'))
      await willMeasure(d, 1.5, jobOfToday('prod', 'b'))
      const evaluation = { ...GATED.evaluation!, production: 'rerun' as const }
      const run = await startRun(d, { ...GATED, evaluation }, '2')
      await run.result()
      return run.workflowId
    },
  },
  {
    name: 'retrain.waited-and-rehearsed',
    wishes: { posted: [] },
    play: async (d) => {
      const notify = { webhook: 'https://hooks.test/x' }
      const { spec } = opensIn(20)
      const run = await startRun(d, {
        ...spec,
        notify,
        checkMs: 86_400_000,
        rehearsal: { run: 'train --steps 1' },
      })
      await skipTime(d.client, run.workflowId)
      await run.result()
      return run.workflowId
    },
  },
  {
    name: 'retrain.reserved-then-elsewhere',
    wishes: {
      market: SHORT,
      wares: [RESERVED, SPOT],
      behave: ({ jobId }) => (jobId.endsWith('-train') ? LONG : {}),
    },
    play: async (d) => {
      SHORT.sell({
        kind: 'prepaid',
        type: 'v100',
        region: 'a',
        zone: 'a',
        count: 8,
        startsAtMs: Date.now() + 3_000,
        durationMs: 4 * DAY_MS,
        upfrontMicro: microUsd(400),
      })
      const step: ReservedStep = {
        kind: 'prepaid',
        backend: 'scripted',
        types: ['v100'],
        count: 8,
        durationMs: 3 * DAY_MS,
        startWithinMs: DAY_MS,
        upfrontMaxMicroUsd: microUsd(500),
      }
      const run = await startRun(d, {
        job: { run: 'train', interruptible: true },
        overrun: { backends: ON_SPOT },
        capacity: { steps: [{ ...step, types: ['h100'] }, step], fallbackMs: 0 },
      })
      await until(() => d.world.machines.length > 0)
      const { id, reservation } = (await runStatus(run)).reservations.at(-1)!
      SHORT.shorten(reservation!.id, Date.now())
      const handle = d.client.workflow.getHandle(reservationWorkflowId(id))
      await until(async () => {
        await handle.signal(RETRY_SIGNAL).catch(() => undefined)
        return (await runStatus(run)).jobs.length > 1
      })
      await run.result()
      return run.workflowId
    },
  },
  {
    name: 'retrain.continued-in-its-search',
    wishes: { market: SOON },
    suggestsFreshHistoryAfterEvents: 30,
    play: async (d) => {
      const step: ReservedStep = {
        kind: 'prepaid',
        backend: 'scripted',
        types: ['v100'],
        count: 8,
        durationMs: DAY_MS,
        startWithinMs: DAY_MS,
        upfrontMaxMicroUsd: microUsd(500),
      }
      const block: PrepaidLot = {
        kind: 'prepaid',
        type: 'v100',
        region: 'a',
        zone: 'a',
        count: 8,
        durationMs: 4 * DAY_MS,
        startsAtMs: Date.now() + DAY_MS + HOUR_MS,
        upfrontMicro: microUsd(400),
      }
      SOON.sell({ ...block, stock: 0 })
      const first = await startRun(d, {
        ...opensIn(1).spec,
        job: { run: 'train', interruptible: true },
        capacity: { steps: [step], fallbackMs: 0 },
      })
      const run = d.client.workflow.getHandle(first.workflowId)
      await until(async () => {
        await run.signal(RETRY_SIGNAL)
        return (await run.describe()).runId !== first.firstExecutionRunId
      })
      SOON.sell({ ...block, startsAtMs: block.startsAtMs + HOUR_MS })
      const [asked] = (await runStatus(run)).reservations
      await until(async () => {
        await d.client.workflow.getHandle(reservationWorkflowId(asked!.id)).signal(RETRY_SIGNAL)
        return (await runStatus(run)).state === 'waiting'
      })
      await run.executeUpdate('skipRun', { args: [{ by: 'ada' }] })
      await run.result()
      return run.workflowId
    },
  },
  {
    name: 'retrain.training-failed',
    wishes: { behave: () => ({ fails: { atStep: 15, exitCode: 1 } }) },
    play: async (d) => {
      const run = await startRun(d, GATED)
      await runFailure(run)
      return run.workflowId
    },
  },
]
