import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { lookFor } from '../../../activities/machine/sending'
import type { Order } from '../../../core/job/plan'
import { Ages } from '../../../core/time/ages'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../core/time/time'
import { layout } from '../../../storage/layout'
import { Sends } from '../../../storage/sends'
import { createScriptedBackend } from '../../backends/scripted/scripted-backend'
import { describeLostAnswers } from '../lost-answers'
import { perform } from '../place'
import { Mortal, SendingPlace } from '../sending-place'

let place: SendingPlace

beforeEach(() => {
  place = new SendingPlace()
})
afterEach(() => place.dispose())

const THROTTLED = { kind: 'throws', failure: { class: 'throttled', message: 'slow down' } } as const
const launch = (order: Order, worker = place.worker()) => perform(worker, 'launch', { order, recordSeq: 3 })
const machinesOf = ({ attemptId }: Order) => place.world.machinesOf(attemptId)
const sent = ({ attemptId }: Order): number =>
  place.world.callsOf('launch').filter(({ attemptIds }) => attemptIds.includes(attemptId)).length

describe('an order to a provider that recognises no repeated order', () => {
  it('is marked in the store before it is sent', async () => {
    const order = place.order()
    const worker = new Mortal()
    await launch(order, place.worker(worker))
    const key = layout.send(order.jobId, 1, 1)
    const mark = JSON.parse((await place.store.get(key))!.toString()) as object
    expect(mark).toMatchObject({ kind: 'send', seq: 1, name: `${order.attemptId}-s1` })
    expect(machinesOf(order)[0]!.handle.send).toBe(`${order.attemptId}-s1`)
    const afterList = worker.calls.slice(worker.calls.indexOf('list') + 1)
    expect(afterList.slice(0, 2)).toEqual(['putIfAbsent', 'launch'])
  })

  it('is sent again, under another name, once it is on record that it was throttled', async () => {
    const order = place.order()
    place.world.faults.add('launch', THROTTLED, { times: 3 })
    expect(await place.obtain(order)).toMatchObject({ send: `${order.attemptId}-s4` })
    expect([sent(order), machinesOf(order).length]).toEqual([4, 1])
  })

  it('is sent again by a reset workflow, once it is on record that it was refused', async () => {
    const order = place.order()
    const failure = { class: 'capacity', message: 'out of stock' } as const
    place.world.faults.add('launch', { kind: 'refuses', failure })
    expect(await launch(order)).toEqual({ kind: 'refused', failure })
    expect(await launch(order)).toMatchObject({ kind: 'launched' })
    expect(machinesOf(order)).toHaveLength(1)
  })

  it('is not sent again after an error that tells nothing', async () => {
    const order = place.order()
    const failure = { class: 'unclassified', message: '<html>' } as const
    place.world.faults.add('launch', { kind: 'throws', failure })
    await expect(launch(order)).rejects.toMatchObject({ type: 'unclassified' })
    expect(await launch(order)).toEqual({ kind: 'unconfirmed', findAfterMs: 0 })
    expect(sent(order)).toBe(1)
  })

  it.each([2 * HOUR_MS, -2 * HOUR_MS, 30 * DAY_MS])(
    'is looked for as long as its send may have an effect when the clock is set by %d ms',
    async (stepMs) => {
      const [order, { store }] = [place.order(), place]
      const startMs = Date.now()
      let [aheadMs, passedMs] = [0, 0]
      const now = (): number => startMs + aheadMs
      const ages = new Ages({ now, monotonicMs: () => passedMs })
      const backend = createScriptedBackend(place.world)
      await new Sends(store, order, now).begin()
      const leftMs = async (): Promise<number> => {
        const deps = { backend, store, now, ages, sendLimitMs: MINUTE_MS }
        const { sentUntilMs } = await lookFor(deps, order, new AbortController().signal)
        return sentUntilMs! - now()
      }
      expect(await leftMs()).toBe(MINUTE_MS)
      aheadMs = stepMs
      passedMs = MINUTE_MS - 1
      expect(await leftMs()).toBe(1)
      passedMs = MINUTE_MS
      expect(await leftMs()).toBe(0)
    },
  )

  it('is known by its machine, even when that has ended and is listed no more', async () => {
    const order = place.order()
    const handle = await place.obtain(order)
    machinesOf(order)[0]!.end('ended')
    place.world.forgetEnded()
    expect(await launch(order)).toEqual({ kind: 'launched', handle })
    expect(sent(order)).toBe(1)
  })

  it('makes no second machine when the first one ended unseen and is listed no more', async () => {
    const order = place.order()
    place.world.faults.add('launch', { kind: 'loses-answer', hasEffect: true, findAfterMs: 0 })
    expect(await launch(order)).toMatchObject({ kind: 'unconfirmed' })
    machinesOf(order)[0]!.end('ended')
    place.world.forgetEnded()
    expect(await place.obtain(order)).toBeUndefined()
    expect([sent(order), machinesOf(order).length]).toEqual([1, 1])
  })

  it('is sent by one of two workers that try at once, and both have its machine', async () => {
    const order = place.order()
    const workers = [place.worker(), place.worker()]
    const [one, other] = await Promise.all(workers.map((worker) => place.obtain(order, [worker])))
    expect(one).toEqual(machinesOf(order)[0]!.handle)
    expect(other).toEqual(one)
    expect(sent(order)).toBe(1)
  })

  it('is given up when its provider does not answer, before others rely on its lists', async () => {
    const order = place.order()
    place.world.faults.add('launch', { kind: 'hangs', hasEffect: true })
    expect(await launch(order)).toMatchObject({ kind: 'unconfirmed' })
    expect(await place.obtain(order)).toEqual(machinesOf(order)[0]!.handle)
  })

  it('is no longer sent once its attempt is settled', async () => {
    for (const isSent of [false, true]) {
      const order = place.order()
      if (isSent) {
        place.world.faults.add('launch', THROTTLED)
        await expect(launch(order)).rejects.toThrow('slow down')
      }
      await place.settle(order)
      await place.settle(order)
      expect(await launch(order)).toEqual({ kind: 'unconfirmed', findAfterMs: 0 })
      expect(machinesOf(order)).toEqual([])
    }
  })

  it('costs no further call to the store where tokens are recognised', async () => {
    place.dispose()
    place = new SendingPlace({ capabilities: { idempotency: 'token' }, listsLagMs: 0 })
    const [order, worker] = [place.order(), new Mortal()]
    await launch(order, place.worker(worker))
    await perform(place.worker(worker), 'find', { order })
    const untilSent = worker.calls.slice(0, worker.calls.indexOf('launch') + 2)
    // The order, its record, and the machine.
    expect(untilSent).toEqual(['putIfAbsent', 'putIfAbsent', 'launch', 'putIfAbsent'])
    expect(worker.calls.slice(worker.calls.indexOf('find'))).toEqual(['find', 'get', 'putIfAbsent'])
    await place.settle(order)
    expect(await place.store.listFolders(layout.attempt(order.jobId, 1))).not.toContain('sends')
  })
})

