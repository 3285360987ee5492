import { randomInt } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals'
import { matchesOf } from '../../client/job/list'
import { makeJobId } from '../../core/ids'
import type { JobState } from '../../core/job/job'
import { attemptIdOf, JOB_ID_PATTERN, parseAttemptId, SEARCH_ATTRIBUTES } from '../../core/queues'
import { readRecords } from '../../storage/record'
import { serverOfShortHistories } from '../support/own-server'
import { connectTo, quietWorkers, type TestConnection } from '../support/temporal'
import { Deployment, LONG, SPOT, statusOf, worldsOn, type JobHandle, type WorldWishes } from './harness'
import { WARNING } from '../backends/scripted/scripted-runner'
import { until } from '../support/until'
import { eventually, forReason, inState, TEST_LIMIT_MS } from './looks'

jest.setTimeout(TEST_LIMIT_MS)

let at: TestConnection

beforeAll(async () => {
  quietWorkers()
  at = await connectTo()
})
afterAll(() => at.close())

const inWorld = worldsOn(() => at)

describe('the id of a job', () => {
  it('is legal as a name at every provider, its attempts included, and never the same twice', () => {
    const names = ['char-lm', '3d-unet', 'a', `long-${'x'.repeat(35)}`, `dashes-${'-'.repeat(26)}x`]
    const ids = names.flatMap((name) => Array.from({ length: 200 }, () => makeJobId(name, randomInt)))
    expect(new Set(ids).size).toBe(1_000)
    expect(ids[0]).toMatch(/^char-lm-[a-z][a-z0-9]{5}$/)
    expect(ids[200]).toMatch(/^job-3d-unet-[a-z][a-z0-9]{5}$/)
    for (const id of ids) {
      expect(id).toMatch(JOB_ID_PATTERN)
      expect(attemptIdOf(id, 100_000)).toMatch(/^[a-z][a-z0-9-]{0,59}$/)
      expect(parseAttemptId(attemptIdOf(id, 12))).toEqual({ jobId: id, attempt: 12 })
    }
    const longest = 'a'.repeat(40)
    expect(longest).toMatch(JOB_ID_PATTERN)
    expect(attemptIdOf(longest, 9_999).length).toBeLessThanOrEqual(60)
    expect(`${longest}a`).not.toMatch(JOB_ID_PATTERN)
  })

  it.concurrent(
    'is never used again, not even when the job is over',
    inWorld({}, async (deployment) => {
      const job = await deployment.submit()
      await job.result()
      await expect(deployment.submit()).rejects.toMatchObject({
        name: 'WorkflowExecutionAlreadyStartedError',
      })
    }),
  )
})

describe('an attempt, as Temporal lists it', () => {
  it.concurrent(
    'has failed when it lost its machine or its program failed, and completed when it finished',
    inWorld(
      {
        behave: ({ attempt }) =>
          attempt === 1 ? { diesAtStep: 35 } : attempt === 2 ? { fails: { atStep: 40, exitCode: 1 } } : {},
      },
      async (deployment) => {
        const job = await deployment.submit({ retries: { failures: 1, interruptions: 1 } })
        expect(await job.result()).toMatchObject({ state: 'succeeded', attempts: 3 })
        const { attempts } = await statusOf(job)
        expect(attempts.map(({ state }) => state)).toEqual(['interrupted', 'failed', 'succeeded'])
        const described = await Promise.all(
          attempts.map(({ workflowId }) => deployment.client.workflow.getHandle(workflowId).describe()),
        )
        expect(described.map(({ status }) => status.name)).toEqual(['FAILED', 'FAILED', 'COMPLETED'])
      },
    ),
  )
})

