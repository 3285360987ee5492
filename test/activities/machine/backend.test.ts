import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { received } from '../../../activities/plan/sent-answer'
import type { GrantSource } from '../../../activities/watch/grants'
import type { Backend } from '../../../backends/backend'
import { BackendError } from '../../../backends/errors'
import type { LaunchInput, Settlement } from '../../../core/activities'
import type { Claim, Drain, RunnerOrder } from '../../../core/documents'
import type { MachineHandle } from '../../../core/handle'
import type { Order } from '../../../core/job/plan'
import { layout } from '../../../storage/layout'
import { putRecord, readRecords } from '../../../storage/record'
import type { Capabilities } from '../../../core/capabilities'
import { detailed, OFFERS } from '../../planner/many-offers'
import { partialEntry } from '../../support/record'
import { until } from '../../support/until'
import { perform, Place, QUICK, surroundings } from '../place'

let place: Place

beforeEach(async () => {
  place = await Place.make()
})
afterEach(() => place.dispose())

async function anew(capabilities: Partial<Capabilities>): Promise<void> {
  await place.dispose()
  place = await Place.make({ behave: () => ({ neverStarts: true }), capabilities })
}

/** Grants are not asked for before the machine exists. */
const NO_GRANTS: Omit<GrantSource, 'learnHoldsForMs'> = {
  holdsForMs: 0,
  grant: () => Promise.reject(new Error('not asked for')),
  recall: () => {
    throw new Error('not asked for')
  },
}

const input = (order: Order = place.order()): LaunchInput => ({ order, recordSeq: 3 })
const launch = (from: LaunchInput, attempt = 1, verbs = place.verbs()) =>
  perform(verbs, 'launch', from, { attempt })
const machineOf = ({ jobId }: Order) => place.read<MachineHandle>(layout.machine(jobId, 1))

