/** Quirks of Lambda that its users report, each played by the small cloud and met by the backend over HTTP. */
import { afterEach, describe, expect, it, jest } from '@jest/globals'
import { z } from 'zod'
import type { Backend, Problem } from '../../../backends/backend'
import { createHttpClient } from '../../../backends/http'
import { createLambdaBackend } from '../../../backends/lambda'
import type { LambdaConfig } from '../../../backends/lambda/config'
import { failureOf } from '../../../backends/errors'
import type { LaunchOutcome } from '../../../core/activities'
import type { MachineHandle } from '../../../core/handle'
import { isOver, type Observation } from '../../../core/observation'
import type { Order } from '../../../core/job/plan'
import { sendNameOf } from '../../../core/queues'
import type { WorldText } from '#small-cloud'
import { patient } from '../../support/patience'
import { until } from '../../support/until'
import { patiently, settled } from '../harness'
import { DURATIONS, LambdaHarness } from './harness'

jest.setTimeout(120_000)

let h: LambdaHarness
afterEach(() => h.dispose())

async function start(world: WorldText = {}, config: Partial<LambdaConfig> = {}): Promise<Backend> {
  h = await LambdaHarness.make({ world, config })
  return h.backend
}

const LAMBDA = { service: 'lambda' } as const
const LAUNCHES = { ...LAMBDA, action: 'launch' } as const

function send(order: Order, signal = patiently().signal): Promise<LaunchOutcome> {
  return h.backend.launch(order, { signal, send: sendNameOf(order.attemptId, 1) })
}

async function launched(order?: Order): Promise<MachineHandle> {
  const outcome = await send(order ?? (await h.order()))
  if (outcome.kind !== 'launched') throw new Error(JSON.stringify(outcome))
  return outcome.handle
}

const look = async (handle: MachineHandle): Promise<Observation> =>
  (await h.backend.observe([handle], patiently()))[0]!
const stateAtLast = (handle: MachineHandle, wanted: Partial<Observation>): Promise<void> =>
  until(async () => {
    const seen: Partial<Observation> = await look(handle)
    return Object.entries(wanted).every(([name, value]) => seen[name as keyof Observation] === value)
  })
const recordOf = (handle: MachineHandle) => h.cloud.instances().find(({ id }) => id === handle.id)!

describe('the firewall of Lambda', () => {
  it('refuses clients without a name of their own, which the backend has', async () => {
    const backend = await start()
    const open = (userAgent: string) =>
      createHttpClient({ name: 'Lambda', baseUrl: h.config.endpoint, userAgent, headers: () => ({}) })
    const nameless = open('node')
    const call = { method: 'GET', path: '/api/v1/instances', answer: z.unknown(), timeoutMs: 5_000 } as const
    await expect(nameless.call(call, patiently().signal)).rejects.toMatchObject({
      facts: { reach: 'answered', status: 403, page: expect.stringContaining('error code: 1010') },
    })
    await nameless.close()
    expect(await backend.check(patiently())).toEqual([])
  })
})

describe('the limits of a Lambda account', () => {
  it('are kept by one process, and reads of two that share an account wait for their turn', async () => {
    const throttling = { requests: { size: 1, perSecond: 4 } }
    const backend = await start({ lambda: { throttling } }, { requestsPerSecond: 3.5 })
    const other = await h.reopen()
    const answers = [backend, other].flatMap((each) => [
      each.list('test', patiently()),
      each.find('job-a-1', patiently()),
    ])
    expect(await Promise.all(answers.map(settled))).toEqual(['answer', 'absent', 'answer', 'absent'])
    const outcomes = h.cloud.journal.calls({ service: 'lambda' }).map(({ outcome }) => outcome)
    expect(new Set(outcomes)).toEqual(new Set(['ok', 'global/rate-limit-exceeded']))
  })

  it('make a launch that came too early after that of another process one that bought nothing', async () => {
    await start({ lambda: { throttling: { requests: { size: 100, perSecond: 100 } } } })
    await launched()
    const order = await h.order()
    h.backend = await h.reopen()
    expect(await send(order).catch((error: unknown) => failureOf(error))).toMatchObject({
      class: 'throttled',
      message: expect.stringContaining('Lambda answered 429: Too many requests.'),
    })
    expect(h.instancesOf(order.attemptId)).toEqual([])
  })
})

