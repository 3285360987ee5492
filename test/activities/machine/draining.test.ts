import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { ServiceError, WorkflowNotFoundError, type Client } from '@temporalio/client'
import { MockActivityEnvironment } from '@temporalio/testing'
import { createDrainingActivities } from '../../../activities/machine/draining'
import { sentId } from '../../../activities/sent-id'
import { DRAIN_SIGNAL } from '../../../core/messages'
import { layout } from '../../../storage/layout'
import { perform, Place } from '../place'

let place: Place

beforeEach(async () => {
  place = await Place.make()
})
afterEach(() => place.dispose())

const draining = (client: unknown): ReturnType<typeof createDrainingActivities> =>
  createDrainingActivities({ client: client as Client, store: place.store, now: place.now })

const REQUEST = { reason: 'migrated', windowMs: 2_000 } as const

/** Tells attempt 2 of a job to stop, on a server that answers so. */
async function told(answer: () => Promise<void>): Promise<{ workflowId: string; args: unknown[] }[]> {
  const calls: { workflowId: string; args: unknown[] }[] = []
  const getHandle = jest.fn((workflowId: string) => ({
    signal: (...args: unknown[]) => {
      calls.push({ workflowId, args })
      return answer()
    },
    cancel: async () => void calls.push({ workflowId, args: ['cancel'] }),
  }))
  const input = { jobId: 'job-a', attempt: 2, request: REQUEST }
  await perform(draining({ workflow: { getHandle } }), 'stopAttempt', input)
  return calls
}

describe('an attempt that is to stop', () => {
  it('gets the signal with its reason and its window', async () => {
    expect(await told(() => Promise.resolve())).toEqual([
      { workflowId: 'job/job-a/2', args: [DRAIN_SIGNAL, REQUEST] },
    ])
  })

  it('gets it under an id that begins with the run of its job', async () => {
    const runId = '01a22694-1f16-7e5f-aa7c-c8521c046d4d'
    const environment = new MockActivityEnvironment({ workflowExecution: { workflowId: 'job/job-a', runId } })
    expect(await environment.run(async () => sentId())).toMatch(new RegExp(`^${runId}/[0-9a-f-]{36}$`))
    expect(sentId()).toMatch(/^[0-9a-f-]{36}$/)
  })

  it('need not be told once it is over', async () => {
    const over = new WorkflowNotFoundError('over', 'job/job-a/2', undefined)
    await expect(told(() => Promise.reject(over))).resolves.toHaveLength(1)
  })

  it('is cancelled if the server takes no more signals for it', async () => {
    const details = 'exceeded workflow execution limit for signal events'
    const refused = Object.assign(new Error(details), { code: 3, details, metadata: {} })
    const full = new ServiceError('Failed to signal Workflow', { cause: refused })
    expect((await told(() => Promise.reject(full))).map(({ args }) => args[0])).toEqual([
      DRAIN_SIGNAL,
      'cancel',
    ])
  })

  it('is ended by the job itself if the server cannot be reached from here', async () => {
    await expect(told(() => Promise.reject(new Error('unavailable')))).rejects.toThrow('unavailable')
  })
})

describe('drain and extend', () => {
  it('put their documents where the runner reads them, once', async () => {
    const activities = draining({})
    const at = { jobId: 'job-a', attempt: 3 }
    await perform(activities, 'drain', { ...at, drain: { reason: 'deadline', windowMs: 7 } })
    await perform(activities, 'drain', { ...at, drain: { reason: 'cancelled', windowMs: 1 } })
    expect(await place.read(layout.drain('job-a', 3))).toMatchObject({ reason: 'deadline', windowMs: 7 })
    const limits = { seq: 2, deadlineAtMs: 5, budget: { microUsd: 6, priceMaxMicroUsdPerHour: 7 } }
    await perform(activities, 'extend', { ...at, limits })
    expect(await place.read(layout.limits('job-a', 3, 2))).toEqual(limits)
  })
})
