/** A gateway in trouble: what `crucible doctor` says, and that no trouble is taken for the end of a machine. */
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { findMachine } from '../../../activities/machine/backend-machines'
import { sendOnce } from '../../../activities/machine/sending'
import { failureOf } from '../../../backends/errors'
import { HttpError } from '../../../backends/http'
import { bootReserveMs, startsWithinMs } from '../../../core/money/budget'
import type { FindOutcome } from '../../../core/activities'
import { defined } from '../../../core/defined'
import type { MachineHandle } from '../../../core/handle'
import type { Offer } from '../../../core/offer'
import type { Order } from '../../../core/job/plan'
import { SECOND_MS } from '../../../core/time/time'
import { patiently, settled } from '../harness'
import { watchAnHour } from '../hour-down'
import { HEALTH, lostAnswer, proxyAnswer, type FakeGateway } from './fake-gateway'
import { FakeHarness, parametersOfContainer } from './fake-harness'

let h: FakeHarness
let order: Order
let handle: MachineHandle
beforeEach(async () => {
  h = new FakeHarness()
  order = await h.order()
  const outcome = await h.backend.launch(order, patiently())
  if (outcome.kind !== 'launched') throw new Error(outcome.kind)
  handle = outcome.handle
})
afterEach(() => h.dispose())

type Trouble = (modal: FakeGateway) => void

const answering =
  (error: () => HttpError): Trouble =>
  ({ before }) =>
    void before.set('*', () => Promise.reject(error()))
const unsent = (): HttpError =>
  new HttpError('The Modal gateway did not answer: ENOTFOUND', { reach: 'unsent' })

/** Each with the message of `crucible doctor` and what it says to do. */
const TROUBLES: [string, Trouble, RegExp, RegExp][] = [
  [
    'that was deleted',
    answering(() => proxyAnswer(404, 'modal-http: app for invoked web endpoint is stopped')),
    /^the gateway is not deployed in the workspace\.$/,
    /^Run `crucible setup modal`\. Running jobs continue meanwhile\.$/,
  ],
  [
    'whose proxy token is bad, has expired or is of another workspace',
    answering(() => proxyAnswer(401, 'modal-http: incorrect credentials for proxy authorization')),
    /^Modal refused the proxy token that ends in 6789\.$/,
    /^Run `crucible setup modal`\.$/,
  ],
  [
    'that cannot be reached',
    answering(unsent),
    /^The Modal gateway did not answer: ENOTFOUND\.$/,
    /^Check the network and CRUCIBLE_MODAL_URL\.$/,
  ],
  [
    'that starts too slowly',
    answering(lostAnswer),
    /^The Modal gateway did not answer\.$/,
    /^Try again in a minute: .* If it still fails, read status\.modal\.com\.$/,
  ],
  [
    'that is another server',
    answering(
      () =>
        new HttpError('The Modal gateway answered with something other than JSON', {
          ...{ reach: 'unanswered', status: 200, page: 'Temporal' },
        }),
    ),
    /something other than JSON\.$/,
    /^Check CRUCIBLE_MODAL_URL\. Run `crucible setup modal`\.$/,
  ],
  [
    'that is broken',
    answering(() => proxyAnswer(503, 'modal-http: bad gateway')),
    /^the gateway does not work: Modal answered 503 modal-http: bad gateway\.$/,
    /^Try again in a minute/,
  ],
]

const VERSIONS: [string, Trouble, RegExp, RegExp][] = [
  [
    'that is older',
    (modal) => void (modal.health = { ...HEALTH, api: 0 }),
    /speaks version 0 .* Crucible 1$/,
    /^Run `crucible setup modal` to update it\.$/,
  ],
  [
    'that is newer',
    (modal) => void (modal.health = { ...HEALTH, api: 2 }),
    /speaks version 2 .* Crucible 1$/,
    /^Update Crucible on this worker\.$/,
  ],
]