describe('capacity of Lambda', () => {
  it('that vanishes between list and launch refuses the launch, and is not offered for a while', async () => {
    await start()
    const order = await h.order()
    h.cloud.addFault({ fault: 'no-capacity', times: 1 })
    expect(await send(order)).toMatchObject({
      kind: 'refused',
      failure: { class: 'capacity' },
    })
    const [tried] = order.offers
    const offers = await h.backend.offers({}, patiently())
    expect(offers.find(({ type, place }) => type === tried!.type && place === tried!.place)).toMatchObject({
      availability: 'unavailable',
      note: expect.stringContaining('refused a moment ago'),
    })
    expect(h.cloud.instances()).toEqual([])
  })

  const availabilities = async (): Promise<unknown> => [
    ...new Set((await h.backend.offers({}, patiently())).map(({ availability }) => availability)),
  ]

  it('waits while machines of the account use up its quota, such as the last one of the job itself', async () => {
    await start({ lambda: { quota: 1, stock: [] } })
    const order = await h.order()
    const other = await launched()
    expect(await send(order)).toMatchObject({
      kind: 'refused',
      failure: {
        class: 'capacity',
        code: 'global/quota-exceeded',
        hint: expect.stringContaining('higher quota'),
      },
    })
    expect(await availabilities()).toEqual(['unavailable'])
    await h.backend.terminate(other, patiently())
    await stateAtLast(other, { state: 'gone' })
    expect(await send(order)).toMatchObject({ kind: 'launched' })
  })

  it('is offered for no type where the account may run no machines', async () => {
    await start({ lambda: { quota: 0, stock: [] } })
    expect(await send(await h.order())).toMatchObject({ kind: 'refused', failure: { class: 'quota' } })
    expect(await availabilities()).toEqual(['no-quota'])
  })
})

describe('a launch at Lambda whose answer does not come', () => {
  it.each(['reset', 'internal-error', 'unavailable'] as const)(
    'has made one machine, which is found (%s)',
    async (instead) => {
      await start()
      const order = await h.order()
      h.cloud.addFault({ fault: 'lost-answer', instead, times: 1, where: LAUNCHES })
      expect(await send(order)).toEqual({ kind: 'unconfirmed', findAfterMs: h.config.staleForMs })
      expect(await h.backend.find(order.attemptId, patiently())).toMatchObject({
        kind: 'found',
        handles: [{ attemptId: order.attemptId }],
      })
      expect(h.instancesOf(order.attemptId)).toHaveLength(1)
    },
  )

  it('has made one machine, too, where the caller lost patience before', async () => {
    await start()
    const order = await h.order()
    h.cloud.addFault({ fault: 'slow', by: '5s', stage: 'after', times: 1, where: LAUNCHES })
    const caller = new AbortController()
    const sending = send(order, caller.signal)
    await until(() => h.instancesOf(order.attemptId).length === 1)
    caller.abort()
    expect(await settled(sending)).toBe('unconfirmed')
    expect(await h.backend.find(order.attemptId, patiently())).toMatchObject({ kind: 'found' })
    expect(h.launchesSent()).toBe(1)
  })
})