describe('launch', () => {
  it('puts the order, its record and the secrets in place before anything is sent', async () => {
    const from = input()
    const { jobId } = from.order
    const seen: unknown[] = []
    const handOverSecrets = async (order: Order): Promise<void> => {
      seen.push(order.attemptId, place.world.callsOf('launch').length)
      seen.push((await place.store.head(layout.order(jobId, 1))) !== undefined)
    }
    const outcome = await launch(from, 1, place.verbs({ handOverSecrets }))
    expect(seen).toEqual([from.order.attemptId, 0, true])
    const { handle } = place.world.machines[0]!
    expect(outcome).toEqual({ kind: 'launched', handle })
    expect(await machineOf(from.order)).toEqual(handle)
    expect(await readRecords(place.store, jobId)).toMatchObject([
      { seq: 3, kind: 'launched', attempt: 1, data: JSON.parse(JSON.stringify(from.order)) as unknown },
    ])
  })

  it('sends nothing when the secrets cannot be handed over', async () => {
    const handOverSecrets = (): Promise<void> => Promise.reject(new Error('no key'))
    await expect(launch(input(), 1, place.verbs({ handOverSecrets }))).rejects.toThrow('no key')
    expect(place.world.calls).toEqual([])
  })

  it('gives a machine that lives on grants a first lease that its first grant outlives', async () => {
    const from = input()
    const { leaseMs, drainMs, powerOffMs } = from.order.runner
    const leaseWhen = async (holdsForMs: number): Promise<unknown> => {
      const order = { ...from.order, jobId: `${from.order.jobId}-${holdsForMs}` }
      await launch(
        { ...from, order },
        1,
        place.verbs({ grants: { ...NO_GRANTS, learnHoldsForMs: async () => holdsForMs } }),
      )
      return (await place.read<RunnerOrder>(layout.order(order.jobId, 1)))?.leaseMs
    }
    expect(await leaseWhen(Infinity)).toBe(leaseMs)
    expect(await leaseWhen(60_000)).toBe(60_000 - drainMs - powerOffMs)
  })

  it('buys nothing for which there would be no grant, or none that a drain fits into', async () => {
    const refused = new BackendError({ class: 'transient', message: 'no token service' })
    const refusing = place.verbs({ grants: { ...NO_GRANTS, learnHoldsForMs: () => Promise.reject(refused) } })
    await expect(launch(input(), 1, refusing)).rejects.toMatchObject({
      type: 'transient',
      nonRetryable: false,
    })
    const short = place.verbs({ grants: { ...NO_GRANTS, learnHoldsForMs: async () => QUICK.drainMs } })
    await expect(launch(input(), 1, short)).rejects.toMatchObject({ type: 'invalid' })
    expect(place.world.calls).toEqual([])
  })

  it('sends nothing when the store does not answer, and may be tried again', async () => {
    await place.storeDown()
    await expect(launch(input())).rejects.toMatchObject({ type: 'transient', nonRetryable: false })
    expect(place.world.calls).toEqual([])
  })

  it('sent again makes no second machine where the provider knows its token', async () => {
    const from = input()
    const first = await launch(from)
    expect(await launch(from, 2)).toEqual(first)
    expect(place.world.machines).toHaveLength(1)
  })

  it('buys nothing for an attempt that is over, as when its workflow was reset', async () => {
    const from = input()
    await launch(from)
    const end = { kind: 'succeeded' } as const
    const settlement: Settlement = { end, handle: null, costMicroUsd: 0, artifacts: [], phases: [] }
    const entry = { seq: 4, atMs: 1, attempt: 1, summary: '', data: settlement }
    await putRecord(place.store, from.order.jobId, { ...entry, kind: 'settled' })
    expect(await launch(from)).toMatchObject({ kind: 'refused', failure: { class: 'transient' } })
    expect(place.world.callsOf('launch')).toHaveLength(1)
  })

  it('buys nothing for a job that ended before this step, as when a reset forgot that it was cancelled', async () => {
    const from = input()
    const data = { id: from.order.jobId }
    const entry = partialEntry({ seq: 3, atMs: 1, kind: 'finished', summary: '', data })
    await putRecord(place.store, from.order.jobId, entry)
    await expect(launch(from)).rejects.toMatchObject({ type: 'invalid', nonRetryable: true })
    expect(place.world.callsOf('launch')).toEqual([])
  })

  it('is not sent again where it would buy a second machine: it is looked for', async () => {
    await anew({ idempotency: 'tag' })
    const from = input()
    place.world.faults.add('launch', { kind: 'loses-answer', hasEffect: true, findAfterMs: 5 })
    expect(await launch(from)).toEqual({ kind: 'unconfirmed', findAfterMs: 5 })
    expect(await launch(from, 2)).toEqual({ kind: 'unconfirmed', findAfterMs: 0 })
    expect(place.world.callsOf('launch')).toHaveLength(1)
  })

  it.each(['capacity', 'quota'] as const)('answers that it was refused: %s', async (failureClass) => {
    const failure = { class: failureClass, message: 'no' }
    place.world.faults.add('launch', { kind: 'refuses', failure })
    const from = input()
    expect(await launch(from)).toEqual({ kind: 'refused', failure })
    expect(await machineOf(from.order)).toBeUndefined()
  })

  it.each([
    ['auth', true],
    ['invalid', true],
    ['throttled', false],
    ['transient', false],
  ] as const)('fails as the provider failed: %s', async (failureClass, nonRetryable) => {
    place.world.faults.add('launch', { kind: 'throws', failure: { class: failureClass, message: 'no' } })
    await expect(launch(input())).rejects.toMatchObject({ type: failureClass, nonRetryable })
  })

  it('that hangs is answered as unknown, when it has to stop waiting', async () => {
    place.world.faults.add('launch', { kind: 'hangs', hasEffect: true })
    const env = surroundings()
    const launching = env.run((one) => place.verbs().launch(one), input())
    await until(() => place.world.machines.length === 1)
    env.cancel()
    expect(await launching).toMatchObject({ kind: 'unconfirmed' })
  })
})