describe('a gateway', () => {
  it.each([...TROUBLES, ...VERSIONS])('%s has one message and one remedy', async (_, trouble, words, fix) => {
    trouble(h.modal)
    const problems = await h.backend.check(patiently())
    expect(problems).toMatchObject([{ severity: 'error', message: expect.stringMatching(words) }])
    expect(problems[0]!.remedy).toMatch(fix)
    expect(JSON.stringify(problems)).not.toContain('ws-secret')
  })

  it.each(TROUBLES)('%s says nothing of its machines', async (_, trouble) => {
    trouble(h.modal)
    const calls = {
      observe: h.backend.observe([handle], patiently()),
      find: h.backend.find(order.attemptId, patiently()),
      list: h.backend.list(order.deployment, patiently()),
      leftovers: h.backend.leftovers!(order.deployment, patiently()),
      terminate: h.backend.terminate(handle, patiently()),
      logs: h.backend.logs!(handle, undefined, patiently()),
    }
    for (const [name, call] of Object.entries(calls))
      expect([name, await settled(call)]).toEqual([name, 'BackendError'])
    expect(await h.runningOf(order.attemptId)).toBe(1)
  })

  it.each(VERSIONS)('%s gets no order, and serves the machines that run', async (_, trouble) => {
    const next = await h.order()
    trouble(h.modal)
    expect(await h.backend.launch(next, patiently())).toMatchObject({ kind: 'refused' })
    expect(h.launchesSent()).toBe(1)
    expect(await h.backend.observe([handle], patiently())).toMatchObject([{ state: 'running' }])
    await h.backend.terminate(handle, patiently())
    expect(await h.backend.observe([handle], patiently())).toMatchObject([{ state: 'gone', cause: 'ended' }])
  })
})

describe('a plan', () => {
  const offersFor = (image?: string) => h.backend.offers({}, { ...patiently(), ...defined({ image }) })

  it.each(VERSIONS)(
    'has no offers of a gateway %s, so that no job ends with its launch',
    async (_, trouble, words, fix) => {
      trouble(h.modal)
      const failure = failureOf(await offersFor().catch((error: unknown) => error))
      expect(failure).toMatchObject({
        message: expect.stringMatching(words),
        hint: expect.stringMatching(fix),
      })
    },
  )

  it('has no usable offer for an image whose registry the gateway refuses', async () => {
    for (const image of [undefined, 'python:3.12', 'docker.io/team/train:1', 'team/train@sha256:0123'])
      expect([image, usableIn(await offersFor(image))]).toEqual([image, true])
    for (const image of ['ghcr.io/team/train:1', 'localhost/train', 'registry.example:5000/train']) {
      const offers = await offersFor(image)
      expect([image, usableIn(offers)]).toEqual([image, false])
      expect(offers[0]!.note).toMatch(
        new RegExp(
          `^the Modal gateway does not allow the registry of ${image}: add it to CRUCIBLE_GATEWAY_REG`,
        ),
      )
    }
  })

  it('has no usable offer for an image whose Modal Secret the gateway refuses', async () => {
    h.config.imageSecrets = { 'docker.io/team': 'team-robot' }
    expect(usableIn(await offersFor('python:3.12'))).toBe(true)
    const [offer] = await offersFor('team/train:1')
    expect(offer).toMatchObject({
      availability: 'unusable',
      note: 'the Modal gateway does not allow the Modal Secret team-robot for team/train:1: run `crucible setup modal`',
    })
    h.modal.health = { ...HEALTH, allowed: { ...HEALTH.allowed, secrets: ['team-robot'] } }
    expect(usableIn(await offersFor('team/train:1'))).toBe(true)
  })
})

const usableIn = (offers: Offer[]): boolean => offers.every(({ availability }) => availability !== 'unusable')

describe('a job whose gateway is down for an hour', () => {
  it.each(TROUBLES)('%s continues', async (_, trouble) => {
    const { told, during, end } = await watchAnHour({
      ...{ backend: h.backend, store: h.store, order, handle },
      asked: () => h.modal.calls.filter((name) => name === 'job').length,
      trouble: () => trouble(h.modal),
      recover: () => h.modal.before.clear(),
    })
    expect(told).toEqual([expect.any(String), undefined])
    expect(during).toBeUndefined()
    expect(end).toEqual({ kind: 'over', end: { kind: 'succeeded' } })
  })
})

