import { describe, expect, it } from '@jest/globals'
import { WorkflowNotFoundError, type Client } from '@temporalio/client'
import { ownersThrough } from '../../workers/owners'

/** A client that knows one status of every workflow, or fails. */
function clientWith(status: string | Error, described: string[] = []): Client {
  const describe = async (): Promise<unknown> => {
    if (status instanceof Error) throw status
    return { status: { name: status } }
  }
  const getHandle = (workflowId: string) => {
    described.push(workflowId)
    return { describe }
  }
  return { workflow: { getHandle } } as unknown as Client
}

describe('an owner', () => {
  it.each([
    ['RUNNING', 'open'],
    ['PAUSED', 'open'],
    ['COMPLETED', 'closed'],
    ['FAILED', 'closed'],
    ['CANCELLED', 'closed'],
    ['TERMINATED', 'closed'],
    ['TIMED_OUT', 'closed'],
    ['CONTINUED_AS_NEW', 'closed'],
  ])('that is %s is %s', async (status, fate) => {
    expect(await ownersThrough(clientWith(status))({ jobId: 'job-a' })).toBe(fate)
  })

  it('is described by its id, never looked for in a list', async () => {
    const described: string[] = []
    const owners = ownersThrough(clientWith('RUNNING', described))
    await owners({ jobId: 'job-a' })
    await owners({ jobId: 'job-a', attempt: 2 })
    expect(described).toEqual(['job/job-a', 'job/job-a/2'])
  })

  it('that the server does not know is absent; that the server does not answer tells nothing', async () => {
    const unknown = new WorkflowNotFoundError('none', 'job/job-a', undefined)
    expect(await ownersThrough(clientWith(unknown))({ jobId: 'job-a' })).toBe('absent')
    await expect(ownersThrough(clientWith(new Error('UNAVAILABLE')))({ jobId: 'job-a' })).rejects.toThrow(
      'UNAVAILABLE',
    )
  })
})
