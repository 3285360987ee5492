/** A gateway in trouble: what `crucible doctor` says, and that no trouble is taken for the end of a machine. */
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { findMachine } from '../../../activities/machine/backend-machines'
import { sendOnce } from '../../../activities/machine/sending'
import type { Backend } from '../../../backends/backend'
import { failureOf } from '../../../backends/errors'
import { startsWithinMs } from '../../../core/money/budget'
import type { FindOutcome } from '../../../core/activities'
import type { MachineHandle } from '../../../core/handle'
import type { Offer } from '../../../core/offer'
import type { Order } from '../../../core/job/plan'
import { CLOCK_SLACK_MS, SECOND_MS } from '../../../core/time/time'
import { Ages } from '../../../core/time/ages'
import { until } from '../../support/until'
import { patiently, settled } from '../harness'
import { watchAnHour } from '../hour-down'
import { HEALTH, ModalHarness, parametersOfContainer } from './harness'

let h: ModalHarness
let order: Order
let handle: MachineHandle
beforeEach(async () => {
  h = await ModalHarness.make({ isOnPaper: true })
  order = await h.order()
  const outcome = await h.backend.launch(order, patiently())
  if (outcome.kind !== 'launched') throw new Error(outcome.kind)
  handle = outcome.handle
  await hasOneMachine(order)
})
afterEach(() => h.dispose())

/** A launch is accepted before its container runs. */
async function hasOneMachine({ attemptId }: Order): Promise<void> {
  await until(async () => (await h.runningOf(attemptId)) > 0)
  expect(await h.runningOf(attemptId)).toBe(1)
}

type Trouble = () => unknown

const answering = (status: number, body: string): Trouble => {
  const headers = { 'content-type': 'text/plain' }
  return () => h.fail({ kind: 'answer', status, body, headers })
}

/** Each with the message of `crucible doctor` and what it says to do. */
const TROUBLES: [string, Trouble, RegExp, RegExp][] = [
  [
    'that was deleted',
    answering(404, 'modal-http: app for invoked web endpoint is stopped'),
    /^the gateway is not deployed in the workspace\.$/,
    /^Run `crucible setup modal`\. Running jobs continue meanwhile\.$/,
  ],
  [
    'whose proxy token is bad, has expired or is of another workspace',
    answering(401, 'modal-http: incorrect credentials for proxy authorization'),
    /^Modal refused the proxy token that ends in \w{4}\.$/,
    /^Run `crucible setup modal`\.$/,
  ],
  [
    'that cannot be reached',
    () => h.goDown(),
    /^The Modal gateway did not answer: ECONNREFUSED\.$/,
    /^Check the network and CRUCIBLE_MODAL_URL\.$/,
  ],
  [
    'that does not answer',
    () => h.fail({ kind: 'cut-request', afterBytes: 0 }),
    /^The Modal gateway did not answer: /,
    /^Try again in a minute: .* If it still fails, read status\.modal\.com\.$/,
  ],
  [
    'that is another server',
    answering(200, 'Temporal'),
    /something other than JSON\.$/,
    /^Check CRUCIBLE_MODAL_URL\. Run `crucible setup modal`\.$/,
  ],
  [
    'that is broken',
    answering(503, 'modal-http: bad gateway'),
    /^the gateway does not work: Modal answered 503 modal-http: bad gateway\.$/,
    /^Try again in a minute/,
  ],
]

const VERSIONS: [string, Trouble, RegExp, RegExp][] = [
  [
    'that is older',
    () => h.answerHealth({ api: 0 }),
    /speaks version 0 .* Crucible 1$/,
    /^Run `crucible setup modal` to update it\.$/,
  ],
  [
    'that is newer',
    () => h.answerHealth({ api: 2 }),
    /speaks version 2 .* Crucible 1$/,
    /^Update Crucible on this worker\.$/,
  ],
]

describe('a gateway', () => {
  it.each([...TROUBLES, ...VERSIONS])('%s has one message and one remedy', async (_, trouble, words, fix) => {
    await trouble()
    const problems = await h.backend.check(patiently())
    expect(problems).toMatchObject([{ severity: 'error', message: expect.stringMatching(words) }])
    expect(problems[0]!.remedy).toMatch(fix)
    expect(JSON.stringify(problems)).not.toContain(h.config.token.secret)
  })

  it.each(TROUBLES)('%s says nothing of its machines', async (_, trouble) => {
    await trouble()
    const calls = [
      h.backend.observe([handle], patiently()),
      h.backend.find(order.attemptId, patiently()),
      h.backend.list(order.deployment, patiently()),
      h.backend.leftovers!(order.deployment, patiently()),
      h.backend.terminate(handle, patiently()),
      h.backend.logs!(handle, undefined, patiently()),
    ]
    expect(new Set(await Promise.all(calls.map(settled)))).toEqual(new Set(['BackendError']))
    expect(await h.runningOf(order.attemptId)).toBe(1)
  })

  it.each(VERSIONS)('%s gets no order, and serves the machines that run', async (_, trouble) => {
    const next = await h.order()
    await trouble()
    expect(await h.backend.launch(next, patiently())).toMatchObject({ kind: 'refused' })
    expect(h.launchesSent()).toBe(1)
    expect(await h.backend.observe([handle], patiently())).toMatchObject([{ state: 'running' }])
    await h.backend.terminate(handle, patiently())
    expect(await h.backend.observe([handle], patiently())).toMatchObject([{ state: 'gone', cause: 'ended' }])
  })
})