describe('find', () => {
  const find = (order: Order) => perform(place.verbs(), 'find', { order })

  it('answers the machine, and puts on file which it is', async () => {
    const { order, handle } = place.launched()
    expect(await find(order)).toEqual({ kind: 'found', handles: [handle] })
    expect(await machineOf(order)).toEqual(handle)
  })

  it('answers that no machine exists, and that this is not known yet', async () => {
    await anew({ idempotency: 'tag' })
    expect(await find(place.order())).toEqual({ kind: 'absent' })
    place.world.freezeLists(60_000)
    expect(await find(place.order())).toMatchObject({ kind: 'unsettled' })
    expect(place.world.callsOf('launch')).toEqual([])
  })

  it('sends an order again whose token is recognised, instead of waiting for lists that lag', async () => {
    const { order, handle } = place.launched()
    place.world.freezeLists(60_000)
    expect(await find(order)).toEqual({ kind: 'found', handles: [handle] })
    expect(await machineOf(order)).toEqual(handle)
    const lost = place.order()
    expect(await find(lost)).toMatchObject({ kind: 'found' })
    expect(place.world.machinesOf(lost.attemptId)).toHaveLength(1)
    place.world.faults.add('launch', { kind: 'loses-answer', hasEffect: false, findAfterMs: 0 })
    expect(await find(place.order())).toMatchObject({ kind: 'unsettled' })
    place.world.faults.add('launch', { kind: 'refuses', failure: { class: 'capacity', message: 'none' } })
    expect(await find(place.order())).toEqual({ kind: 'absent' })
  })

  it('repeats no order of an attempt that must stop, as after its settlement: it only looks', async () => {
    const lost = place.order()
    await place.store.put(layout.drain(lost.jobId, 1), JSON.stringify({ reason: 'superseded', windowMs: 0 }))
    place.world.freezeLists(60_000)
    expect(await find(lost)).toMatchObject({ kind: 'unsettled' })
    expect(place.world.callsOf('launch')).toEqual([])
  })

  describe('of several machines for one order', () => {
    let order: Order
    let first: MachineHandle
    let second: MachineHandle

    beforeEach(async () => {
      await anew({ idempotency: 'tag' })
      const launched = place.launched()
      order = launched.order
      first = launched.handle
      second = place.world.duplicate(order).handle
      // The provider's list is in no order, and clocks of providers are coarse.
      second.launchedAtMs = first.launchedAtMs - 1_000
    })

    const claim = (machine: string) => place.store.put(claimKey(), JSON.stringify({ machine }))
    const claimKey = () => layout.claim(order.jobId, 1)
    const claimantOf = async () => (await place.read<Claim>(claimKey()))?.machine

    it('keeps the oldest, and has ended the others before it answers', async () => {
      expect(await find(order)).toEqual({ kind: 'found', handles: [second] })
      expect(place.lives()).toEqual(['gone', 'alive'])
      expect(await machineOf(order)).toEqual(second)
    })

    it('keeps the one that has claimed the attempt, however young', async () => {
      await claim(first.id)
      expect(await find(order)).toEqual({ kind: 'found', handles: [first] })
      expect(place.lives()).toEqual(['alive', 'gone'])
    })

    it('claims the attempt for the one that it keeps, before it ends another', async () => {
      place.world.faults.add('terminate', { kind: 'throws', failure: { class: 'transient', message: 'no' } })
      await expect(find(order)).rejects.toMatchObject({ type: 'transient' })
      expect(await claimantOf()).toBe(second.id)
      expect(place.lives()).toEqual(['alive', 'alive'])
    })

    it('keeps the one that claims the attempt while that is made up', async () => {
      const { store } = place
      const putIfAbsent = store.putIfAbsent.bind(store)
      const quicker = jest.spyOn(store, 'putIfAbsent').mockImplementationOnce(async (key, body) => {
        await claim(first.id)
        return putIfAbsent(key, body)
      })
      expect(await find(order)).toEqual({ kind: 'found', handles: [first] })
      expect(quicker.mock.calls[0]![0]).toBe(claimKey())
      expect(place.lives()).toEqual(['alive', 'gone'])
    })

    it('ends them all where none of them will ever work, and looks again for the one that does', async () => {
      await claim('m-77')
      expect(await find(order)).toEqual({ kind: 'unsettled', againInMs: expect.any(Number) })
      expect(place.lives()).toEqual(['gone', 'gone'])
      expect(await find(order)).toEqual({ kind: 'absent' })
      expect(await machineOf(order)).toBeUndefined()
    })

    it.each(['unnamed-0123456789abcdef0123456789abcdef', 'two words'])(
      'keeps the oldest if it is unknown which has claimed it: %s',
      async (machine) => {
        await claim(machine)
        expect(await find(order)).toEqual({ kind: 'found', handles: [second] })
        expect(await claimantOf()).toBe(machine)
      },
    )

    describe('that do not know their ids', () => {
      beforeEach(async () => {
        await anew({ idempotency: 'tag', claimsBy: 'send' })
        order = place.order()
        first = place.world.duplicate(order, { send: `${order.attemptId}-s1` }).handle
        second = place.world.duplicate(order, { send: `${order.attemptId}-s2` }).handle
        second.launchedAtMs = first.launchedAtMs - 1_000
      })
      const unnamed = `unnamed-${'0123456789abcdef'.repeat(2)}`
      const claimBy = (send: string): Promise<void> =>
        place.store.put(claimKey(), JSON.stringify({ machine: unnamed, send }))

      it('keeps the one whose send has claimed the attempt, however young', async () => {
        await claimBy(first.send!)
        expect(await find(order)).toEqual({ kind: 'found', handles: [first] })
        expect(place.lives()).toEqual(['alive', 'gone'])
      })

      it('keeps the oldest, and puts no claim that two machines of one send would take for theirs', async () => {
        expect(await find(order)).toEqual({ kind: 'found', handles: [second] })
        expect(place.lives()).toEqual(['gone', 'alive'])
        expect(await claimantOf()).toBeUndefined()
      })

      it('ends the oldest, too, where another one claimed the attempt before it was ended', async () => {
        const provider = place.backend
        const backend: Backend = {
          ...provider,
          terminate: async (machine, ctx) => {
            if (machine.id === first.id) await claimBy(first.send!)
            return provider.terminate(machine, ctx)
          },
        }
        const answers = []
        for (let looks = 0; looks < 3; looks++)
          answers.push((await perform(place.verbs({ backend }), 'find', { order })).kind)
        expect(answers).toEqual(['unsettled', 'unsettled', 'absent'])
        expect(place.lives()).toEqual(['gone', 'gone'])
        expect(await machineOf(order)).toBeUndefined()
      })

      it('ends them all where the one that works is none of them', async () => {
        await claimBy(`${order.attemptId}-s3`)
        expect(await find(order)).toMatchObject({ kind: 'unsettled' })
        expect(place.lives()).toEqual(['gone', 'gone'])
      })
    })

    it('lets none but the one that it keeps work, should others begin before they are ended', async () => {
      await place.dispose()
      const capabilities = { idempotency: 'tag', runnerStart: 'after-launch' } as const
      place = await Place.make({ capabilities, behave: () => ({}) })
      order = place.order()
      const issued = { ...order.runner, issuedAtMs: place.now() }
      await place.store.put(layout.order(order.jobId, 1), JSON.stringify(issued))
      const oldest = place.world.machine(place.launched(order).handle.id)!
      const younger = place.world.duplicate(order)
      await until(() => place.world.machines.every(({ state }) => state === 'running'))
      place.world.faults.add('terminate', { kind: 'throws', failure: { class: 'transient', message: 'no' } })
      await expect(find(order)).rejects.toMatchObject({ type: 'transient' })
      younger.start()
      await until(() => younger.state === 'gone')
      oldest.start()
      await until(() => oldest.workedFromMs !== undefined)
      expect(younger.workedFromMs).toBeUndefined()
      expect(await find(order)).toEqual({ kind: 'found', handles: [oldest.handle] })
    })

    it('does not answer before the provider confirms the end of the others', async () => {
      place.world.faults.add('terminate', { kind: 'ignored' })
      expect(await find(order)).toEqual({ kind: 'found', handles: [second] })
      expect(place.world.callsOf('terminate')).toHaveLength(2)
      expect(place.lives()).toEqual(['gone', 'alive'])
    })

    it('ends none while it is not known who works', async () => {
      await place.storeDown()
      await expect(find(order)).rejects.toMatchObject({ type: 'transient' })
      expect(place.world.callsOf('terminate')).toEqual([])
    })
  })
})