describe('the lists of Lambda', () => {
  it('that do not show a new machine yet prove nothing while they may lag', async () => {
    await start({ durations: { ...DURATIONS, notFound: [1_500, 1_500] } }, { staleForMs: 60_000 })
    const order = await h.order()
    h.cloud.addFault({ fault: 'lost-answer', times: 1, where: LAUNCHES })
    expect(await send(order)).toMatchObject({ kind: 'unconfirmed' })
    const looking = { ...patiently(), sentUntilMs: Date.now() }
    expect(await h.backend.find(order.attemptId, looking)).toMatchObject({ kind: 'unsettled' })
    await until(async () => (await h.backend.find(order.attemptId, looking)).kind === 'found')
  })

  it('that do not show a new machine yet do not make it gone', async () => {
    await start({ durations: { ...DURATIONS, notFound: [1_500, 1_500] } }, { staleForMs: 60_000 })
    const handle = await launched()
    expect(await look(handle)).toMatchObject({ state: 'pending', detail: expect.stringContaining('lists') })
    await stateAtLast(handle, { state: 'running' })
  })

  it('that show an ended machine no more, and then forget it, report it as gone', async () => {
    await start(
      { durations: { ...DURATIONS, terminatedVisible: [patient(800), patient(800)] } },
      { staleForMs: 1 },
    )
    const order = await h.order()
    const handle = await launched(order)
    await stateAtLast(handle, { state: 'running' })
    await h.backend.terminate(handle, patiently())
    await stateAtLast(handle, { state: 'gone', cause: 'ended' })
    await stateAtLast(handle, { state: 'gone', cause: 'unknown' })
    expect(await h.backend.find(order.attemptId, patiently())).toEqual({ kind: 'absent' })
    // Absent is success.
    await h.backend.terminate(handle, patiently())
  })
})

describe('a machine of Lambda', () => {
  it('is billed by the minute, also while it is powered off, as its offer, its handle and its list say', async () => {
    await start()
    const order = await h.order({ deployment: 'test' })
    expect(order.offers).toMatchObject([
      { billedInStepsOfMs: 60_000, stillBilled: expect.stringContaining('until it is terminated') },
    ])
    expect((await launched(order)).realised.billedInStepsOfMs).toBe(60_000)
    const [listed] = await h.backend.list('test', patiently())
    expect(listed!.handle).toMatchObject({ realised: { billedInStepsOfMs: 60_000 } })
  })

  it('shows the send that made it by its hostname and its tag, and its attempt by its name', async () => {
    await start()
    const order = await h.order()
    const { id } = await launched(order)
    const [call] = h.cloud.journal.calls(LAUNCHES)
    const name = sendNameOf(order.attemptId, 1)
    expect(call!.parameters).toMatchObject({ hostname: name, name: order.attemptId })
    expect(h.cloud.instances().find((one) => one.id === id)!.tags).toMatchObject({ 'crucible:send': name })
  })

  it('that is unhealthy is billed until it is ended: it is listed, and its end ends the bill', async () => {
    await start({ faults: [{ fault: 'unhealthy', where: LAMBDA }] })
    const order = await h.order({ deployment: 'test' })
    const handle = await launched(order)
    await stateAtLast(handle, { state: 'gone' })
    expect(await look(handle)).toMatchObject({ cause: 'failed-to-start', isStillBilled: true })
    expect(recordOf(handle).bill.untilMs).toBeUndefined()
    expect(await h.backend.list('test', patiently())).toMatchObject([{ handle: { id: handle.id } }])
    expect(await h.backend.find(order.attemptId, patiently())).toMatchObject({ kind: 'found' })
    await h.backend.terminate(handle, patiently())
    await until(() => recordOf(handle).state === 'terminated')
    expect(recordOf(handle).bill.untilMs).toEqual(expect.any(Number))
    await until(async () => isOver(await look(handle)))
    expect(await h.backend.list('test', patiently())).toEqual([])
  })

  it('that Lambda preempts was interrupted, and costs nothing', async () => {
    await start()
    const order = await h.order({ deployment: 'test' })
    const handle = await launched(order)
    await stateAtLast(handle, { state: 'running' })
    h.cloud.interrupt(handle.id)
    expect(await look(handle)).toMatchObject({ state: 'gone', cause: 'interrupted' })
    expect(await look(handle)).not.toHaveProperty('isStillBilled')
    expect(await h.backend.list('test', patiently())).toEqual([])
    expect(recordOf(handle).bill.untilMs).toEqual(expect.any(Number))
  })

  it.each(['global/invalid-parameters', 'instance-operations/terminate/vm-has-not-launched'])(
    'that Lambda does not end yet (%s) is ended by a later call',
    async (code) => {
      const backend = await start()
      const handle = await launched()
      const where = { ...LAMBDA, action: 'terminate' } as const
      h.cloud.addFault({ fault: 'error', code, status: 400, times: 1, where })
      const failure = await backend.terminate(handle, patiently()).catch(failureOf)
      expect(failure).toMatchObject({
        class: 'transient',
        message: expect.stringMatching(new RegExp(`machine ${handle.id} while it is (booting|active): `)),
        hint: expect.stringContaining('cloud.lambda.ai'),
      })
      await backend.terminate(handle, patiently())
      await stateAtLast(handle, { state: 'gone' })
    },
  )

  it('of another deployment in the same account is neither listed nor ended', async () => {
    await start()
    const handle = await launched(await h.order({ deployment: 'theirs' }))
    const ours = await createLambdaBackend(h.config, { ...h.deps, deployment: 'ours' })
    expect(await ours.list('ours', patiently())).toEqual([])
    await expect(ours.terminate(handle, patiently())).rejects.toMatchObject({
      failure: { class: 'invalid', message: expect.stringContaining('belongs to deployment theirs') },
    })
    expect(recordOf(handle).state).not.toMatch(/terminat/)
  })
})

