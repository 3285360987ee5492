import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { WorkflowNotFoundError, type Client } from '@temporalio/client'
import { listJobs, listWithGaps, queryOf } from '../../../client/job/list'
import { readView } from '../../../client/job/read-view'
import { cancel } from '../../../client/updates'
import type { MachineHandle } from '../../../core/handle'
import type { JobInput, JobStatus } from '../../../core/messages'
import { MINUTE_MS } from '../../../core/time/time'
import { putDocument } from '../../../storage/json'
import { layout } from '../../../storage/layout'
import { putRecord } from '../../../storage/record'
import { noteSubmission } from '../../../storage/submissions'
import { StoreError } from '../../../storage/store'
import { ClientWorld, JOB, machineOf, NOW, SPEC } from '../world'
import { patient } from '../../support/patience'

const MINE = 'dep-0000000000'

let world: ClientWorld
let notes: string[]
beforeEach(async () => {
  world = await ClientWorld.make()
  notes = []
  world.context.note = (text) => void notes.push(text)
  await putDocument(world.store, layout.deployment(), { id: MINE })
  world.client = serverOf([])
})
afterEach(() => world.remove())

/** A server that knows the workflows of these jobs, which are under way, and names its deployment. */
function serverOf(
  jobIds: string[],
  deployment?: string,
  shown: { state?: string; reason?: string; status?: string } = {},
): Client {
  const { state = 'running', reason = 'under-way', status = 'RUNNING' } = shown
  const attributes: Record<string, string> = { CrucibleState: state, CrucibleReason: reason }
  const data = Buffer.from(deployment === 'no JSON' ? '{' : JSON.stringify({ deployment }))
  const none = Object.assign(new Error('none'), { code: 5 })

  const executions = jobIds.map((jobId) => ({
    workflowId: `job/${jobId}`,
    startTime: new Date(NOW),
    status: { name: status },
    typedSearchAttributes: { get: ({ name }: { name: string }) => attributes[name] },
  }))
  return {
    workflowService: {
      describeSchedule: async () => {
        if (deployment === undefined) throw none
        return { schedule: { action: { startWorkflow: { input: { payloads: [{ data }] } } } } }
      },
    },
    withDeadline: (_untilMs: number, call: () => unknown) => call(),
    workflow: {
      async *list() {
        yield* executions
      },
      getHandle: (workflowId: string) => ({
        describe: async () => {
          const known = executions.find((one) => one.workflowId === workflowId)
          if (known === undefined) throw new WorkflowNotFoundError('none', workflowId, undefined)
          return known
        },
        query: () => Promise.reject(new Error('no worker')),
        cancel: () => Promise.reject(new WorkflowNotFoundError('none', workflowId, undefined)),
      }),
    },
  } as unknown as Client
}

/** A job that was submitted so long ago, and that has ended unless it is not to. */
async function job(
  jobId: string,
  agoMs: number,
  { owner = 'somebody', isFinished = true }: { owner?: string; isFinished?: boolean } = {},
): Promise<void> {
  const submittedAtMs = NOW - agoMs
  const input = {
    jobId,
    spec: SPEC,
    bundle: null,
    owner,
    deployment: MINE,
    submittedAtMs,
  } satisfies JobInput
  await putRecord(world.store, jobId, {
    seq: 0,
    atMs: submittedAtMs,
    kind: 'submitted',
    summary: '',
    data: input,
  })
  await noteSubmission(world.store, input)
  if (!isFinished) return
  const status: JobStatus = {
    id: jobId,
    name: SPEC.name,
    owner,
    state: 'succeeded',
    reason: 'completed',
    message: 'Done.',
    submittedAtMs,
    spentMicroUsd: 7,
    attempts: [],
    attemptsTotal: 1,
    placementReasons: [],
  }
  const result = { ...status, attempts: 1, costMicroUsd: 7, artifacts: [], finishedAtMs: submittedAtMs + 5 }
  await putRecord(world.store, jobId, {
    seq: 5,
    atMs: NOW,
    kind: 'finished',
    summary: '',
    data: { result, status },
  })
}

/** A job whose machine has just sent a beat. */
async function running(): Promise<MachineHandle> {
  const submittedAtMs = NOW - 50 * MINUTE_MS
  await world.submitted({ submittedAtMs, deployment: MINE })
  await noteSubmission(world.store, { jobId: JOB, submittedAtMs })
  await world.planned(1)
  await world.record('launched', {}, 1)
  const machine = machineOf(1)
  await putDocument(world.store, layout.machine(JOB, 1), machine)
  await world.beat(1)
  return machine
}