describe('start', () => {
  it('starts the runner where that is ours to do, and says so when the machine cannot take it yet', async () => {
    await place.dispose()
    place = await Place.make({
      capabilities: { runnerStart: 'after-launch' },
      bootMs: 50,
      behave: () => ({}),
    })
    const launched = place.launched()
    const start = () => perform(place.verbs(), 'start', launched)
    await expect(start()).rejects.toMatchObject({ type: 'transient', nonRetryable: false })
    await until(() => place.world.machines[0]!.state === 'running')
    await start()
    await start()
    expect(place.world.machines[0]!.starts).toBe(1)
  })

  it('does nothing where the launch has started it', async () => {
    await perform(place.verbs(), 'start', place.launched())
    expect(place.world.callsOf('start')).toEqual([])
  })
})

describe('telling a machine to drain', () => {
  const drain = { reason: 'cancelled', windowMs: 1_000 } as const
  /** The provider's calls, and their results. */
  async function tell(launched: ReturnType<Place['launched']>, patienceMs = 0, more: Partial<Drain> = {}) {
    const told: unknown[] = []
    const backend = { ...place.backend, drain: async (...[, how]: unknown[]) => void told.push(how) }
    const input = { ...launched, drain: { ...drain, ...more }, patienceMs }
    const answer = await perform(place.verbs({ backend }), 'drainMachine', input)
    return { told, answer }
  }

  it('is done by the document, which a runner that drains has read', async () => {
    const launched = place.launched()
    await place.beat(launched.order, { phase: 'draining' })
    expect(await tell(launched, 60_000)).toEqual({ told: [], answer: { isOnRecord: true } })
    const { jobId, attempt } = launched.order
    expect(await place.read(layout.drain(jobId, attempt))).toMatchObject(drain)
  })

  it('with a shorter window is done by the document only where the runner still beats', async () => {
    const launched = place.launched()
    await place.beat(launched.order, { phase: 'draining', seq: 7 })
    const { told } = await tell(launched, 10, { seq: 2 })
    expect(told).toMatchObject([{ seq: 2, reason: drain.reason }])
    const { jobId, attempt } = launched.order
    expect(await place.read(layout.shorterDrain(jobId, attempt, 2))).toMatchObject(drain)

    const telling = tell(launched, 60_000, { seq: 3 })
    await until(async () => (await place.store.head(layout.shorterDrain(jobId, attempt, 3))) !== undefined)
    await place.beat(launched.order, { phase: 'draining', seq: 8 })
    expect((await telling).told).toEqual([])
  })

  it('waits for the runner, and then goes by the provider', async () => {
    const launched = place.launched()
    await place.beat(launched.order, { phase: 'running' })
    const { told, answer } = await tell(launched, 10)
    expect(told).toMatchObject([{ reason: drain.reason, requestedAtMs: expect.any(Number) }])
    // The rest of the window: the machine is not ended in the middle of it.
    const [{ windowMs }] = told as [{ windowMs: number }]
    expect(windowMs).toBeGreaterThan(0)
    expect(windowMs).toBeLessThanOrEqual(drain.windowMs - 10)
    expect(answer).toEqual({ isOnRecord: true })
  })

  it('goes by the provider at once where the store takes nothing, and says so', async () => {
    const launched = place.launched()
    const restore = await place.storeDown()
    const { told, answer } = await tell(launched, 60_000)
    expect(told).toMatchObject([{ reason: drain.reason }])
    expect(answer).toEqual({ isOnRecord: false })
    await restore()
  })

  it('is the document alone where the backend has no way', async () => {
    const input = { ...place.launched(), drain, patienceMs: 0 }
    expect(await perform(place.verbs(), 'drainMachine', input)).toEqual({ isOnRecord: true })
  })
})

describe('offers', () => {
  it('are those of the backend, with its name and what it can do', async () => {
    const answer = received(await perform(place.verbs(), 'offers', { request: {} }))
    expect(answer).toMatchObject({ backend: 'scripted', capabilities: place.world.capabilities })
    expect(answer.offers.map(({ type }) => type)).toEqual(['v100'])
  })

  it('are sent in less than Temporal takes, however many they are, and arrive unchanged', async () => {
    const offers = Array.from({ length: 4 * OFFERS }, (_, index) => detailed(index))
    const answer = { backend: 'scripted', capabilities: place.world.capabilities, offers }
    expect(Buffer.byteLength(JSON.stringify(answer))).toBeGreaterThan(2 * 2 ** 20)
    jest.spyOn(place.backend, 'offers').mockResolvedValue(offers)
    const answered = await perform(place.verbs(), 'offers', { request: {} })
    expect(Buffer.byteLength(JSON.stringify(answered))).toBeLessThan(2 ** 20)
    expect(received(answered)).toEqual(answer)
  })
})
