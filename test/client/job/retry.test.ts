import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { WorkflowNotFoundError, type Client } from '@temporalio/client'
import { retryNow } from '../../../client/job/retry'
import { ClientWorld, JOB } from '../world'

const [job, attempt] = [`job/${JOB}`, `job/${JOB}/1`]
let world: ClientWorld
beforeEach(async () => {
  world = await ClientWorld.make()
  await world.submitted()
  await world.planned(1)
})
afterEach(() => world.remove())

/** A server with a workflow for each id, which takes a signal or answers it with an error, and waits for this try of an activity. */
function serverOf(workflows: Record<string, Error | { attempt: number }>): string[] {
  const reset: string[] = []
  const getHandle = (workflowId: string): unknown => {
    const own = workflows[workflowId]
    const answer = own ?? new WorkflowNotFoundError('none', workflowId, undefined)
    const activity = { activityId: '7', activityType: { name: 'plan' }, state: 1, ...own }
    return {
      signal: () => (answer instanceof Error ? Promise.reject(answer) : Promise.resolve()),
      query: () => Promise.reject(new Error('no worker')),
      describe: async () => ({
        workflowId,
        status: { name: 'RUNNING' },
        typedSearchAttributes: { get: () => 'provisioning' },
        raw: {
          pendingActivities: [activity],
          pendingChildren: workflowId === job ? [{ workflowId: attempt }] : [],
        },
      }),
    }
  }
  const workflowService = {
    resetActivity: async ({ execution, id }: { execution: { workflowId: string }; id: string }) =>
      void reset.push(`${execution.workflowId} ${id}`),
  }
  world.client = {
    options: { namespace: 'default', identity: 'somebody' },
    workflow: { getHandle },
    workflowService,
    withDeadline: (_untilMs: number, call: () => unknown) => call(),
  } as unknown as Client
  return reset
}

describe('a retry', () => {
  it('ends the pauses of the job and of its newest attempt', async () => {
    const reset = serverOf({ [job]: { attempt: 2 }, [attempt]: { attempt: 3 } })
    expect(await retryNow(world.context, JOB)).toEqual({ message: 'Retrying now: plan, plan.' })
    expect(reset).toEqual([`${job} 7`, `${attempt} 7`])
  })

  it('of a job that is not open is refused', async () => {
    serverOf({})
    await expect(retryNow(world.context, JOB)).rejects.toMatchObject({
      kind: 'not-found',
      message: expect.stringMatching(`^The Temporal server does not know ${JOB}, or has closed it\\.`),
    })
  })

  it.each([job, attempt])('reports that the server is away, and nothing as over: %s', async (workflowId) => {
    const away = new Error('the server is away')
    serverOf({ [job]: { attempt: 1 }, [attempt]: { attempt: 1 }, [workflowId]: away })
    await expect(retryNow(world.context, JOB)).rejects.toBe(away)
  })
})
