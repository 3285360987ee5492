/**
 * The contract of `backends/backend.ts`, one test per promise. Every backend passes all of it, but for promises about a trait
 * that it lacks, which are skipped by name. In the order of the interface:
 *
 * traits
 *    are those that the backend has
 * all verbs
 *    answer promptly and never wait for a machine
 *    stop when the caller leaves
 *    throw nothing but BackendError
 *    send a mutating call once and leave retries to the caller
 * check
 *    is silent when nothing stands in the way, and changes nothing
 *    names the obstacle and how to fix it, and does not throw
 * offers (`offers-contract.ts`)
 * launch
 *    yields a machine as soon as it is accepted, with what was really bought
 *    yields one machine however often and from wherever the order is sent at once
 *    yields the same machine later, also to another process
 *    yields no second machine after the first has ended
 *    refuses only when certainly nothing was bought, or lets the machine wait free of charge
 *    is unconfirmed when the result is unknown, and find settles it
 *    tags a machine from its first moment
 *    tells a machine its own id, or the name of its send, by which it claims the attempt
 *    shows the name of its send, where no token is recognised
 *    yields one machine where its caller did not wait for the answer
 * hand-over (`hand-over-contract.ts`)
 * find
 *    is absent, certainly, for an attempt that has no machine
 *    finds every machine of an attempt, duplicates too, the oldest first
 *    waits while a request may still have its effect, where no token is recognised
 *    does not count ended machines
 * start
 *    waits for the machine, and repeating it is harmless
 * observe
 *    answers each handle, in order, also those of machines that are gone or were never there
 *    shows a launch that waits as queued, free of charge, until it begins
 *    takes any number of handles in one call
 * terminate
 *    ends a machine with everything that runs on it, and its bill where that takes a call
 *    ends a launch that waits, which then never begins
 *    ends no machine of another attempt than its handle says
 *    takes absence for success and may be repeated for ever
 *    shows in observe when it is done
 * list
 *    has everything of a deployment that still costs, and nothing else
 *    has nothing of another deployment
 * logs
 *    can be read to their end
 * interrupt
 *    takes a machine back at once
 *    takes a machine back when its notice has run out
 */
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import type { Backend, LogPage } from '../../backends/backend'
import type { Observation } from '../../core/observation'
import type { MachineHandle } from '../../core/handle'
import type { Order } from '../../core/job/plan'
import { until } from '../support/until'
import { describeOffers } from './offers-contract'
import { deedsOn } from './deeds'
import { describeHandOvers } from './hand-over-contract'
import { LACKS, patiently, settled, type Harness, type Traits } from './harness'
import { sendNameOf } from '../../core/queues'
import { newJobId } from './orders'
import { patient } from '../support/patience'

/** No verb may take longer, however slow the machine; a machine of a real provider takes minutes. */
const PROMPT_MS = patient(10_000)

/** Some providers tell instants in whole seconds. */
const stateOf = (look: Observation | undefined): string | undefined => look?.state
const thisSecond = (): number => Math.floor(Date.now() / 1_000) * 1_000