describe('a worker that dies in the midst of a launch', () => {
  const cases = [0, 1].flatMap((refusals) =>
    (['before', 'after'] as const).map((moment) => ({ refusals, moment })),
  )

  it.each(cases)('is followed by no second machine, whichever call it dies in: %o', async (one) => {
    const { moment, refusals } = one
    const prepared = (): Order => {
      const order = place.order()
      if (refusals > 0) place.world.faults.add('launch', THROTTLED, { attemptId: order.attemptId })
      return order
    }
    const undisturbed = new Mortal()
    await place.obtain(prepared(), [place.worker(undisturbed)])
    const { calls } = undisturbed
    expect(calls).toEqual(expect.arrayContaining(['list', 'putIfAbsent', 'launch']))
    const ends = calls.map(async (call, index) => {
      const order = prepared()
      const mortal = new Mortal({ at: index + 1, moment })
      const handle = await place.obtain(order, [place.worker(mortal), place.worker()])
      expect([call, mortal.isDead || refusals > 0]).toEqual([call, true])
      const machines = machinesOf(order)
      expect([call, machines.length]).toEqual([call, handle === undefined ? 0 : 1])
      expect([call, handle]).toEqual([call, machines[0]?.handle])
      await place.settle(order)
      expect(machinesOf(order).filter(({ state }) => state !== 'gone')).toEqual([])
      return machines.length
    })
    const made = await Promise.all(ends)
    // A mark whose send certainly never left cannot be told from a lost answer.
    expect(made.filter((count) => count === 0).length).toBeLessThanOrEqual(2)
  })

  it('costs the attempt its machine only between the mark and the send', async () => {
    const order = place.order()
    const mortal = place.worker(new Mortal({ at: 'launch', moment: 'before' }))
    expect(await place.obtain(order, [mortal, place.worker()])).toBeUndefined()
    expect(machinesOf(order)).toEqual([])
  })
})

describeLostAnswers('a provider that recognises no repeated order', async () => {
  const at = new SendingPlace()
  const fault = (order: Order, one: Parameters<typeof at.world.faults.add>[1], times = 1): void =>
    at.world.faults.add('launch', one, { attemptId: order.attemptId, times })
  return {
    senders: at,
    order: async () => at.order(),
    lose: (order) => fault(order, { kind: 'loses-answer', hasEffect: true, findAfterMs: 0 }),
    delay: (order) => fault(order, { kind: 'late', effectAfterMs: 10, findAfterMs: 0 }),
    throttle: (order, times) => fault(order, THROTTLED, times),
    end: ({ attemptId }) => at.world.machinesOf(attemptId)[0]!.end('ended'),
    machines: () => at.world.machines.map(({ handle }) => handle.attemptId),
    dispose: () => at.dispose(),
  }
})