describe('an attempt, as its job starts it', () => {
  it.concurrent(
    'has a name of its own for ever, is asked and not killed when its job closes, and says what it is',
    inWorld({}, async (deployment) => {
      const job = await deployment.submit()
      await job.result()
      const { events } = await job.fetchHistory()
      const [started] = events!.flatMap(
        (event) => event.startChildWorkflowExecutionInitiatedEventAttributes ?? [],
      )
      expect(started).toMatchObject({
        workflowId: 'job/job-test/1',
        workflowType: { name: 'attempt' },
        // `temporal.api.enums.v1`: PARENT_CLOSE_POLICY_REQUEST_CANCEL, WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE
        parentClosePolicy: 3,
        workflowIdReusePolicy: 3,
      })
      const { searchAttributes } = await deployment.client.workflow.getHandle('job/job-test/1').describe()
      expect(searchAttributes).toMatchObject({
        [SEARCH_ATTRIBUTES.name]: ['train'],
        [SEARCH_ATTRIBUTES.owner]: ['somebody'],
        [SEARCH_ATTRIBUTES.state]: ['succeeded'],
        [SEARCH_ATTRIBUTES.backend]: ['scripted:spot'],
      })
    }),
  )
})

interface Metadata {
  definition: { queryDefinitions: { name: string }[]; updateDefinitions: { name: string }[] }
  currentDetails: string
}

/** The page of the job's first attempt. */
async function attemptPage({ client }: JobHandle): Promise<string> {
  const attempt = client.getHandle('job/job-test/1')
  return (await attempt.query<Metadata>('__temporal_workflow_metadata')).currentDetails
}

describe("the job's page in the Temporal UI", () => {
  it.concurrent(
    'tells state, place and reasons in the words of the plan, and there is one query',
    inWorld({ behave: () => LONG }, async (deployment) => {
      const job = await deployment.submit({ deadlineAtMs: Date.now() + 600_000 })
      await inState(job, 'running')
      const page = await job.query<Metadata>('__temporal_workflow_metadata')
      const status = await statusOf(job)
      expect(page.currentDetails).toContain('**running** (under-way): Attempt 1 is in progress.')
      const reasons = status.placementReasons.join('; ').replace(/\$[\d.]+/g, (amount) => `\`${amount}\``)
      expect(page.currentDetails).toContain(`**Chosen because:** ${reasons}`)
      expect(page.currentDetails).toContain('\n1. **in progress** on scripted spot\n')
      const ofAttempt = await attemptPage(job)
      expect(ofAttempt).toMatch(/^\*\*running\*\*/)
      expect(ofAttempt).toContain('- machine: spot v100 a')
      expect(page.currentDetails).toContain('- deadline: 20')
      const names = (definitions: { name: string }[]): string[] =>
        definitions.map(({ name }) => name).filter((name) => !name.startsWith('__'))
      expect(names(page.definition.queryDefinitions)).toEqual(['status'])
      const updates = names(page.definition.updateDefinitions).sort()
      // `interrupt` is for the jobs of a rehearsal; others refuse it.
      expect(updates).toEqual(['cancelNow', 'extend', 'interrupt', 'migrate'])
      const { searchAttributes } = await job.describe()
      expect(searchAttributes).toMatchObject({
        [SEARCH_ATTRIBUTES.state]: ['running'],
        [SEARCH_ATTRIBUTES.reason]: ['under-way'],
        [SEARCH_ATTRIBUTES.backend]: ['scripted:spot'],
      })
    }),
  )

  it.concurrent(
    'leaves it to the index of attempts whether a job under way runs',
    inWorld(
      { behave: ({ jobId }) => ({ ...LONG, neverBoots: jobId === 'job-boots' }) },
      async (deployment) => {
        const { client } = deployment
        await deployment.submit({}, { jobId: 'job-runs' })
        await deployment.submit({}, { jobId: 'job-boots' })
        const found = async (...states: JobState[]): Promise<string[]> => {
          const ids: string[] = []
          for await (const { workflowId } of matchesOf(client, { states })) ids.push(workflowId)
          return ids.sort()
        }
        await eventually(async () => (await found('running')).length > 0)
        expect(await found('running')).toEqual(['job/job-runs'])
        await eventually(async () => (await found('provisioning')).length === 1)
        expect(await found('provisioning', 'failed')).toEqual(['job/job-boots'])
        expect(await found('running', 'provisioning')).toEqual(['job/job-boots', 'job/job-runs'])
        expect(await found('stopping')).toEqual([])
      },
    ),
  )

  const WARNS = { ...LONG, stepsPerSecond: 20, warns: { fromStep: 10, untilStep: 60 } }
  it.concurrent(
    'shows what the runner of a running attempt warns of, for as long as it does',
    inWorld({ behave: () => WARNS, timing: { beatMs: 100 } }, async (deployment) => {
      const job = await deployment.submit()
      const attempt = deployment.client.workflow.getHandle('job/job-test/1')
      const pages = async (): Promise<boolean[]> => {
        const read = await Promise.all(
          [job, attempt].map((handle) => handle.query<Metadata>('__temporal_workflow_metadata')),
        )
        return read.map(({ currentDetails }) => currentDetails.includes(`:** ${WARNING.text}`))
      }
      await inState(job, 'running')
      await until(async () => (await pages()).every((isShown) => isShown))
      await until(async () => (await pages()).every((isShown) => !isShown))
    }),
  )
})