describe('an account of Lambda that cannot be used', () => {
  const problemsOf = async (world: WorldText, changes: Partial<LambdaConfig> = {}): Promise<Problem[]> =>
    (await start(world, changes)).check(patiently())

  it('because the key is wrong or expired is named with the end of the key, and what to do', async () => {
    const apiKey = 'secret_expired_0123456789_wxyz'
    const problems = await problemsOf({}, { apiKey })
    expect(problems).toEqual([
      {
        severity: 'error',
        failure: 'auth',
        remedy: expect.stringContaining('LAMBDA_API_KEY'),
        message: expect.stringMatching(/invalid, expired, or deleted\. .*\(the key ….{4}\)$/),
      },
    ])
    expect(JSON.stringify(problems)).not.toContain(apiKey)
  })

  it('because it is inactive is named, and what to complete', async () => {
    expect(await problemsOf({ lambda: { account: 'inactive' } })).toMatchObject([
      {
        severity: 'error',
        failure: 'auth',
        message: expect.stringContaining('account is inactive'),
        remedy: expect.stringContaining('payment method'),
      },
    ])
  })

  it('for launches, because its billing address is wrong, refuses them with what to correct', async () => {
    await start({ lambda: { account: 'invalid-address' } })
    expect(await send(await h.order())).toMatchObject({
      kind: 'refused',
      failure: { class: 'auth', hint: expect.stringContaining('billing address') },
    })
  })

  it('because it has no SSH key is named, and how to make one', async () => {
    expect(await problemsOf({ lambda: { sshKeys: ['of a colleague'] } })).toMatchObject([
      {
        severity: 'error',
        message: expect.stringContaining('no SSH key crucible'),
        remedy: expect.stringContaining('crucible setup lambda'),
      },
    ])
  })

  it.each([
    ['us-moon-1', 'error', 'us-moon-1'],
    ['us-east-1,us-moon-1,us-moon-2', 'warning', 'us-moon-1, us-moon-2'],
  ])('in Regions that do not exist (%s) is named, with those that do', async (text, severity, unknown) => {
    const backend = await start({}, { regions: text.split(',') })
    expect(await backend.check(patiently())).toEqual([
      {
        severity,
        message: `Lambda has no Region ${unknown}, which CRUCIBLE_LAMBDA_REGIONS names`,
        remedy: expect.stringMatching(/^Name some of .*us-east-1, .*\.$/),
      },
    ])
  })

  it('is not called unusable where its Regions cannot be asked for', async () => {
    const backend = await start({}, { regions: ['us-moon-1'] })
    const where = { ...LAMBDA, action: 'regions' } as const
    h.cloud.addFault({ fault: 'error', code: 'global/not-found', status: 404, where })
    expect(await backend.check(patiently())).toEqual([])
  })

  it('because Lambda is down is passing trouble', async () => {
    const code = 'provider/internal-unavailable'
    const faults = [{ fault: 'error' as const, code, status: 503, where: LAMBDA }]
    expect(await problemsOf({ faults })).toMatchObject([
      { severity: 'error', failure: 'transient', remedy: 'Try again shortly.' },
    ])
  })
})
