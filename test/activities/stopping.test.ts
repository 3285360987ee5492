import { describe, expect, it, jest } from '@jest/globals'
import { WorkflowNotFoundError, type Client } from '@temporalio/client'
import { createStoppingActivities } from '../../activities/stopping'
import { DRAIN_SIGNAL } from '../../core/messages'

const REQUEST = { reason: 'migrated', windowMs: 2_000 } as const

/** Tells attempt 2 of a job to stop, on a server that answers so. */
async function told(answer: () => Promise<void>): Promise<{ workflowId: string; args: unknown[] }[]> {
  const calls: { workflowId: string; args: unknown[] }[] = []
  const getHandle = jest.fn((workflowId: string) => ({
    signal: (...args: unknown[]) => {
      calls.push({ workflowId, args })
      return answer()
    },
  }))
  const client = { workflow: { getHandle } } as unknown as Client
  await createStoppingActivities({ client }).stopAttempt({ jobId: 'job-a', attempt: 2, request: REQUEST })
  return calls
}

describe('an attempt that is to stop', () => {
  it('gets the signal with its reason and its window', async () => {
    expect(await told(() => Promise.resolve())).toEqual([
      { workflowId: 'job/job-a/2', args: [DRAIN_SIGNAL, REQUEST] },
    ])
  })

  it('need not be told once it is over', async () => {
    const over = new WorkflowNotFoundError('over', 'job/job-a/2', undefined)
    await expect(told(() => Promise.reject(over))).resolves.toHaveLength(1)
  })

  it('is told by the job itself where the server cannot be reached from here', async () => {
    await expect(told(() => Promise.reject(new Error('unavailable')))).rejects.toThrow('unavailable')
  })
})