export function describeBackend(name: string, traits: Traits, makeHarness: () => Promise<Harness>): void {
  /** Registers a test, or where the backend lacks the trait a skipped one whose name says why. */
  const where =
    (trait: keyof typeof LACKS) =>
    (test: string, run: () => Promise<void>): void =>
      traits[trait] ? it(test, run) : it.skip(`${test} (${LACKS[trait]})`, run)

  describe(`${name} keeps the promises of a backend:`, () => {
    let h: Harness
    let backend: Backend
    beforeEach(async () => {
      h = await makeHarness()
      backend = h.backend
    })
    afterEach(() => h.dispose())

    const { confirmsEnds } = traits
    /** Where an end is only requested, a machine may run on for a while after it is shown as gone. */
    const untilEnded = async (attemptId: string): Promise<void> => {
      if (!confirmsEnds) await until(async () => (await h.runningOf(attemptId)) === 0)
      expect(await h.runningOf(attemptId)).toBe(0)
    }

    const { send, launch, find, observe, untilGone, begin, claimantOf, owned, everyVerb, waitsFreeOfCharge } =
      deedsOn(() => h)
    const handleTo = (id: string): MachineHandle => ({
      backend: backend.name,
      kind: 'machine',
      id,
      data: h.handleData,
      attemptId: id,
      realised: { capacityType: 'on-demand', type: '', place: '', priceMicroUsdPerHour: 0 },
      launchedAtMs: 0,
    })

    describe('traits', () => {
      it('are those that the backend has', async () => {
        const order = await h.order()
        expect(await find(order.attemptId)).toEqual([])
        const { idempotency, runnerStart, capacityTypes, queues = false, ends } = backend.capabilities
        expect({
          queues,
          billsUntilCalled: backend.capabilities.billsUntil === 'terminate',
          confirmsEnds: ends !== 'requested',
          looksForTags: idempotency === 'tag',
          startsLater: [runnerStart === 'after-launch', backend.start !== undefined],
          keepsLogs: backend.logs !== undefined,
          takesHandOvers: h.handOvers !== undefined,
          interruptsMachines: backend.interrupt !== undefined && capacityTypes.includes('spot'),
        }).toEqual({
          ...traits,
          startsLater: [traits.startsLater, traits.startsLater],
          tellsEnds: undefined,
          duplicatesAre: undefined,
        })
      })
    })

    describe('all verbs', () => {
      it('answer promptly and never wait for a machine', async () => {
        const order = await h.order({ isStuck: true })
        const startedMs = performance.now()
        const handle = await launch(order)
        expect(await find(order.attemptId)).toHaveLength(1)
        expect((await observe(handle)).state).not.toBe('gone')
        expect(await owned(order.deployment)).toEqual([handle.id])
        await backend.terminate(handle, patiently())
        expect(performance.now() - startedMs).toBeLessThan(PROMPT_MS)
      })

      it('stop when the caller leaves', async () => {
        const order = await h.order()
        const gone = { signal: AbortSignal.abort() }
        await Promise.all(
          everyVerb(order, handleTo(order.attemptId), gone).map((answer) =>
            expect(answer).rejects.toMatchObject({ name: 'BackendError' }),
          ),
        )
        expect(await find(order.attemptId)).toEqual([])
        h.stall()
        const caller = new AbortController()
        const launching = settled(send(order, { ctx: caller }))
        await until(() => h.launchesSent() === 1)
        caller.abort()
        const startedMs = performance.now()
        expect(await launching).toMatch(/^(?:unconfirmed|refused|BackendError)$/)
        expect(performance.now() - startedMs).toBeLessThan(PROMPT_MS)
      })

      it('throw nothing but BackendError', async () => {
        const order = await h.order()
        const strange = { ...order, attemptId: '../../strange', offers: [] }
        const answers = await Promise.all(
          everyVerb(strange, handleTo('../../strange'), patiently()).map(settled),
        )
        await h.breakDown()
        answers.push(
          ...(await Promise.all(everyVerb(order, handleTo(order.attemptId), patiently()).map(settled))),
        )
        expect(answers.filter((answer) => answer.endsWith('Error') && answer !== 'BackendError')).toEqual([])
      })

      it('send a mutating call once and leave retries to the caller', async () => {
        const order = await h.order()
        h.failNextLaunch()
        expect(await settled(send(order))).toBe('BackendError')
        expect(h.launchesSent()).toBe(1)
        expect(await find(order.attemptId)).toEqual([])
        await launch(order)
        expect(h.launchesSent()).toBe(2)
      })
    })

    describe('check', () => {
      it('is silent when nothing stands in the way, and changes nothing', async () => {
        const order = await h.order()
        await launch(order)
        const before = [await owned(order.deployment), await h.startsOf(order.attemptId)]
        const problems = await backend.check(patiently())
        expect(problems.filter((problem) => problem.severity === 'error')).toEqual([])
        expect([await owned(order.deployment), await h.startsOf(order.attemptId)]).toEqual(before)
        expect(before).toEqual([[expect.any(String)], 1])
      })

      it('names the obstacle and how to fix it, and does not throw', async () => {
        await h.breakDown()
        const problems = await backend.check(patiently())
        expect(problems.some((problem) => problem.severity === 'error')).toBe(true)
        for (const { message, remedy } of problems) {
          expect(message).toMatch(/\S/)
          expect(remedy).toMatch(/\S/)
        }
      })
    })

    describeOffers(() => h)

    describe('launch', () => {
      it('yields a machine as soon as it is accepted, with what was really bought', async () => {
        for (const capacityType of backend.capabilities.capacityTypes) {
          const order = await h.order({ capacityType })
          const beforeMs = thisSecond()
          const handle = await launch(order)
          expect(handle).toMatchObject({ backend: backend.name, kind: 'machine', attemptId: order.attemptId })
          expect(handle.realised.capacityType).toBe(capacityType)
          expect(handle.realised.reservationId).toBe(order.offers[0]!.reservationId)
          expect(handle.realised.priceMicroUsdPerHour).toBeLessThanOrEqual(order.priceMaxMicroUsdPerHour)
          expect(order.offers).toContainEqual(
            expect.objectContaining({ type: handle.realised.type, place: handle.realised.place }),
          )
          expect(handle.launchedAtMs).toBeGreaterThanOrEqual(beforeMs)
          expect(handle.launchedAtMs).toBeLessThanOrEqual(Date.now())
          expect(JSON.parse(JSON.stringify(handle))).toEqual(handle)
        }
      })

      it('yields one machine however often and from wherever the order is sent at once', async () => {
        const order = await h.order()
        const other = await h.reopen()
        const handles = await Promise.all(
          [backend, other, backend, other, backend].map((by) => launch(order, by)),
        )
        expect(new Set(handles.map((handle) => handle.id)).size).toBe(1)
        expect(await find(order.attemptId)).toHaveLength(1)
        expect(await h.startsOf(order.attemptId)).toBe(1)
      })

      it('yields the same machine later, also to another process', async () => {
        const order = await h.order()
        const handle = await launch(order)
        expect(await h.startsOf(order.attemptId)).toBe(1)
        expect(await launch(order)).toEqual(handle)
        expect(await launch(order, await h.reopen())).toEqual(handle)
        expect(await h.startsOf(order.attemptId)).toBe(1)
      })

      it('yields no second machine after the first has ended', async () => {
        const order = await h.order()
        const handle = await launch(order)
        expect(await h.startsOf(order.attemptId)).toBe(1)
        await backend.terminate(handle, patiently())
        await untilGone(handle)
        h.forgetEnded?.()
        for (const by of [backend, await h.reopen()]) {
          const outcome = await send(order, { by })
          if (outcome.kind === 'launched') expect(outcome.handle).toEqual(handle)
          else expect(outcome.kind).toBe('refused')
        }
        expect(await find(order.attemptId)).toEqual([])
        await untilEnded(order.attemptId)
        expect(await h.startsOf(order.attemptId)).toBe(1)
      })

      it('refuses only when certainly nothing was bought, or lets the machine wait free of charge', async () => {
        const order = await h.order()
        await h.fill()
        const outcome = await send(order)
        if (traits.queues && outcome.kind === 'launched') return waitsFreeOfCharge(order, outcome)
        expect(outcome).toMatchObject({
          kind: 'refused',
          failure: { class: 'capacity', message: expect.any(String) },
        })
        expect(await find(order.attemptId)).toEqual([])
        expect(await owned(order.deployment)).toEqual([])
        await untilEnded(order.attemptId)
      })

      it('is unconfirmed when the result is unknown, and find settles it', async () => {
        const order = await h.order()
        const isLost = h.loseNextAnswer()
        const outcome = await send(order)
        expect(outcome.kind).toBe(isLost ? 'unconfirmed' : 'launched')
        const found = await find(order.attemptId)
        expect(found).toHaveLength(1)
        expect(await launch(order)).toEqual(found[0])
        expect(await h.startsOf(order.attemptId)).toBe(1)
      })

      it('tags a machine from its first moment', async () => {
        const order = await h.order()
        h.loseNextAnswer()
        await send(order)
        const { deployment, jobId, attemptId } = order
        const resources = await backend.list(deployment, patiently())
        expect(resources.map((resource) => resource.owner)).toEqual([{ deployment, jobId, attemptId }])
      })

      it('tells a machine its own id, or the name of its send, by which it claims the attempt', async () => {
        const order = await h.order()
        const handle = await launch(order)
        await begin(handle, order)
        expect(await claimantOf(order, [handle])).toBe(handle)
      })

      it('shows the name of its send, where no token is recognised', async () => {
        const order = await h.order()
        const handle = await launch(order)
        expect(handle.send).toBe(traits.looksForTags ? sendNameOf(order.attemptId, 1) : undefined)
        expect(await find(order.attemptId)).toEqual([handle])
      })

      where('looksForTags')('yields one machine where its caller did not wait for the answer', async () => {
        const order = await h.order()
        h.stall()
        const caller = new AbortController()
        const sending = send(order, { ctx: caller })
        await until(async () => (await h.runningOf(order.attemptId)) === 1)
        caller.abort()
        expect(await sending).toMatchObject({ kind: 'unconfirmed' })
        expect(await launch(order, await h.reopen())).toMatchObject({ attemptId: order.attemptId })
        expect(await h.startsOf(order.attemptId)).toBe(1)
        expect(h.launchesSent()).toBe(1)
      })
    })

    describeHandOvers(() => h, where('takesHandOvers'))

    describe('find', () => {
      it('is absent, certainly, for an attempt that has no machine', async () => {
        expect(await find(`${newJobId()}-1`)).toEqual([])
      })

      it('finds every machine of an attempt, duplicates too, the oldest first', async () => {
        const order = await h.order()
        const handle = await launch(order)
        expect(await find(order.attemptId)).toEqual([handle])
        // Its runner has claimed the attempt, so that the second one comes second.
        await begin(handle, order)
        expect(await h.startsOf(order.attemptId)).toBe(1)
        const before = await h.runningOf(order.attemptId)
        await h.duplicate(order)
        expect(await h.runningOf(order.attemptId)).toBeGreaterThan(before)
        const found = await find(order.attemptId)
        expect(found[0]).toEqual(handle)
        expect(found).toHaveLength(traits.duplicatesAre === 'machines' ? 2 : 1)
        for (const one of found) await begin(one, order)
        expect(found).toContain(await claimantOf(order, found))
        for (const one of found.toReversed()) {
          expect((await observe(handle)).state).not.toBe('gone')
          await backend.terminate(one, patiently())
          await untilGone(one)
        }
        await untilEnded(order.attemptId)
      })

      where('looksForTags')(
        'waits while a request may still have its effect, where no token is recognised',
        async () => {
          const { attemptId } = await h.order()
          const look = { ...patiently(), sentUntilMs: Date.now() + 60_000 }
          expect(await backend.find(attemptId, look)).toMatchObject({ kind: 'unsettled' })
          expect((await backend.find(attemptId, { ...look, sentUntilMs: 0 })).kind).toBe('absent')
        },
      )

      it('does not count ended machines', async () => {
        const order = await h.order()
        const handle = await launch(order)
        await backend.terminate(handle, patiently())
        await untilGone(handle)
        expect(await find(order.attemptId)).toEqual([])
      })
    })

    describe('start', () => {
      where('startsLater')('waits for the machine, and repeating it is harmless', async () => {
        const start = (to: MachineHandle, order: Order): Promise<void> =>
          backend.start!(to, order, patiently())
        const stuck = await h.order({ isStuck: true })
        const pending = await launch(stuck)
        await expect(start(pending, stuck)).rejects.toMatchObject({
          failure: { class: 'transient' },
        })
        const order = await h.order()
        const handle = await launch(order)
        await begin(handle, order)
        await start(handle, order)
        expect(await h.startsOf(order.attemptId)).toBe(1)
        expect((await observe(handle)).state).toBe('running')
      })
    })

    describe('observe', () => {
      it('answers each handle, in order, also those of machines that are gone or were never there', async () => {
        const order = await h.order()
        const handle = await launch(order)
        const ended = await launch(await h.order())
        await backend.terminate(ended, patiently())
        await untilGone(ended)
        // An hour old: lists may lack a new one.
        const unknown = {
          ...handle,
          id: `${newJobId()}-1`,
          launchedAtMs: handle.launchedAtMs - 3_600_000,
        }
        const observations = await (await h.reopen()).observe([unknown, handle, ended, handle], patiently())
        // It may not have begun yet.
        const soon: string[] = traits.queues ? ['pending', 'queued'] : ['pending']
        expect(observations.map(stateOf).map((state) => (soon.includes(state!) ? 'running' : state))).toEqual(
          ['gone', 'running', 'gone', 'running'],
        )
        expect(await backend.observe([], patiently())).toEqual([])
      })

      where('queues')('shows a launch that waits as queued, free of charge, until it begins', async () => {
        const release = h.holdQueue!()
        const order = await h.order()
        const handle = await launch(order)
        const queued = await observe(handle)
        expect(queued.state).toBe('queued')
        expect(queued.billedFromAtMs).toBeUndefined()
        expect(await find(order.attemptId)).toEqual([handle])
        expect(await observe(handle, await h.reopen())).toEqual(queued)
        const releasedAtMs = thisSecond()
        release()
        await until(async () => (await observe(handle)).state === 'running')
        const { billedFromAtMs = releasedAtMs } = await observe(handle)
        expect(billedFromAtMs).toBeGreaterThanOrEqual(releasedAtMs)
        expect(billedFromAtMs).toBeLessThanOrEqual(Date.now())
      })

      it('takes any number of handles in one call', async () => {
        const handles = Array.from({ length: 2_000 }, (_, at) => handleTo(`${newJobId()}-${at}`))
        const startedMs = performance.now()
        const observations = await backend.observe(handles, patiently())
        expect(performance.now() - startedMs).toBeLessThan(PROMPT_MS)
        expect(observations.map(stateOf)).toEqual(handles.map(() => 'gone'))
      })
    })

    describe('terminate', () => {
      it('ends a machine with everything that runs on it, and its bill where that takes a call', async () => {
        const order = await h.order()
        const handle = await launch(order)
        expect(await h.startsOf(order.attemptId)).toBe(1)
        expect(await h.runningOf(order.attemptId)).toBeGreaterThan(0)
        await (await h.reopen()).terminate(handle, patiently())
        if (traits.billsUntilCalled) expect(h.billedToMs!(order.attemptId)).toBeLessThanOrEqual(Date.now())
        await untilGone(handle)
        await untilEnded(order.attemptId)
      })

      where('queues')('ends a launch that waits, which then never begins', async () => {
        const release = h.holdQueue!()
        const handle = await launch(await h.order())
        await backend.terminate(handle, patiently())
        const gone = await untilGone(handle)
        expect(gone.billedFromAtMs).toBeUndefined()
        release()
        expect(await observe(handle)).toEqual(gone)
        expect(await h.runningOf(handle.attemptId)).toBe(0)
      })

      it('ends no machine of another attempt than its handle says', async () => {
        const handle = await launch(await h.order())
        const forged = { ...handle, attemptId: `${newJobId()}-1` }
        await expect(backend.terminate(forged, patiently())).rejects.toMatchObject({ class: 'invalid' })
        expect(stateOf(await observe(handle))).not.toBe('gone')
        await backend.terminate(handle, patiently())
      })

      it('takes absence for success and may be repeated for ever', async () => {
        await backend.terminate(handleTo(`${newJobId()}-1`), patiently())
        const handle = await launch(await h.order())
        await Promise.all([1, 2, 3].map(() => backend.terminate(handle, patiently())))
        await untilGone(handle)
        await backend.terminate(handle, patiently())
        await (await h.reopen()).terminate(handle, patiently())
      })

      it('shows in observe when it is done', async () => {
        const handle = await launch(await h.order())
        const beforeMs = thisSecond()
        await backend.terminate(handle, patiently())
        const observation = await untilGone(handle)
        if (confirmsEnds) expect(observation.cause).toBe('ended')
        expect(observation.endedAtMs !== undefined).toBe(traits.tellsEnds)
        const { endedAtMs = beforeMs } = observation
        expect(endedAtMs).toBeGreaterThanOrEqual(beforeMs)
        expect(endedAtMs).toBeLessThanOrEqual(Date.now())
        expect(await observe(handle, await h.reopen())).toEqual(observation)
      })
    })

    describe('list', () => {
      it('has everything of a deployment that still costs, and nothing else', async () => {
        const orders = [await h.order(), await h.order()]
        const handles = await Promise.all(orders.map((order) => launch(order)))
        expect((await owned('test')).sort()).toEqual(handles.map((handle) => handle.id).sort())
        await backend.terminate(handles[0]!, patiently())
        await until(async () => (await owned('test')).length === 1)
        expect(await owned('test')).toEqual([handles[1]!.id])
      })

      it('has nothing of another deployment', async () => {
        const others = await launch(await h.order({ deployment: 'others' }))
        const ours = await launch(await h.order())
        expect(await owned('test')).toEqual([ours.id])
        expect(await owned('others')).toEqual([others.id])
        expect(await owned('nobody')).toEqual([])
      })
    })

    describe('logs', () => {
      where('keepsLogs')('can be read to their end', async () => {
        const logs = (of: MachineHandle, cursor?: string): Promise<LogPage> =>
          backend.logs!(of, cursor, patiently())
        const handle = await launch(await h.order())
        let page = await logs(handle)
        for (let pages = 0; page.next !== undefined && pages < 100; pages++) {
          page = await logs(handle, page.next)
        }
        expect(page.next).toBeUndefined()
        expect(await logs(handleTo(`${newJobId()}-1`))).toEqual({ text: '' })
      })
    })

    describe('interrupt', () => {
      const spotMachine = async (): Promise<MachineHandle> => {
        const order = await h.order({ capacityType: 'spot' })
        const handle = await launch(order)
        expect(await h.startsOf(order.attemptId)).toBe(1)
        return handle
      }

      where('interruptsMachines')('takes a machine back at once', async () => {
        const handle = await spotMachine()
        await backend.interrupt!(handle, { noticeMs: null }, patiently())
        expect((await untilGone(handle)).cause).toBe('interrupted')
        await untilEnded(handle.attemptId)
        await backend.terminate(handle, patiently())
        expect((await observe(handle, await h.reopen())).cause).toBe('interrupted')
      })

      where('interruptsMachines')('takes a machine back when its notice has run out', async () => {
        const handle = await spotMachine()
        const beforeMs = Date.now()
        await backend.interrupt!(handle, { noticeMs: 1_000 }, patiently())
        const noticed = await observe(handle)
        expect(noticed.state).toBe('running')
        expect(noticed.noticeAtMs! - beforeMs).toBeGreaterThanOrEqual(1_000)
        const gone = await untilGone(handle)
        expect(gone.cause).toBe('interrupted')
        await untilEnded(handle.attemptId)
      })
    })
  })
}
