import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import type { Client } from '@temporalio/client'
import { readView } from '../../../client/job/read-view'
import type { JobStatus } from '../../../core/messages'
import { formatInstant, MINUTE_MS } from '../../../core/time/time'
import { layout } from '../../../storage/layout'
import { putDocument } from '../../../storage/json'
import { putWaiter } from '../../../storage/waiting-line'
import { beatOf, ClientWorld, JOB, NO_ATTRIBUTES, NOW, statusOf } from '../world'
import { STORE_OWNER } from '../../support/marked-store'
import { patient } from '../../support/patience'

let world: ClientWorld

beforeEach(async () => {
  world = await ClientWorld.make()
})

afterEach(() => world.remove())

/** A server that knows the job. `query` may never answer; the client's own deadline ends the waiting. */
function server(
  closed: string,
  query: () => Promise<JobStatus>,
  description: object = {},
  result: () => Promise<unknown> = async () => undefined,
): { client: Partial<Client>; limitsMs: number[] } {
  const limitsMs: number[] = []
  const client = {
    withDeadline: async <T>(deadline: number | Date, ask: () => Promise<T>): Promise<T> => {
      limitsMs.push(Number(deadline) - Date.now())
      // Only a query that never answers meets its deadline, however busy the machine is.
      if (query !== never) return ask()
      const late = new Promise<never>((_, reject) => setTimeout(() => reject(new Error('deadline')), 20))
      return Promise.race([ask(), late])
    },
    workflow: {
      getHandle: () => ({
        describe: async () => ({ status: { name: closed }, ...NO_ATTRIBUTES, ...description }),
        query,
        result,
      }),
    },
  }
  return { client: client as unknown as Partial<Client>, limitsMs }
}

const never = (): Promise<never> => new Promise(() => {})

