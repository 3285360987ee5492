import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals'
import { microUsd } from '../../core/money/money'
import { DAY_MS, HOUR_MS, SECOND_MS } from '../../core/time/time'
import type { CapacityPlan, ReservedStep } from '../../core/retraining/retraining'
import type { RetrainResult } from '../../core/retraining/run'
import { RETRY_SIGNAL } from '../../core/messages'
import type { JobSpec } from '../../core/job/job'
import { layout } from '../../storage/layout'
import { readHolder, readReservationEntries } from '../../storage/reservations'
import { readRun } from '../../storage/schedules'
import { serverOfShortHistories } from '../support/own-server'
import { RealClock } from '../backends/scripted/clock'
import type { PrepaidLot } from '../backends/scripted/reserving/lots'
import { ReservationMarket, type MarketOptions } from '../backends/scripted/reserving/market'
import { connectTo, quietWorkers, type TestConnection } from '../support/temporal'
import { eventually, TEST_LIMIT_MS } from './looks'
import { Deployment, LONG, SPOT, worldsOn, type WorldWishes } from './harness'
import {
  inRunState,
  opensIn,
  runFailure,
  runStatus,
  SCHEDULE,
  resetBeforeChild,
  startRun,
  UI_URL,
} from './retraining'

jest.setTimeout(TEST_LIMIT_MS)

let at: TestConnection
beforeAll(async () => {
  quietWorkers()
  at = await connectTo()
})
afterAll(() => at.close())
const inWorld = worldsOn(() => at)

const lot = (more: Partial<PrepaidLot> & Pick<PrepaidLot, 'startsAtMs'>): PrepaidLot => ({
  kind: 'prepaid',
  type: 'v100',
  region: 'a',
  zone: 'a',
  count: 8,
  durationMs: 4 * DAY_MS,
  upfrontMicro: microUsd(400),
  ...more,
})

/** Begins soon after a run has first asked for it: one that began before its run is not what that wants. */
function lotSoon(): PrepaidLot {
  let beginsAtMs: number | undefined
  const get = (): number => (beginsAtMs ??= Date.now() + 2 * SECOND_MS)
  return Object.defineProperty(lot({ startsAtMs: 0 }), 'startsAtMs', { get, enumerable: true })
}

function market(lots: PrepaidLot[], options: Partial<MarketOptions> = {}): ReservationMarket {
  const payment = { kind: 'confirmed', afterMs: 0 } as const
  return new ReservationMarket({ clock: new RealClock(), lots, payment, ...options })
}

/** The machines of what is reserved; the market only sells it. */
const WORLD: WorldWishes = {
  wares: [{ capacityType: 'reserved', type: 'v100', place: 'a', stock: 8, priceMicroUsdPerHour: 0 }, SPOT],
}

const STEP: ReservedStep = {
  kind: 'prepaid',
  backend: 'scripted',
  types: ['v100'],
  count: 8,
  durationMs: 3 * DAY_MS,
  startWithinMs: DAY_MS,
  upfrontMaxMicroUsd: microUsd(500),
}
const OPEN = { kind: 'unreserved', backends: [{ backend: 'scripted', capacityType: 'spot' }] } as const
const plan = (...steps: CapacityPlan['steps']): CapacityPlan => ({ steps, fallbackMs: 0 })
const ON_GPUS = { job: { run: 'train', interruptible: true } }

function promiseOf(): [promise: Promise<void>, resolve: () => void] {
  let resolve!: () => void
  return [new Promise((done) => (resolve = done)), () => resolve()]
}

