import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { AttemptDocuments } from '../../activities/documents'
import { endExpired } from '../../activities/garbage/expired'
import type { Backend } from '../../backends/backend'
import type { OwnedResource } from '../../core/handle'
import type { GarbageVerdict } from '../../core/messages'
import type { Order } from '../../core/job/plan'
import { attemptIdOf } from '../../core/queues'
import { CLOCK_SLACK_MS, HOUR_MS, MINUTE_MS } from '../../core/time/time'
import { stoppingMs } from '../../core/time/timing'
import { layout } from '../../storage/layout'
import { putRecord } from '../../storage/record'
import { RealClock } from '../backends/scripted/clock'
import { MemoryStore } from '../backends/scripted/memory-store'
import { createScriptedBackend } from '../backends/scripted/scripted-backend'
import { ScriptedWorld } from '../backends/scripted/world'
import { makeOrder } from '../backends/orders'
import { QUICK, SPOT } from './place'

/** A lease of an hour, and a start up to ten minutes after the order. */
const TIMING = { ...QUICK, leaseMs: HOUR_MS, startWithinMs: 10 * MINUTE_MS }
/** From the end of the lease until everything has certainly stopped. */
const STOPPED_MS = stoppingMs(TIMING) + CLOCK_SLACK_MS
const BEGAN_MS = Date.now()

/** The clock of the store; that of the host that collects is nowhere used. */
let storeMs: number
let store: MemoryStore
let world: ScriptedWorld
let backend: Backend

beforeEach(() => {
  storeMs = BEGAN_MS
  store = new MemoryStore(() => storeMs)
  world = new ScriptedWorld({
    clock: new RealClock(),
    store,
    wares: [SPOT],
    behave: () => ({ neverStarts: true }),
    capabilities: { billsUntil: 'terminate' },
  })
  backend = createScriptedBackend(world)
})
afterEach(() => world.dispose())

const documentsOf = (order: Order): AttemptDocuments => new AttemptDocuments(store, order, () => storeMs)

/** A machine whose order was put now. */
async function ordered(jobId = 'job-a', timing = TIMING): Promise<Order> {
  const order = makeOrder({ store, offers: world.offers({}), timing, jobId })
  await documentsOf(order).putOrder(order.runner)
  world.buy(order)
  return order
}

const renew = (order: Order, ttlMs: number, seq = 1): Promise<void> =>
  documentsOf(order).putLease({ seq, answersBeat: seq, ttlMs })

async function collect(isDryRun = false, deployment?: string): Promise<Pick<GarbageVerdict, 'action'>[]> {
  const [first] = world.machines
  const input = { deployment: deployment ?? first!.owner.deployment, isDryRun }
  return endExpired({ backend, store, storeNow: () => storeMs }, input, AbortSignal.timeout(10_000))
}

const states = (): string[] => world.machines.map(({ state }) => (state === 'gone' ? 'gone' : 'alive'))