describe('a look at a job', () => {
  it('finds no job that was never submitted', async () => {
    await expect(readView(world.context, JOB)).rejects.toMatchObject({
      kind: 'not-found',
      message: expect.stringContaining(JOB),
      hint: expect.stringContaining('crucible list'),
    })
  })

  it('comes from the workflow if it answers', async () => {
    await world.submitted()
    const status = statusOf({ message: 'From the workflow.', runId: 'run-2' })
    world.client = server('RUNNING', async () => status).client
    expect(await readView(world.context, JOB)).toMatchObject({
      isLive: true,
      state: 'running',
      message: 'From the workflow.',
      uiUrl: `http://ui/namespaces/default/workflows/job%2F${JOB}/run-2/user-metadata`,
    })
  })

  it('comes from record and beat if no server answers', async () => {
    await world.submitted()
    await world.planned(1, 5_000)
    await world.machine(1)
    await world.beat(1, { progress: { step: 7, stepsTotal: 10, loss: null, atMs: NOW } })
    expect(await readView(world.context, JOB)).toMatchObject({
      isLive: false,
      state: 'running',
      progress: { step: 7, percent: 70 },
      cost: { spentMicroUsd: 5_000 },
      placement: { backend: 'local', capacityType: 'spot', realised: { type: 'process' } },
      placementReasons: ['it is cheap'],
      attempts: [{ number: 1, workflowId: `job/${JOB}/1`, state: 'running' }],
      uiUrl: `http://ui/namespaces/default/workflows/job%2F${JOB}`,
    })
  })

  it('knows from the record that a job waits for a machine, or for its pause to be over', async () => {
    await world.submitted()
    const outcome = { kind: 'wait', reason: 'No offer fits this job: out of stock.' }
    await world.record('waiting', { outcome }, 1)
    expect(await readView(world.context, JOB)).toMatchObject({
      state: 'pending',
      reason: 'waiting-for-capacity',
      message: outcome.reason,
    })
    await world.planned(1, 0, 5 * MINUTE_MS)
    expect(await readView(world.context, JOB)).toMatchObject({
      state: 'provisioning',
      attempts: [{ state: 'provisioning', reason: `waits until ${formatInstant(NOW + 5 * MINUTE_MS)}` }],
    })
  })

  it('does not wait longer than two seconds for a server or a worker that hang', async () => {
    await world.submitted()
    const { client, limitsMs } = server('RUNNING', never)
    world.client = client
    expect(await readView(world.context, JOB)).toMatchObject({ isLive: false, state: 'pending' })
    expect(limitsMs).toHaveLength(2)
    for (const limitMs of limitsMs) expect(limitMs).toBeLessThanOrEqual(2_000)
  })

  it('does not wait longer for a connection that does not come about', async () => {
    await world.submitted()
    world.context.temporal = never
    const startedAtMs = performance.now()
    expect(await readView(world.context, JOB)).toMatchObject({ isLive: false, state: 'pending' })
    const tookMs = performance.now() - startedAtMs
    expect(tookMs).toBeGreaterThan(1_900)
    expect(tookMs).toBeLessThan(patient(20_000))
  })

  it('says so when the workflow was terminated by hand', async () => {
    await world.submitted()
    world.client = server('TERMINATED', never).client
    const view = await readView(world.context, JOB)
    expect(view).toMatchObject({ isLive: true, state: 'failed', reason: 'unclassified' })
    expect(view.message).toMatch(/terminated by hand.*crucible gc/)
    expect(view.continuation?.command).toBe(`crucible submit --from ${JOB} --fresh`)
  })

  it.each([
    ['FAILED', { state: 'failed', reason: 'unclassified' }],
    ['CANCELLED', { state: 'cancelled', reason: 'cancelled' }],
    ['COMPLETED', { state: 'succeeded', reason: 'completed' }],
    ['TIMED_OUT', { state: 'failed', reason: 'unclassified' }],
  ])(
    'says how a job ended whose workflow closed without completing its record: %s',
    async (closed, expected) => {
      await world.submitted()
      world.client = server(closed, async () => statusOf({ state: 'recovering' })).client
      const view = await readView(world.context, JOB)
      expect(view).toMatchObject({ isLive: true, trouble: null, ...expected })
      const go = expected.state === 'succeeded' ? undefined : `crucible submit --from ${JOB} --fresh`
      expect(view.continuation?.command).toBe(go)
    },
  )

  it('says why a workflow refused its input', async () => {
    await world.submitted()
    const cause = new Error("Refused the input: the sender's clock is skewed")
    const failed = Object.assign(new Error('Workflow execution failed', { cause }), {
      name: 'WorkflowFailedError',
    })
    world.client = server('FAILED', never, {}, () => Promise.reject(failed)).client
    const { message } = await readView(world.context, JOB)
    expect(message).toMatch(/^Its workflow failed: Refused the input: the sender's clock is skewed\. Garbage/)
  })

  it('joins what an attempt put on record after its job was terminated by hand', async () => {
    await world.submitted()
    await world.planned(1)
    await world.machine(1)
    await world.beat(1)
    await world.settled(1, { costMicroUsd: 300 })
    world.client = server('TERMINATED', async () => statusOf({ state: 'running' })).client
    const { attempts, cost } = await readView(world.context, JOB)
    expect(attempts).toMatchObject([{ state: 'succeeded', costMicroUsd: 300 }])
    expect(cost.spentMicroUsd).toBe(300)
  })

  it('shows no running machine once job and attempt were both terminated by hand', async () => {
    await world.submitted()
    await world.planned(1)
    await world.machine(1)
    await world.beat(1)
    world.client = server('TERMINATED', never, { closeTime: new Date(NOW) }).client
    const { attempts } = await readView(world.context, JOB)
    expect(attempts).toMatchObject([{ state: 'failed', endedAtMs: NOW }])
  })

  it('tells what Temporal is trying again, and how often it was tried', async () => {
    await world.submitted()
    const pending = {
      activityType: { name: 'settle' },
      state: 1,
      attempt: 4,
      lastFailure: { message: 'disk full' },
      nextAttemptScheduleTime: { seconds: NOW / 1_000 },
    }
    const raw = { pendingActivities: [pending] }
    world.client = server('RUNNING', async () => statusOf(), { raw }).client
    expect(await readView(world.context, JOB)).toMatchObject({
      trouble: { message: 'disk full', tries: 3, nextTryAtMs: NOW },
    })
  })

  it('shows the cause of a failure that Temporal cuts off for its size', async () => {
    await world.submitted()
    const lastFailure = {
      message: 'Failure exceeds size limit.',
      serverFailureInfo: { nonRetryable: false },
      cause: { message: 'the store refuses the key' },
    }
    const pending = { activityType: { name: 'settle' }, state: 1, attempt: 4, lastFailure }
    world.client = server('RUNNING', async () => statusOf(), { raw: { pendingActivities: [pending] } }).client
    expect(await readView(world.context, JOB)).toMatchObject({
      trouble: { message: 'the store refuses the key' },
    })
  })

  it.each([
    ['a first try', { attempt: 1 }],
    ['a wait for capacity', { lastFailure: { message: 'none', applicationFailureInfo: { category: 1 } } }],
    ['a watch that has gone on', { activityType: { name: 'watch' }, state: 2 }],
  ])('takes nothing for trouble that is none: %s', async (_name, fields) => {
    await world.submitted()
    const pending = {
      activityType: { name: 'settle' },
      state: 1,
      attempt: 4,
      lastFailure: { message: 'disk full' },
      ...fields,
    }
    const raw = { pendingActivities: [pending] }
    world.client = server('RUNNING', async () => statusOf(), { raw }).client
    expect((await readView(world.context, JOB)).trouble).toBeNull()
  })

  it('reads a finished job from its record alone', async () => {
    await world.submitted()
    await world.planned(1)
    await world.settled(1)
    const done = statusOf({ state: 'succeeded', reason: 'completed', message: 'The job is done.' })
    await world.finished(done)
    const connect = jest.spyOn(world.context, 'temporal')
    expect(await readView(world.context, JOB)).toMatchObject({
      isLive: true,
      state: 'succeeded',
      endedAtMs: NOW,
      message: 'The job is done.',
    })
    expect(connect).not.toHaveBeenCalled()
  })

  it('says which artifacts of a finished job the store no longer holds', async () => {
    await world.submitted()
    await world.planned(1)
    const artifact = (path: string) => ({ path, sizeBytes: 3, sha256: 'a'.repeat(64) })
    await world.settled(1, { artifacts: [artifact('kept.txt'), artifact('out/lost.txt')] })
    await world.store.put(`${layout.artifactsOf(JOB, 1)}kept.txt`, 'all')
    await world.finished(statusOf({ state: 'succeeded', reason: 'completed', message: 'The job is done.' }))
    expect(await readView(world.context, JOB)).toMatchObject({
      state: 'succeeded',
      incomplete: "The store does not hold artifacts that the job's result names: out/lost.txt.",
    })
  })

  it('reads the record again once its workflow has closed', async () => {
    await world.submitted()
    const done = statusOf({ state: 'succeeded', reason: 'completed', message: 'The job is done.' })
    const finishing = async (): Promise<JobStatus> => {
      await world.finished(done)
      return statusOf({ state: 'running' })
    }
    world.client = server('COMPLETED', finishing).client
    const seen = await readView(world.context, JOB)
    expect(seen).toMatchObject({ state: 'succeeded', message: 'The job is done.', endedAtMs: NOW })
  })

  it('does not read the record again while its workflow is open', async () => {
    await world.submitted()
    world.client = server('RUNNING', async () => statusOf()).client
    const list = jest.spyOn(world.store, 'list')
    await readView(world.context, JOB)
    const reads = list.mock.calls.filter(([prefix]) => prefix === layout.records(JOB))
    expect(reads).toHaveLength(1)
  })

  it('shows the result of a workflow that closed before its record was complete, with the end of its last attempt', async () => {
    await world.submitted()
    const [attempt] = statusOf().attempts
    const attempts = [1, 2, 3].map((number) => ({ ...attempt!, number, endedAtMs: NOW + number }))
    const done = statusOf({ state: 'succeeded', reason: 'completed', message: 'Done.', attempts })
    world.client = server('COMPLETED', async () => done).client
    const seen = await readView(world.context, JOB)
    expect(seen).toMatchObject({ state: 'succeeded', message: 'Done.', endedAtMs: NOW + 3 })
  })

  it('leads to the page of the run that was terminated', async () => {
    await world.submitted()
    world.client = server('TERMINATED', async () => statusOf({ runId: 'run-7' })).client
    const { uiUrl } = await readView(world.context, JOB)
    expect(uiUrl).toBe(`http://ui/namespaces/default/workflows/job%2F${JOB}/run-7/user-metadata`)
  })

  it("is not called forgotten by another deployment's server", async () => {
    await world.submitted()
    await world.planned(1)
    await world.machine(1)
    await putDocument(world.store, layout.deployment(), { id: STORE_OWNER })
    const notFound = Object.assign(new Error('gone'), { name: 'WorkflowNotFoundError' })
    const data = Buffer.from(JSON.stringify({ deployment: 'dep-zzzzzzzzzz' }))
    const input = { payloads: [{ data }] }
    const describeSchedule = async () => ({ schedule: { action: { startWorkflow: { input } } } })
    world.client = {
      ...server('', () => Promise.reject(notFound)).client,
      withDeadline: () => Promise.reject(notFound),
      workflowService: { describeSchedule } as unknown as Client['workflowService'],
    }
    await expect(readView(world.context, JOB)).rejects.toMatchObject({
      kind: 'usage',
      message: expect.stringMatching(/belongs to another deployment/),
    })
  })

  it.each([
    ['may start within a minute', false, MINUTE_MS, { state: 'pending', isLive: false }],
    ['is over after a minute', false, MINUTE_MS + 1, { state: 'failed', isLive: true }],
    ['is over at once if it had begun', true, 1, { state: 'failed', isLive: true }],
  ])('that the server does not know %s', async (_, hasBegun, afterMs, expected) => {
    await world.submitted()
    if (hasBegun) {
      await world.record('resolved', {})
      await world.planned(1)
    }
    const notFound = Object.assign(new Error('gone'), { name: 'WorkflowNotFoundError' })
    world.client = server('', () => Promise.reject(notFound)).client
    world.client.withDeadline = () => Promise.reject(notFound)
    world.nowMs = NOW + afterMs
    const { state, isLive, attempts } = await readView(world.context, JOB)
    expect({ state, isLive }).toEqual(expected)
    // Nothing says when it ended.
    expect(attempts.at(-1)?.endedAtMs ?? null).toBeNull()
  })

  it('tells its place in the line of jobs that wait for the same', async () => {
    await world.submitted()
    const line = { wish: 'a100', backends: ['local'] }
    await putWaiter(world.store, { ...line, jobId: 'job-older00000', sinceMs: NOW - 1 })
    await putWaiter(world.store, { ...line, jobId: JOB, sinceMs: NOW })
    const list = jest.spyOn(world.store, 'list')
    expect((await readView(world.context, JOB)).waiting).toBeNull()
    expect(list).not.toHaveBeenCalledWith(layout.waiting())
    await world.record('waiting', { outcome: { kind: 'wait', reason: 'Out of stock.' } }, 1)
    expect((await readView(world.context, JOB)).waiting).toMatchObject({ position: 2 })
  })

  it("is queued while the provider bills nothing, until the machine's runner reports", async () => {
    await world.submitted()
    await world.planned(1)
    // Without a machine nothing is billed.
    const get = jest.spyOn(world.store, 'get')
    await readView(world.context, JOB)
    expect(get).not.toHaveBeenCalledWith(layout.billing(JOB, 1))
    await world.machine(1)
    await world.store.put(layout.billing(JOB, 1), JSON.stringify({ fromAtMs: null }))
    world.nowMs = NOW + MINUTE_MS
    expect(await readView(world.context, JOB)).toMatchObject({
      state: 'provisioning',
      reason: 'queued',
      queuedSinceMs: NOW,
      attempts: [{ billedFromAtMs: null, costMicroUsd: 0 }],
    })
    await world.store.put(layout.billing(JOB, 1), JSON.stringify({ fromAtMs: NOW + MINUTE_MS / 2 }))
    const { attempts } = await readView(world.context, JOB)
    expect(attempts).toMatchObject([{ billedFromAtMs: NOW + MINUTE_MS / 2, costMicroUsd: 30_000 }])
    await world.beat(1)
    expect((await readView(world.context, JOB)).state).toBe('running')
    // Once the watch reports the cost, the document is no longer needed.
    const metered = { toAtMs: NOW, costMicroUsd: 1, priceMicroUsdPerHour: 1 }
    const lease = { seq: 1, answersBeat: 1, ttlMs: MINUTE_MS, metered }
    await world.store.put(layout.lease(JOB, 1), JSON.stringify(lease))
    get.mockClear()
    await readView(world.context, JOB)
    expect(get).not.toHaveBeenCalledWith(layout.billing(JOB, 1))
  })

  it('reads nothing of an attempt that is over', async () => {
    await world.submitted()
    await world.planned(1)
    await world.beat(1, { progress: { step: 7, stepsTotal: 10, loss: null, atMs: NOW } })
    await world.settled(1)
    const get = jest.spyOn(world.store, 'get')
    await readView(world.context, JOB)
    expect(get).not.toHaveBeenCalledWith(layout.beat(JOB, 1))
  })

  it('follows the record through an interruption', async () => {
    await world.submitted()
    await world.planned(1)
    const failure = { class: 'interrupted', message: 'Taken back.' } as const
    await world.settled(1, {
      end: { kind: 'failed', failure, isLaunched: true },
      checkpoint: { id: '000000000005-1', step: 5, attempt: 1 },
      stepsLost: 2,
      costMicroUsd: 300,
    })
    await world.decided(1, {
      kind: 'again',
      reason: 'interrupted',
      message: 'Taken back.',
      afterMs: 0,
      avoid: [],
    })
    expect(await readView(world.context, JOB)).toMatchObject({ state: 'recovering', reason: 'interrupted' })
    await world.planned(2, 300)
    expect(await readView(world.context, JOB)).toMatchObject({
      state: 'provisioning',
      cost: { spentMicroUsd: 300 },
      attempts: [
        {
          number: 1,
          state: 'interrupted',
          reason: 'interrupted: Taken back.',
          stepsLost: 2,
          costMicroUsd: 300,
        },
        { number: 2, state: 'provisioning' },
      ],
    })
  })

  it('does without a beat that cannot be read', async () => {
    await world.submitted()
    await world.planned(1)
    await world.store.put(layout.beat(JOB, 1), '{"seq": 1')
    expect(await readView(world.context, JOB)).toMatchObject({ state: 'provisioning', progress: null })
    await world.store.put(layout.beat(JOB, 1), JSON.stringify(beatOf(1)))
    expect(await readView(world.context, JOB)).toMatchObject({ state: 'running' })
  })
})