describe('the capacity of a retraining run', () => {
  const bought = market([])
  it.concurrent(
    'is bought by the rule, waited for, used, and left to the other jobs of its owner',
    inWorld({ ...WORLD, market: bought }, async (deployment) => {
      bought.sell(lotSoon())
      const run = await startRun(deployment, { ...ON_GPUS, capacity: plan(STEP) })
      const result = await run.result()
      expect(result).toMatchObject({
        state: 'trained',
        capacityMicroUsd: microUsd(400),
        warnings: [
          expect.stringMatching(
            /^The rest of the reservation res-[0-9a-f]+ stays for other jobs of somebody/,
          ),
        ],
      })
      expect(result.costMicroUsd).toBe(microUsd(400))
      expect(bought.purchases).toHaveLength(1)
      const [machine] = deployment.world.machines
      expect(machine!.handle.realised).toMatchObject({ capacityType: 'reserved', place: 'a' })
      const { startsAtMs } = bought.purchases[0]!.quote
      expect(result.jobs[0]!.startedAtMs - startsAtMs).toBeGreaterThanOrEqual(0)
      expect(result.jobs[0]!.startedAtMs - startsAtMs).toBeLessThan(60_000)
      // Only this run's job may use it, and its places are kept for that.
      const { id } = (await runStatus(run)).reservations[0]!
      // As one of `crucible reservations reserve`: it is listed without a worker, and its page has its address.
      const [requested] = await readReservationEntries(deployment.store, id)
      expect(requested).toMatchObject({
        seq: 0,
        kind: 'requested',
        summary: '8 × v100, prepaid',
        data: { reservationId: id, owner: 'somebody', pageUrl: `${UI_URL}/reservation%2F${id}` },
      })
      const jobId = result.jobs[0]!.jobId
      const first = JSON.parse((await deployment.store.get(layout.record(jobId, 0)))!.toString()) as {
        data: { spec: JobSpec }
      }
      expect(first.data.spec).toMatchObject({
        reservation: id,
        backends: [{ backend: 'scripted', capacityType: 'reserved' }],
      })
      expect((await readHolder(deployment.store, id))?.awaited).toMatchObject({
        jobId,
        schedule: SCHEDULE,
        run: result.run.id,
      })
      const kinds = (await readRun(deployment.store, SCHEDULE, result.run.id)).map(({ kind }) => kind)
      expect(kinds).toEqual(['started', 'capacity', 'checked', 'model', 'finished'])
    }),
  )

  const other = market([lotSoon()])
  const [hears, hear] = promiseOf()
  it.concurrent(
    'is looked for step by step, with an early word for which the training does not wait',
    inWorld({ ...WORLD, market: other, posted: [], hears }, async (deployment) => {
      const unknown: ReservedStep = { ...STEP, types: ['h100'] }
      const notify = { webhook: 'https://hooks.test/x' }
      const run = await startRun(deployment, { ...ON_GPUS, notify, capacity: plan(unknown, OPEN) })
      await eventually(async () => deployment.world.machines.length > 0)
      expect(deployment.wishes.posted).toEqual([])
      hear()
      const result = await run.result()
      expect(deployment.wishes.posted).toHaveLength(2)
      expect(result).toMatchObject({
        state: 'trained',
        warnings: [
          expect.stringMatching(
            /^Fallback 1 of 1: no reservation, the job uses any offer on scripted:spot\. None of h100 is sold/,
          ),
        ],
      })
      expect(other.purchases).toEqual([])
      expect(deployment.world.machines[0]!.handle.realised).toMatchObject({ capacityType: 'spot' })
    }),
  )

  const asked = market([])
  it.concurrent(
    'waits for a person where the file wants one, and says so',
    inWorld({ ...WORLD, market: asked }, async (deployment) => {
      asked.sell(lot({ startsAtMs: Date.now() + HOUR_MS }))
      const asking = { ...STEP, unaskedMaxMicroUsd: microUsd(1) }
      const run = await startRun(deployment, { ...ON_GPUS, capacity: plan(asking) })
      await eventually(async () => (await runStatus(run)).warnings.length > 0)
      const { warnings, reservations } = await runStatus(run)
      expect(reservations[0]!.state).toBe('awaiting-approval')
      const { id } = reservations[0]!
      expect(warnings[0]).toMatch(new RegExp(`^Capacity ${id}: .*crucible reservations approve ${id}`))
      const reservation = deployment.client.workflow.getHandle(`reservation/${reservations[0]!.id}`)
      await reservation.executeUpdate('reject', { args: [{ by: 'ada', reason: 'too dear' }] })
      const { message } = await runFailure(run)
      expect(message).toMatch(/^Every way to get capacity was tried\. Rejected by ada: too dear/)
      expect(asked.purchases).toEqual([])
    }),
  )

  const unneeded = market([])
  it.concurrent(
    'is not asked for by a run that is skipped while it decides',
    inWorld({ ...WORLD, market: unneeded }, async (deployment) => {
      const { store } = deployment
      unneeded.sell(lot({ startsAtMs: Date.now() + HOUR_MS }))
      store.refuses = (key, body) => key.includes('/runs/') && body.includes('"kind": "capacity"')
      const run = await startRun(deployment, { ...ON_GPUS, capacity: plan(STEP) })
      await eventually(async () => (await runStatus(run)).trouble !== undefined)
      await run.executeUpdate('skipRun', { args: [{ by: 'ada' }] })
      store.refuses = () => false
      await run.signal(RETRY_SIGNAL)
      expect(await run.result()).toMatchObject({ state: 'skipped', capacityMicroUsd: 0 })
      expect((await runStatus(run)).reservations).toEqual([])
      expect(unneeded.purchases).toEqual([])
    }),
  )

  const none = market([])
  it.concurrent(
    'ends the run with a reason if every step was tried',
    inWorld({ ...WORLD, market: none }, async (deployment) => {
      const { message, result } = await runFailure(
        await startRun(deployment, { ...ON_GPUS, capacity: plan(STEP) }),
      )
      expect(message).toMatch(/^Every way to get capacity was tried\. None of v100 is sold/)
      expect(result).toMatchObject({ state: 'failed', jobs: [] })
    }),
  )

  const lost = market([lot({ startsAtMs: Date.now() + 2 * HOUR_MS })])
  it.concurrent(
    'is replaced by the next step when it is lost before the window',
    inWorld({ ...WORLD, market: lost }, async (deployment) => {
      const { spec } = opensIn(1)
      const run = await startRun(deployment, {
        ...spec,
        ...ON_GPUS,
        capacity: plan({ ...STEP, durationMs: DAY_MS }, OPEN),
      })
      lost.sell(lot({ startsAtMs: Date.now() + DAY_MS + HOUR_MS }))
      await eventually(async () => {
        const { reservations } = await runStatus(run)
        if (reservations.length === 0) return false
        // The run knows its id before it has started.
        const started = deployment.client.workflow.getHandle(`reservation/${reservations[0]!.id}`)
        await started.signal('retry').catch(() => undefined)
        return lost.purchases.length > 0
      })
      await inRunState(run, 'waiting')
      const { reservations } = await runStatus(run)
      const held = reservations[0]!.reservation!
      lost.shorten(held.id, Date.now())
      const handle = deployment.client.workflow.getHandle(`reservation/${reservations[0]!.id}`)
      await eventually(async () => {
        await handle.signal('retry').catch(() => undefined)
        return (await runStatus(run)).warnings.length > 1
      })
      expect((await runStatus(run)).warnings).toEqual([
        expect.stringMatching(/^The capacity is lost: .* The next step of the file is tried\.$/),
        expect.stringMatching(/^Fallback 1 of 1: no reservation/),
      ])
      await run.executeUpdate('startNow')
      expect((await run.result()).state).toBe('trained')
    }),
  )

  const short = market([])
  it.concurrent(
    'is left for the backends of the file when it ends before the training',
    inWorld(
      { ...WORLD, market: short, behave: ({ jobId }) => (jobId.endsWith('-train') ? LONG : {}) },
      async (deployment) => {
        short.sell(lotSoon())
        const overrun = { backends: OPEN.backends }
        const run = await startRun(deployment, { ...ON_GPUS, overrun, capacity: plan(STEP) })
        await eventually(async () => deployment.world.machines.length > 0)
        const { reservations } = await runStatus(run)
        short.shorten(reservations[0]!.reservation!.id, Date.now())
        const handle = deployment.client.workflow.getHandle(`reservation/${reservations[0]!.id}`)
        await eventually(async () => {
          await handle.signal('retry').catch(() => undefined)
          return (await runStatus(run)).jobs.length > 1
        })
        const result = await run.result()
        expect(result).toMatchObject({
          state: 'trained',
          jobs: [
            { part: 'training', state: 'cancelled' },
            { part: 'training', state: 'succeeded' },
          ],
        })
        expect(result.warnings[0]).toMatch(
          /is over; the training continues on scripted:spot from its checkpoint/,
        )
        expect(result.model?.jobId).toBe(result.jobs[1]!.jobId)
      },
    ),
  )

  const again = market([])
  it.concurrent(
    'is the same for a run that is reset, which buys nothing again',
    inWorld({ ...WORLD, market: again }, async (deployment) => {
      again.sell(lot({ startsAtMs: Date.now() + DAY_MS + HOUR_MS, stock: 2 }))
      const { spec } = opensIn(1)
      const capacity = plan({ ...STEP, durationMs: DAY_MS }, OPEN)
      const run = await startRun(deployment, { ...spec, ...ON_GPUS, capacity })
      await inRunState(run, 'waiting')
      const [before] = (await runStatus(run)).reservations
      const fresh = await resetBeforeChild(deployment, run)
      await inRunState(fresh, 'waiting')
      const [after] = (await runStatus(fresh)).reservations
      expect(after).toMatchObject({ id: before!.id, reservation: { id: before!.reservation!.id } })
      expect(again.purchases).toHaveLength(1)
      await fresh.executeUpdate('skipRun', { args: [{ by: 'ada' }] })
      expect(await fresh.result()).toMatchObject({ state: 'skipped', capacityMicroUsd: microUsd(400) })
    }),
  )

  it.concurrent('is still searched for after the run has continued in a fresh history', async () => {
    const server = await serverOfShortHistories(30)
    const sold = market([])
    const deployment = await Deployment.start(server.at, { ...WORLD, market: sold })
    try {
      // Sold some day, and not now.
      sold.sell(lot({ startsAtMs: Date.now() + DAY_MS + HOUR_MS, stock: 0 }))
      const { spec } = opensIn(1)
      const capacity = plan({ ...STEP, durationMs: DAY_MS })
      const checks = { checkMs: 2 * DAY_MS, rehearsal: { ...ON_GPUS.job, run: 'train --steps 1' } }
      const run = await startRun(deployment, { ...spec, ...ON_GPUS, ...checks, capacity })
      const fresh = deployment.client.workflow.getHandle(run.workflowId)
      await inRunState(fresh, 'searching')
      const runIdNow = async (): Promise<string> => (await fresh.describe()).runId
      await eventually(async () => {
        await fresh.signal(RETRY_SIGNAL)
        return (await runIdNow()) !== run.firstExecutionRunId
      })
      const [asked] = (await runStatus(fresh)).reservations
      expect(await runStatus(fresh)).toMatchObject({ state: 'searching', jobs: [] })
      sold.sell(lot({ startsAtMs: Date.now() + DAY_MS + HOUR_MS }))
      const search = deployment.client.workflow.getHandle(`reservation/${asked!.id}`)
      await eventually(async () => {
        await search.signal(RETRY_SIGNAL)
        return (await runStatus(fresh)).state === 'waiting'
      })
      const { reservations } = await runStatus(fresh)
      expect(reservations).toMatchObject([{ id: asked!.id, state: 'scheduled' }])
      expect(sold.purchases).toHaveLength(1)
      // It has been checked and rehearsed: a fresh history does not do it again.
      const before = await runIdNow()
      await eventually(async () => {
        await fresh.signal(RETRY_SIGNAL)
        return (await runIdNow()) !== before
      })
      await inRunState(fresh, 'waiting')
      const { run: ref, jobs } = await runStatus(fresh)
      expect(jobs).toMatchObject([{ part: 'rehearsal', state: 'succeeded' }])
      const kinds = (await readRun(deployment.store, SCHEDULE, ref!.id)).map(({ kind }) => kind)
      expect(kinds.filter((kind) => kind === 'checked')).toHaveLength(1)
      await fresh.executeUpdate('skipRun', { args: [{ by: 'ada' }] })
      const { state, capacityMicroUsd } = (await fresh.result()) as RetrainResult
      expect({ state, capacityMicroUsd }).toEqual({ state: 'skipped', capacityMicroUsd: microUsd(400) })
    } finally {
      await deployment.close()
      await server.stop()
    }
  })
})
