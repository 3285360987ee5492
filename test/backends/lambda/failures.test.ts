/** Lambda in trouble: running jobs continue, and no trouble makes a second machine. */
import { beforeEach, describe, expect, it } from '@jest/globals'
import { findMachine } from '../../../activities/machine/backend-machines'
import { sendOnce, type SendingDeps } from '../../../activities/machine/sending'
import { failureOf } from '../../../backends/errors'
import { HttpError } from '../../../backends/http'
import type { LaunchRequest } from '../../../backends/lambda/api'
import { bootReserveMs } from '../../../core/money/budget'
import type { FindOutcome, LaunchOutcome } from '../../../core/activities'
import type { MachineHandle } from '../../../core/handle'
import type { Order } from '../../../core/job/plan'
import { sendNameOf } from '../../../core/queues'
import { SECOND_MS } from '../../../core/time/time'
import { parametersOfUserData } from '../../support/user-data'
import { patiently } from '../harness'
import { watchAnHour } from '../hour-down'
import { lostAnswer, refusal } from './fake-api'
import { LambdaHarness } from './harness'

let h: LambdaHarness
let deps: SendingDeps
beforeEach(() => {
  h = new LambdaHarness()
  deps = { backend: h.backend, store: h.store, now: Date.now }
})

const TROUBLES: [string, () => HttpError][] = [
  ['cannot be reached', () => new HttpError('Lambda did not answer: ENOTFOUND', { reach: 'unsent' })],
  ['answers too slowly', lostAnswer],
  ['answers that a service behind it is down', () => refusal(503, 'provider/internal-unavailable')],
  [
    'has a firewall that refuses us',
    () => new HttpError('Lambda answered 403', { reach: 'answered', status: 403 }),
  ],
]
const goDown = (error: () => HttpError): void => void h.lambda.before.set('*', () => Promise.reject(error()))
const recover = (): void => h.lambda.before.clear()

describe('a launch whose time is over', () => {
  it('is not sent, though no timer has told so yet', async () => {
    const late = { ...patiently(), send: 'send-1', isLate: () => true }
    await expect(h.backend.launch(await h.order(), late)).rejects.toMatchObject({
      failure: { class: 'transient' },
    })
    expect(h.lambda.calls).not.toContain('launch')
  })
})

describe('a job whose provider is down for an hour', () => {
  it.each(TROUBLES)('continues where Lambda %s', async (_, error) => {
    const order = await h.order()
    const handle = await launchedOf(order)
    const { told, during, end } = await watchAnHour({
      ...{ backend: h.backend, store: h.store, order, handle },
      asked: () => h.lambda.calls.filter((name) => name === 'instances').length,
      trouble: () => goDown(error),
      recover,
    })
    expect(told).toEqual([expect.any(String), undefined])
    expect(during).toBeUndefined()
    expect(end).toEqual({ kind: 'over', end: { kind: 'succeeded' } })
    expect(h.lambda.instances).toHaveLength(1)
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

  it.each(TROUBLES)('%s fails with what to do, and makes one machine once it answers', async (_, error) => {
    const order = await h.order()
    goDown(error)
    for (let tries = 0; tries < 3; tries++) {
      const failure = failureOf(await launch(order).catch((thrown: unknown) => thrown))
      expect(failure).toMatchObject({ message: expect.any(String), hint: expect.stringMatching(/\S+ \S+/) })
    }
    expect(h.lambda.launches).toEqual([])
    recover()
    expect(await launch(order)).toMatchObject({ kind: 'launched' })
    expect(await launch(order)).toMatchObject({ kind: 'launched' })
    expect(h.lambda.instances).toHaveLength(1)
  })

  it('goes down before it has answered is looked up, and not sent again', async () => {
    const order = await h.order()
    h.lambda.after.set('launch', () => Promise.reject(lostAnswer()))
    expect(await launch(order)).toMatchObject({ kind: 'unconfirmed' })
    h.lambda.after.clear()
    goDown(lostAnswer)
    await expect(look(order)).rejects.toMatchObject({ failure: { class: 'transient' } })
    expect(await launch(order)).toMatchObject({ kind: 'unconfirmed' })
    recover()
    expect(await look(order)).toMatchObject({ kind: 'found', handles: [{ attemptId: order.attemptId }] })
    expect(await launch(order)).toMatchObject({ kind: 'launched' })
    expect(h.lambda.launches).toHaveLength(1)
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
  expect(h.lambda.launches).toEqual([])
})

it('a machine waits for its runner no longer than its money pays for it', async () => {
  const order = await h.order()
  const budget = { microUsd: 200, priceMaxMicroUsdPerHour: 3_600 }
  const runner = { ...order.runner, limits: { seq: 0, deadlineAtMs: null, budget } }
  await h.backend.launch({ ...order, runner }, { ...patiently(), send: sendNameOf(order.attemptId, 1) })
  const [{ user_data: userData }] = h.lambda.launches as [LaunchRequest]
  expect(parametersOfUserData(userData).giveUpSeconds).toBe(200 - bootReserveMs(order.runner) / SECOND_MS)
})