/** A list that ends as an answer does. */
async function* ending(answer: () => Promise<never>): AsyncGenerator<never> {
  yield await answer()
}

const idsOf = async (filter = {}): Promise<string[]> =>
  (await listJobs(world.context, filter)).map(({ id }) => id)

describe('the list of jobs', () => {
  it('has those that Temporal has forgotten from the record, newest first and after the others', async () => {
    await job('job-older', 50 * MINUTE_MS)
    await job('job-newer', 40 * MINUTE_MS)
    await job('job-known', 30 * MINUTE_MS, { isFinished: false })
    world.client = serverOf(['job-known'])
    const jobs = await listJobs(world.context)
    expect(jobs.map(({ id }) => id)).toEqual(['job-known', 'job-newer', 'job-older'])
    expect(jobs[1]).toMatchObject({
      state: 'succeeded',
      owner: 'somebody',
      endedAtMs: NOW - 40 * MINUTE_MS + 5,
      cost: { spentMicroUsd: 7 },
    })
    expect(notes).toEqual([])
  })

  it('keeps to its limit and to its filter for these, too', async () => {
    await job('job-a', 50 * MINUTE_MS)
    await job('job-b', 40 * MINUTE_MS, { owner: 'another' })
    await job('job-c', 30 * MINUTE_MS)
    expect(await idsOf({ limit: 2 })).toEqual(['job-c', 'job-b'])
    expect(await idsOf({ owner: 'another' })).toEqual(['job-b'])
    expect(await idsOf({ states: ['failed'] })).toEqual([])
    expect(await idsOf({ states: ['succeeded'], limit: 1 })).toEqual(['job-c'])
    world.client = serverOf(['job-c'])
    expect(await idsOf({ limit: 1 })).toEqual(['job-c'])
  })

  it('shows a job as over when its workflow is gone without a final record', async () => {
    await job('job-lost', 50 * MINUTE_MS, { isFinished: false })
    await job('job-new', 1_000, { isFinished: false })
    expect(await listJobs(world.context)).toMatchObject([
      { id: 'job-new', state: 'pending' },
      { id: 'job-lost', state: 'failed' },
    ])
    expect((await readView(world.context, 'job-lost')).message).toMatch(/has no workflow for it/)
    expect(await readView(world.context, 'job-new')).toMatchObject({ state: 'pending' })
  })

  it('names a machine of a job that Temporal has forgotten, until garbage collection has ended it', async () => {
    const handle = await running()
    expect(await listJobs(world.context)).toMatchObject([{ id: JOB, state: 'running' }])
    expect(notes).toEqual([
      expect.stringContaining(`No longer known to Temporal, and their machines may still run: ${JOB}.`),
    ])
    const named = `local/${handle.id} may still run`
    const { message } = await readView(world.context, JOB)
    expect(message).toContain('No longer known to Temporal.')
    expect(message).toContain(named)
    expect(message).toContain('crucible gc --adopt')
    await expect(cancel(world.context, JOB)).rejects.toMatchObject({
      kind: 'not-found',
      message: expect.stringContaining(named),
    })
    const endedAtMs = NOW - 1_000
    await putDocument(world.store, layout.endedMachine(JOB, 1, handle.id), { handle, endedAtMs })
    expect(await readView(world.context, JOB)).toMatchObject({
      state: 'failed',
      attempts: [{ state: 'failed', endedAtMs }],
    })
    expect(await listJobs(world.context)).toMatchObject([{ id: JOB, state: 'failed' }])
  })

  it('has what Temporal knows where the store is away, and says what is missing', async () => {
    world.client = serverOf(['job-known'])
    const away = () => Promise.reject(new StoreError('the disk is gone', { isTransient: true }))
    Object.assign(world.store, { get: away, list: () => ending(away), head: away })
    expect(await listJobs(world.context)).toMatchObject([{ id: 'job-known', state: 'running' }])
    expect(notes).toEqual([expect.stringMatching(/does not answer \(the disk is gone\)\. Progress, cost/)])
  })

  it('does not wait long for a store that hangs', async () => {
    world.client = serverOf(['job-known', 'job-other'])
    const hang = () => new Promise<never>(() => undefined)
    Object.assign(world.store, { get: hang, list: () => ending(hang), head: hang })
    const beganMs = performance.now()
    expect(await idsOf()).toHaveLength(2)
    expect(performance.now() - beganMs).toBeLessThan(patient(20_000))
    expect(notes).toEqual([expect.stringMatching(/no answer within 5 ?s/)])
  })

  it.each([
    [true, null],
    [false, 0],
  ])(
    'has the state of a job under way, and not what it cost if an entry is unreadable: %s',
    async (isTorn, spent) => {
      await job('job-known', 50 * MINUTE_MS, { isFinished: false })
      if (isTorn) await world.store.put(layout.record('job-known', 1), '{')
      world.client = serverOf(['job-known'])
      expect(await listJobs(world.context)).toMatchObject([
        { id: 'job-known', state: isTorn ? 'running' : 'pending', cost: { spentMicroUsd: spent } },
      ])
    },
  )

  it.each([
    ['succeeded', 'completed', 'RUNNING', 'pending', 'submitted'],
    ['running', 'training', 'RUNNING', 'pending', 'submitted'],
    ['\u001b[2Jdone', '[link](http://x)', 'RUNNING', 'pending', 'submitted'],
    ['succeeded', 'completed', 'FAILED', 'failed', 'unclassified'],
    ['succeeded', 'completed', 'TERMINATED', 'failed', 'unclassified'],
  ])(
    'has the recorded state of a job whose workflow shows the unsigned word %j (%j, %s)',
    async (shown, reason, status, state, why) => {
      await job('job-mine', 50 * MINUTE_MS, { isFinished: false })
      world.client = serverOf(['job-mine'], MINE, { state: shown, reason, status })
      expect(await listJobs(world.context)).toMatchObject([{ state, reason: why }])
      expect(await idsOf({ states: ['succeeded'] })).toEqual([])
    },
  )

  it.each([
    ['stopping', 'cancelling', 'stopping', 'cancelling'],
    ['succeeded', 'completed', 'running', 'training'],
    ['pending', 'quota', 'running', 'training'],
    ['running', '\u001b[2J', 'running', 'training'],
  ])(
    'has how far an attempt is from the search attributes, and nothing that its record excludes: %s (%j)',
    async (shown, reason, state, why) => {
      await running()
      world.client = serverOf([JOB], MINE, { state: shown, reason })
      expect(await listJobs(world.context)).toMatchObject([{ state, reason: why }])
    },
  )

  it('counts the workflows that the store does not know, and lists them as no jobs', async () => {
    await job('job-mine', 50 * MINUTE_MS, { isFinished: false })
    const strangers = Array.from({ length: 120 }, (_, index) => `job-stranger-${index}`)
    world.client = serverOf([...strangers, 'job-mine', 'job-mine'])
    for (const limit of [1, 50]) {
      const { jobs, others, incomplete } = await listWithGaps(world.context, { limit })
      expect(jobs.map(({ id }) => id)).toEqual(['job-mine'])
      expect(others).toBe(120)
      expect(incomplete).toBeNull()
    }
  })

  it('passes over a limited number of them', async () => {
    await job('job-mine', 50 * MINUTE_MS)
    const strangers = Array.from({ length: 2_000 }, (_, index) => `job-stranger-${index}`)
    world.client = serverOf(strangers, MINE)
    const { jobs, others } = await listWithGaps(world.context)
    expect(jobs.map(({ id }) => id)).toEqual(['job-mine'])
    expect(others).toBe(500)
  })

  it.each([
    ['says that it is ours', MINE],
    ['says nothing', undefined],
    ['says nothing readable', 'no JSON'],
  ])('has only workflows of others on a server that %s', async (_, deployment) => {
    world.client = serverOf(['job-stranger', 'job-another'], deployment)
    expect(await listWithGaps(world.context)).toEqual({ jobs: [], others: 2, incomplete: null })
  })

  it("is refused where the server is another deployment's", async () => {
    await job('job-mine', 50 * MINUTE_MS)
    world.client = serverOf(['job-theirs', 'job-of-theirs'], 'dep-1111111111')
    await expect(listJobs(world.context)).rejects.toMatchObject({
      kind: 'usage',
      message: expect.stringMatching(
        /localhost:1 belongs to another deployment: the store .* none of its jobs/,
      ),
      hint: expect.stringMatching(/crucible dev/),
    })
  })
})

describe('the query of a list', () => {
  const hostile = `o'brien\\' OR WorkflowType = 'job`

  it.each([{ name: hostile }, { owner: hostile }, { backend: hostile }, { backend: `ec2:${hostile}` }])(
    'has the quotes and backslashes of %j inside its quotes',
    (filter) => {
      const query = queryOf(filter)
      const [quoted = '', ...others] = [...query.matchAll(/'((?:[^'\\]|\\.)*)'/g)]
        .map(([, inner]) => inner!.replace(/\\(.)/g, '$1'))
        .filter((text) => text.includes('brien'))
      expect(quoted.replace(/:$/, '')).toBe(Object.values(filter)[0])
      expect(others).toEqual([])
    },
  )
})