describe('a plan', () => {
  const offersFor = (image?: string) => h.backend.offers({}, { ...patiently(), image })

  it.each(VERSIONS)(
    'has no offers of a gateway %s, so that no job ends with its launch',
    async (_, trouble, words, fix) => {
      await trouble()
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
    h.answerHealth({})
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
    h.backend = await h.reopen({ imageSecrets: { 'docker.io/team': 'team-robot' } })
    expect(usableIn(await offersFor('python:3.12'))).toBe(true)
    const [offer] = await offersFor('team/train:1')
    expect(offer).toMatchObject({
      availability: 'unusable',
      note: 'the Modal gateway does not allow the Modal Secret team-robot for team/train:1: run `crucible setup modal`',
    })
    h.answerHealth({ allowed: { ...HEALTH.allowed, secrets: ['team-robot'] } })
    expect(usableIn(await offersFor('team/train:1'))).toBe(true)
  })
})

const usableIn = (offers: Offer[]): boolean => offers.every(({ availability }) => availability !== 'unusable')

describe('a job whose gateway is down for an hour', () => {
  it.each(TROUBLES)('%s continues', async (_, trouble) => {
    let asked = 0
    const backend: Backend = {
      ...h.backend,
      observe: (handles, ctx) => {
        asked++
        return h.backend.observe(handles, ctx)
      },
    }
    const watched = { backend, store: h.store, order, handle, asked: () => asked, trouble }
    const { told, during, end } = await watchAnHour({ ...watched, recover: () => h.recover() })
    expect(told).toEqual([expect.any(String), undefined])
    expect(during).toBeUndefined()
    expect(end).toEqual({ kind: 'over', end: { kind: 'succeeded' } })
  })
})

describe('a launch while the gateway', () => {
  const launch = (next: Order) =>
    sendOnce(
      {
        backend: h.backend,
        store: h.store,
        now: Date.now,
        ages: new Ages({ now: Date.now, monotonicMs: Date.now }),
      },
      next,
      patiently().signal,
    )

  it.each(TROUBLES)(
    '%s fails with what to do, and makes one machine once the gateway answers',
    async (_, trouble) => {
      const next = await h.order()
      await trouble()
      for (let tries = 0; tries < 3; tries++) {
        const failure = failureOf(await launch(next).catch((error: unknown) => error))
        expect(failure).toMatchObject({ message: expect.any(String), hint: expect.stringMatching(/\S+ \S+/) })
      }
      expect(await h.runningOf(order.attemptId)).toBe(1)
      expect(await h.runningOf(next.attemptId)).toBe(0)
      await h.recover()
      expect(await launch(next)).toMatchObject({ kind: 'launched' })
      expect(await launch(next)).toMatchObject({ kind: 'launched' })
      await hasOneMachine(next)
    },
  )

  it('goes down before it has answered is looked up, and made once', async () => {
    const next = await h.order()
    h.fail({ kind: 'lost-answer' }, '^PUT ')
    h.fail({ kind: 'cut-request', afterBytes: 0 }, '^GET .*/jobs/')
    expect(await launch(next)).toMatchObject({ kind: 'unconfirmed' })
    const look = (): Promise<FindOutcome> =>
      findMachine(
        {
          backend: h.backend,
          store: h.store,
          now: Date.now,
          ages: new Ages({ now: Date.now, monotonicMs: Date.now }),
        },
        next,
        patiently().signal,
      )
    await expect(look()).rejects.toMatchObject({ failure: { class: 'transient' } })
    await h.recover()
    expect(await look()).toMatchObject({ kind: 'found', handles: [{ attemptId: next.attemptId }] })
    await hasOneMachine(next)
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
  const [unlimited, limited] = [order, next].map(
    ({ attemptId }) => parametersOfContainer(h.sendsOf(attemptId)[0]!).giveUpSeconds,
  )
  const reserveSeconds = (next.runner.powerOffMs + CLOCK_SLACK_MS) / SECOND_MS
  expect(limited).toBe(200 - reserveSeconds)
  expect(unlimited).toBe(startsWithinMs(order.runner) / SECOND_MS)
})

it('a launch that reaches no gateway is unconfirmed until its request can be accepted no more', async () => {
  h.fail({ kind: 'cut-request', afterBytes: 0 }, '^PUT ')
  expect(await h.backend.launch(await h.order(), patiently())).toEqual({
    kind: 'unconfirmed',
    findAfterMs: 75 * SECOND_MS,
  })
})
