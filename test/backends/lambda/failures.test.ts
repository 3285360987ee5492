/** Lambda in trouble: running jobs continue, and no trouble makes a second machine. */
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { findMachine } from '../../../activities/machine/backend-machines'
import { sendOnce, type SendingDeps } from '../../../activities/machine/sending'
import type { Backend } from '../../../backends/backend'
import { failureOf } from '../../../backends/errors'
import type { LaunchRequest } from '../../../backends/lambda/api'
import type { FindOutcome, LaunchOutcome } from '../../../core/activities'
import type { MachineHandle } from '../../../core/handle'
import type { Order } from '../../../core/job/plan'
import { sendNameOf } from '../../../core/queues'
import { CLOCK_SLACK_MS, SECOND_MS } from '../../../core/time/time'
import { Ages } from '../../../core/time/ages'
import { FaultProxy, type Fault } from '../../support/fault-proxy'
import { parametersOfUserData } from '../../support/user-data'
import { patiently } from '../harness'
import { watchAnHour } from '../hour-down'
import { LambdaHarness } from './harness'

let h: LambdaHarness
let proxy: FaultProxy
let deps: SendingDeps
beforeEach(async () => {
  h = await LambdaHarness.make({ isOnPaper: true })
  proxy = await FaultProxy.open(h.config.endpoint)
  const endpoint = `${proxy.url}${new URL(h.config.endpoint).pathname}`
  h.backend = await h.reopen({ endpoint, staleForMs: 0 })
  deps = {
    backend: h.backend,
    store: h.store,
    now: Date.now,
    ages: new Ages({ now: Date.now, monotonicMs: Date.now }),
  }
})
afterEach(async () => {
  await proxy.close()
  await h.dispose()
})

const answer = (status: number, code = ''): (() => void) => always({ kind: 'answer', status, code })
const always = (fault: Fault) => (): void => void proxy.rules.push({ match: '', fault, times: Infinity })
const TROUBLES: [string, () => unknown][] = [
  ['cannot be reached', () => proxy.goDown()],
  ['does not answer', always({ kind: 'lost-answer' })],
  ['answers that a service behind it is down', answer(503)],
  ['has a firewall that refuses us', answer(403)],
]
const recover = async (): Promise<void> => {
  proxy.rules.length = 0
  await proxy.comeUp()
}
const launchesOf = (order: Order): unknown[] => h.launchesOf(order.attemptId)

describe('a launch whose time is over', () => {
  it('is not sent, though no timer has told so yet', async () => {
    const late = { ...patiently(), send: 'send-1', isLate: () => true }
    await expect(h.backend.launch(await h.order(), late)).rejects.toMatchObject({
      failure: { class: 'transient' },
    })
    expect(h.launchesSent()).toBe(0)
  })
})

describe('a job whose provider is down for an hour', () => {
  it.each(TROUBLES)('continues where Lambda %s', async (_, trouble) => {
    const order = await h.order()
    const handle = await launchedOf(order)
    let asked = 0
    const backend: Backend = {
      ...h.backend,
      observe: (handles, ctx) => {
        asked++
        return h.backend.observe(handles, ctx)
      },
    }
    const watched = { backend, store: h.store, order, handle, asked: () => asked, trouble, recover }
    const { told, during, end } = await watchAnHour(watched)
    expect(told).toEqual([expect.any(String), undefined])
    expect(during).toBeUndefined()
    expect(end).toEqual({ kind: 'over', end: { kind: 'succeeded' } })
    expect(h.instancesOf(order.attemptId)).toHaveLength(1)
  })

  async function launchedOf(order: Order): Promise<MachineHandle> {
    const send = sendNameOf(order.attemptId, 1)
    const outcome = await h.backend.launch(order, { ...patiently(), send })
    if (outcome.kind !== 'launched') throw new Error(outcome.kind)
    return outcome.handle
  }
})

describe('a launch while Lambda', () => {
  const launch = (order: Order): Promise<LaunchOutcome> => sendOnce(deps, order, patiently().signal)
  const look = (order: Order): Promise<FindOutcome> => findMachine(deps, order, patiently().signal)

  it.each(TROUBLES)('%s fails with what to do, and makes one machine once it answers', async (_, trouble) => {
    const order = await h.order()
    await trouble()
    for (let tries = 0; tries < 3; tries++) {
      const failure = failureOf(await launch(order).catch((thrown: unknown) => thrown))
      expect(failure).toMatchObject({ message: expect.any(String), hint: expect.stringMatching(/\S+ \S+/) })
    }
    expect(launchesOf(order)).toEqual([])
    await recover()
    expect(await launch(order)).toMatchObject({ kind: 'launched' })
    expect(await launch(order)).toMatchObject({ kind: 'launched' })
    expect(h.instancesOf(order.attemptId)).toHaveLength(1)
  })

  it('goes down before it has answered is looked up, and not sent again', async () => {
    const order = await h.order()
    h.loseNextAnswer()
    expect(await launch(order)).toMatchObject({ kind: 'unconfirmed' })
    always({ kind: 'lost-answer' })()
    await expect(look(order)).rejects.toMatchObject({ failure: { class: 'transient' } })
    expect(await launch(order)).toMatchObject({ kind: 'unconfirmed' })
    await recover()
    expect(await look(order)).toMatchObject({ kind: 'found', handles: [{ attemptId: order.attemptId }] })
    expect(await launch(order)).toMatchObject({ kind: 'launched' })
    expect(launchesOf(order)).toHaveLength(1)
  })
})

it('an order that names several offers is not sent: it would try only one of them', async () => {
  const order = await h.order()
  const offers = [...order.offers, { ...order.offers[0]!, place: 'us-west-1' }]
  const launching = h.backend.launch(
    { ...order, offers },
    { ...patiently(), send: sendNameOf(order.attemptId, 1) },
  )
  await expect(launching).rejects.toMatchObject({ failure: { class: 'invalid' } })
  expect(launchesOf(order)).toEqual([])
})

it('a machine waits for its runner no longer than its money pays for it', async () => {
  const order = await h.order()
  const budget = { microUsd: 200, priceMaxMicroUsdPerHour: 3_600 }
  const runner = { ...order.runner, limits: { seq: 0, deadlineAtMs: null, budget } }
  await h.backend.launch({ ...order, runner }, { ...patiently(), send: sendNameOf(order.attemptId, 1) })
  const [{ user_data: userData }] = h.launchesOf(order.attemptId) as [LaunchRequest]
  expect(parametersOfUserData(userData).giveUpSeconds).toBe(
    200 - (order.runner.powerOffMs + CLOCK_SLACK_MS) / SECOND_MS,
  )
})
