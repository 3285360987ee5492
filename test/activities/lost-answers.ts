import { describe, expect, it } from '@jest/globals'
import type { Order } from '../../core/job/plan'
import { Dice } from '../kit/dice'
import { inLanes } from '../kit/lanes'
import { chosen } from '../support/selection'
import { until } from '../support/until'
import { Mortal, type Senders } from './sending-place'

const COUNT = 1_000

/** A provider whose answers a test loses, order by order. */
export interface LosingProvider {
  senders: Senders
  order(): Promise<Order>
  /** The next send has its effect, and its answer is lost. */
  lose(order: Order): void
  /** The answer of the next send is lost, and its effect comes some milliseconds later. */
  delay(order: Order): void
  /** The next sends are refused in passing. */
  throttle(order: Order, times: number): void
  /** Ends the machine of an order. */
  end(order: Order): void
  /** The attempts of all machines that were ever made. */
  machines(): string[]
  dispose(): unknown
}

type Fate = (at: LosingProvider, order: Order) => Promise<unknown>

const repeated = ({ senders }: LosingProvider, order: Order, times: number): Promise<unknown> =>
  Promise.all(Array.from({ length: times }, () => senders.obtain(order)))

const FATES: Record<string, Fate> = {
  answered: ({ senders }, order) => senders.obtain(order),
  lost: (at, order) => {
    at.lose(order)
    return at.senders.obtain(order)
  },
  late: (at, order) => {
    at.delay(order)
    return at.senders.obtain(order)
  },
  doubled: async ({ senders }, order) => [await senders.obtain(order), await senders.obtain(order)],
  'doubled after its machine has ended': async (at, order) => {
    await at.senders.obtain(order)
    at.end(order)
    await at.senders.wait(20)
    return at.senders.obtain(order)
  },
  'repeated by a second worker at once': (at, order) => repeated(at, order, 3),
  'lost, and repeated by a second worker at once': (at, order) => {
    at.lose(order)
    return repeated(at, order, 2)
  },
  'late, and repeated by a second worker at once': (at, order) => {
    at.delay(order)
    return repeated(at, order, 2)
  },
  'lost with their worker': ({ senders }, order) => {
    const mortal = senders.worker(new Mortal({ at: 'launch', moment: 'after' }))
    return senders.obtain(order, [mortal, senders.worker()])
  },
  throttled: (at, order) => {
    at.throttle(order, 2)
    return repeated(at, order, 2)
  },
}

/** Launches whose answers are lost, late, doubled, or repeated by a second worker: 1,000 in the long run, 100 in `npm test`. */
export function describeLostAnswers(name: string, make: () => Promise<LosingProvider>): void {
  describe(`launches at ${name} whose answers are lost`, () => {
    it('end with exactly as many machines as attempts', async () => {
      const at = await make()
      const dice = new Dice(16)
      const count = chosen([COUNT], [COUNT / 10])[0]!
      const names = Object.keys(FATES)
      const met = new Set<string>()
      const machinesOf = ({ attemptId }: Order): number =>
        at.machines().filter((one) => one === attemptId).length
      const fates = Array.from({ length: count }, () => dice.oneOf(names))
      await inLanes(fates, { jobs: 20 }, async (fate) => {
        const order = await at.order()
        met.add(fate)
        await FATES[fate]!(at, order)
        // A provider may accept a launch before its list has the machine.
        await until(() => machinesOf(order) > 0)
        expect([fate, machinesOf(order)]).toEqual([fate, 1])
      })
      expect(met.size).toBe(names.length)
      await until(() => at.machines().length >= count)
      expect(at.machines()).toHaveLength(count)
      expect(new Set(at.machines()).size).toBe(count)
      await at.dispose()
    }, 240_000)
  })
}