describe('a launch while the gateway', () => {
  const launch = (next: Order) =>
    sendOnce({ backend: h.backend, store: h.store, now: Date.now }, next, patiently().signal)

  it.each(TROUBLES)(
    '%s fails with what to do, and makes one machine once the gateway answers',
    async (_, trouble) => {
      const next = await h.order()
      trouble(h.modal)
      for (let tries = 0; tries < 3; tries++) {
        const failure = failureOf(await launch(next).catch((error: unknown) => error))
        expect(failure).toMatchObject({ message: expect.any(String), hint: expect.stringMatching(/\S+ \S+/) })
      }
      expect(await h.runningOf(order.attemptId)).toBe(1)
      expect(await h.runningOf(next.attemptId)).toBe(0)
      h.modal.before.clear()
      expect(await launch(next)).toMatchObject({ kind: 'launched' })
      expect(await launch(next)).toMatchObject({ kind: 'launched' })
      expect(await h.runningOf(next.attemptId)).toBe(1)
    },
  )

  it('goes down before it has answered is looked up, and made once', async () => {
    const next = await h.order()
    h.modal.after.set('submit', () => {
      answering(unsent)(h.modal)
      return Promise.reject(lostAnswer())
    })
    expect(await launch(next)).toMatchObject({ kind: 'unconfirmed' })
    h.modal.after.clear()
    const look = (): Promise<FindOutcome> =>
      findMachine({ backend: h.backend, store: h.store, now: Date.now }, next, patiently().signal)
    await expect(look()).rejects.toMatchObject({ failure: { class: 'transient' } })
    h.modal.before.clear()
    expect(await look()).toMatchObject({ kind: 'found', handles: [{ attemptId: next.attemptId }] })
    expect(await h.runningOf(next.attemptId)).toBe(1)
  })
})

it('an order that names several offers is not sent: it would try only one of them', async () => {
  expect(h.backend.capabilities.offersPerOrder).toBe('one')
  const next = await h.order()
  const offers = [...next.offers, { ...next.offers[0]!, type: 'T4x1' }]
  const launching = h.backend.launch({ ...next, offers }, patiently())
  await expect(launching).rejects.toMatchObject({ failure: { class: 'invalid' } })
  expect(h.launchesSent()).toBe(1)
})

it('a container waits for its runner no longer than its money pays for it', async () => {
  const next = await h.order()
  const budget = { microUsd: 200, priceMaxMicroUsdPerHour: 3_600 }
  const runner = { ...next.runner, limits: { seq: 0, deadlineAtMs: null, budget } }
  await h.backend.launch({ ...next, runner }, patiently())
  const [unlimited, limited] = h.modal.submits.map(
    ({ request }) => parametersOfContainer(request).giveUpSeconds,
  )
  const reserveSeconds = bootReserveMs(next.runner) / SECOND_MS
  expect(limited).toBe(200 - reserveSeconds)
  expect(unlimited).toBe(startsWithinMs(order.runner) / SECOND_MS)
})

describe('a launch whose answer is lost', () => {
  it('takes the machine that the gateway knows', async () => {
    const next = await h.order()
    h.modal.loseNext('submit')
    expect(await h.backend.launch(next, patiently())).toMatchObject({
      kind: 'launched',
      handle: { attemptId: next.attemptId },
    })
  })

  it('is unconfirmed, until its request can be accepted no more, where the gateway knows nothing', async () => {
    h.modal.before.set('submit', () => Promise.reject(lostAnswer()))
    expect(await h.backend.launch(await h.order(), patiently())).toEqual({
      kind: 'unconfirmed',
      findAfterMs: 75 * SECOND_MS,
    })
  })
})

describe('a workspace at its limit of GPUs', () => {
  it('lets a launch wait, and ends it as missing capacity when Modal gives up', async () => {
    h.modal.isFull = true
    const waiting = await h.order()
    const outcome = await h.backend.launch(waiting, patiently())
    if (outcome.kind !== 'launched') throw new Error(outcome.kind)
    expect(await h.backend.observe([outcome.handle], patiently())).toMatchObject([{ state: 'queued' }])
    expect(await h.backend.check(patiently())).toEqual([])
    h.modal.giveUp(waiting.attemptId, 'Insufficient capacity to create sandbox.')
    const [gone] = await h.backend.observe([outcome.handle], patiently())
    expect(gone).toMatchObject({ state: 'gone', cause: 'failed-to-start' })
    expect(gone!.failure).toBeUndefined()
  })

  it('says where to raise a limit that ends a launch', async () => {
    h.modal.isFull = true
    const waiting = await h.order()
    await h.backend.launch(waiting, patiently())
    h.modal.giveUp(waiting.attemptId, 'Workspace spend limit reached')
    const [gone] = await h.backend.observe([{ ...handle, id: waiting.attemptId }], patiently())
    expect(gone!.failure).toMatchObject({
      class: 'quota',
      hint: expect.stringContaining('modal.com/settings'),
    })
  })
})