describe('a collection without a server', () => {
  it('keeps a machine until its lease, drain, power-off and slack are over, counted from the renewal', async () => {
    const order = await ordered()
    storeMs += 5 * HOUR_MS
    await renew(order, HOUR_MS)
    storeMs += HOUR_MS + STOPPED_MS
    expect(await collect()).toMatchObject([{ action: 'kept', kind: 'machine', owner: order.attemptId }])
    storeMs += 1
    expect(await collect(true)).toMatchObject([{ action: 'would-end' }])
    expect(states()).toEqual(['alive'])
    expect(await collect()).toMatchObject([{ action: 'ended' }])
    expect(states()).toEqual(['gone'])
    expect(await collect()).toEqual([])
    expect(world.callsOf('terminate')).toHaveLength(1)
    // The settlement, whenever it comes, counts no longer than this.
    const { handle } = world.machines[0]!
    expect(await documentsOf(order).readEnded()).toEqual([{ handle, endedAtMs: storeMs }])
  })

  it('gives a machine without a lease the time to start and one lease', async () => {
    await ordered()
    storeMs += TIMING.startWithinMs + HOUR_MS + STOPPED_MS
    expect(await collect()).toMatchObject([{ action: 'kept' }])
    storeMs += MINUTE_MS
    expect(await collect()).toMatchObject([{ action: 'ended' }])
  })

  it('gives a machine that may have waited in a queue the longest wait in addition', async () => {
    const queueMs = 20 * MINUTE_MS
    const order = await ordered()
    await documentsOf({ ...order, attempt: 2 }).putOrder({
      ...order.runner,
      attempt: 2,
      attemptId: attemptIdOf(order.jobId, 2),
      queueMs,
    })
    world.buy({ ...order, attempt: 2, attemptId: attemptIdOf(order.jobId, 2), token: 'second' })
    storeMs += TIMING.startWithinMs + HOUR_MS + STOPPED_MS + MINUTE_MS
    expect(await collect()).toMatchObject([{ action: 'ended' }, { action: 'kept' }])
    storeMs += queueMs
    expect(await collect()).toMatchObject([{ action: 'ended' }])
  })

  it('names and keeps a machine whose order or record is damaged, and ends the others', async () => {
    const [damaged, unrecorded] = [await ordered('job-b'), await ordered('job-c')]
    await ordered('job-a')
    await store.put(layout.order(damaged.jobId, 1), '{"leaseMs":')
    await store.put(layout.record(unrecorded.jobId, 0), '[42]')
    storeMs += 10 * HOUR_MS
    const verdicts = await collect()
    const reason = (key: string) =>
      expect.stringContaining(`end of its lease is unknown: The document ${key}`)
    expect(verdicts).toEqual([
      expect.objectContaining({
        action: 'kept',
        owner: 'job-b-1',
        reason: reason('jobs/job-b/attempts/1/order'),
      }),
      expect.objectContaining({
        action: 'kept',
        owner: 'job-c-1',
        reason: reason('jobs/job-c/record/000000'),
      }),
      expect.objectContaining({ action: 'ended', owner: 'job-a-1' }),
    ])
  })

  it('lets an unreadable lease count as one that was just given', async () => {
    const order = await ordered()
    storeMs += 5 * HOUR_MS
    await store.put(layout.lease(order.jobId, 1), '{')
    storeMs += HOUR_MS + STOPPED_MS + 1
    expect(await collect()).toMatchObject([{ action: 'kept' }])
    storeMs += TIMING.startWithinMs
    expect(await collect()).toMatchObject([{ action: 'ended' }])
  })

  it('counts with the longest lease that the attempt had, which a cut-off machine may still count', async () => {
    const order = await ordered()
    await putRecord(store, order.jobId, {
      seq: 3,
      atMs: storeMs,
      kind: 'launched',
      attempt: 1,
      summary: 'ordered',
      data: { ...order, runner: { ...order.runner, leaseMs: 6 * HOUR_MS } },
    })
    await renew(order, 10 * MINUTE_MS)
    storeMs += 6 * HOUR_MS
    expect(await collect()).toMatchObject([{ action: 'kept' }])
    storeMs += STOPPED_MS + 1
    expect(await collect()).toMatchObject([{ action: 'ended' }])
  })

  it('keeps what it cannot judge: no order, no attempt on the tag, not a machine', async () => {
    const order = await ordered()
    await store.delete(layout.order(order.jobId, 1))
    storeMs += 1_000 * HOUR_MS
    expect(await collect()).toMatchObject([{ action: 'kept', reason: expect.stringMatching(/no order/) }])
    const [machine] = world.machines
    const { handle, owner } = machine!
    const listed = (change: Partial<OwnedResource>): void => {
      backend.list = async () => [{ handle, owner, createdAtMs: 0, description: '', ...change }]
    }
    listed({ owner: { ...owner, attemptId: 'by hand' } })
    expect(await collect()).toMatchObject([{ action: 'kept' }])
    await documentsOf(order).putOrder(order.runner)
    storeMs += 1_000 * HOUR_MS
    listed({ handle: { ...handle, kind: 'volume' } })
    expect(await collect()).toMatchObject([{ action: 'kept', kind: 'volume' }])
    expect(states()).toEqual(['alive'])
  })

  it('does not touch what carries the tag of another deployment, whatever the provider lists', async () => {
    await ordered()
    storeMs += 1_000 * HOUR_MS
    const list = backend.list.bind(backend)
    backend.list = (_deployment, ctx) => list(world.machines[0]!.owner.deployment, ctx)
    expect(await collect(false, 'dep-otherother')).toEqual([])
    expect(states()).toEqual(['alive'])
  })

  it('ends nothing when the store does not answer', async () => {
    await ordered()
    storeMs += 1_000 * HOUR_MS
    store.isDown = true
    await expect(collect()).rejects.toThrow()
    expect(states()).toEqual(['alive'])
  })

  it('reports a machine that its provider does not end, and ends the others', async () => {
    await ordered('job-a')
    await ordered('job-b')
    storeMs += 1_000 * HOUR_MS
    const failure = { class: 'transient', message: 'no answer' } as const
    world.faults.add('terminate', { kind: 'throws', failure }, { times: 1 })
    expect(await collect()).toMatchObject([{ action: 'failed', reason: 'no answer' }, { action: 'ended' }])
    expect(states()).toEqual(['alive', 'gone'])
  })

  it('never ends a machine while a runner that keeps to the protocol could still run', async () => {
    const life = fc.record({
      renewals: fc.array(fc.record({ afterMs: fc.nat(HOUR_MS / 2), answeredWithinMs: fc.nat(MINUTE_MS) })),
      leaseMs: fc.integer({ min: MINUTE_MS, max: 6 * HOUR_MS }),
      startsAfterMs: fc.nat(TIMING.startWithinMs),
      machineAheadMs: fc.integer({ min: -CLOCK_SLACK_MS, max: CLOCK_SLACK_MS }),
      looksAfterMs: fc.nat(12 * HOUR_MS),
    })
    let seq = 0
    await fc.assert(
      fc.asyncProperty(life, async ({ renewals, leaseMs, startsAfterMs, machineAheadMs, looksAfterMs }) => {
        storeMs = BEGAN_MS
        const order = await ordered(`job-${++seq}`, { ...TIMING, leaseMs })
        // The runner compares its own clock with the order's time once, at its start; then it counts durations.
        let aliveUntilMs = storeMs + startsAfterMs - machineAheadMs + leaseMs + stoppingMs(TIMING)
        storeMs += startsAfterMs
        for (const [index, { afterMs, answeredWithinMs }] of renewals.entries()) {
          storeMs += Math.max(afterMs, answeredWithinMs)
          await renew(order, leaseMs, index + 1)
          aliveUntilMs = storeMs - answeredWithinMs + leaseMs + stoppingMs(TIMING)
        }
        storeMs += looksAfterMs
        const isAlive = storeMs < aliveUntilMs
        await collect()
        const machine = world.machineOf(order.attemptId)!
        if (isAlive) expect(machine.state).not.toBe('gone')
        if (storeMs > aliveUntilMs + 2 * CLOCK_SLACK_MS + TIMING.startWithinMs + MINUTE_MS)
          expect(machine.state).toBe('gone')
        machine.end('ended')
      }),
      { numRuns: 300 },
    )
  })
})