describe('a command at the wrong moment', () => {
  const refusal = (job: JobHandle, update: string, argument: unknown = {}): Promise<string> =>
    job.executeUpdate(update, { args: [argument] }).then(
      () => 'accepted',
      (error: { cause?: Error }) => error.cause?.message ?? '',
    )

  it.concurrent(
    'is refused: there is nothing to move while a job waits for a machine',
    inWorld({ wares: [{ ...SPOT, stock: 0 }] }, async (deployment) => {
      const job = await deployment.submit()
      await forReason(job, 'waiting-for-capacity')
      expect(await refusal(job, 'migrate')).toBe('Nothing to move: the job is pending.')
    }),
  )

  it.concurrent(
    'is refused: a job that is being stopped is neither moved nor given more',
    inWorld(
      { behave: () => ({ ...LONG, isDeaf: true }), timing: { drainMs: 150_000 } },
      async (deployment) => {
        const job = await deployment.submit()
        await inState(job, 'running')
        await job.cancel()
        await inState(job, 'stopping')
        expect(await refusal(job, 'migrate')).toBe('The job is being stopped and cannot be moved.')
        const later = { deadlineAtMs: Date.now() + 600_000 }
        expect(await refusal(job, 'extend', later)).toContain('continue it as a new job')
        // In a hurry it may still be.
        expect(await refusal(job, 'cancelNow')).toBe('accepted')
        await expect(job.result()).rejects.toThrow()
      },
    ),
  )
})

describe('a job of many attempts', () => {
  it('continues as new between two of them, never in one, and loses nothing', async () => {
    const { at: other, stop } = await serverOfShortHistories(60)
    const LOSSES = 6
    const behave: WorldWishes['behave'] = ({ attempt }) =>
      attempt <= LOSSES ? { diesAtStep: attempt * 12 } : {}
    const deployment = await Deployment.start(other, { behave })
    try {
      const job = await deployment.submit()
      const { runId } = await job.describe()
      expect(await job.result()).toMatchObject({ state: 'succeeded', attempts: LOSSES + 1 })
      const first = deployment.client.workflow.getHandle(job.workflowId, runId)
      expect((await first.describe()).status.name).toBe('CONTINUED_AS_NEW')
      const types = (await first.fetchHistory()).events!
      const count = (name: 'Completed' | 'Failed' | 'Started'): number =>
        types.filter((event) => event[`childWorkflowExecution${name}EventAttributes`]).length
      expect(count('Completed') + count('Failed')).toBe(count('Started'))

      const status = await statusOf(deployment.client.workflow.getHandle(job.workflowId) as JobHandle)
      expect(status.attempts.map(({ number }) => number)).toEqual([1, 2, 3, 4, 5, 6, 7])
      expect(status.spentMicroUsd).toBe(
        status.attempts.reduce((sum, { costMicroUsd }) => sum + costMicroUsd, 0),
      )
      const records = await readRecords(deployment.store, 'job-test')
      expect(records.map(({ seq }) => seq)).toEqual(records.map((_, index) => index + 1))
      for (const { workflowId, state } of status.attempts) {
        const runs = deployment.client.workflow.list({ query: `WorkflowId = '${workflowId}'` })
        const names: string[] = []
        for await (const run of runs) names.push(run.status.name)
        expect(names).toEqual([state === 'interrupted' ? 'FAILED' : 'COMPLETED'])
      }
    } finally {
      await deployment.close()
      await stop()
    }
  })
})
