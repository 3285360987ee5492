import { describe, expect, it } from '@jest/globals'
import { Context } from '@temporalio/activity'
import { MockActivityEnvironment } from '@temporalio/testing'
import type { Client } from '@temporalio/client'
import { stamped } from '../../core/stamps'
import type { ObjectStore } from '../../storage/store'
import { onlyFor } from '../../activities/only-for'
import { checkSameDeployment } from '../../workers/same-deployment'

/** A server whose schedule of garbage collection holds this deployment. */
const serverOf = (deployment: string): Client =>
  ({
    schedule: { getHandle: () => ({ describe: async () => ({ action: { args: [{ deployment }] } }) }) },
  }) as unknown as Client

const AT = { address: 'here:7233', store: { url: 'file:///mine' } as ObjectStore, deployment: 'dep-mine' }

const executed = (args: unknown[], next: () => Promise<unknown>): Promise<unknown> =>
  new MockActivityEnvironment({ activityType: 'settle' }).run(() =>
    onlyFor(Context.current(), 'dep-mine')
      .execute({ args }, next)
      .catch((error: unknown) => error),
  )

const stampOf = (deployment: string): unknown[] =>
  stamped([{ jobId: 'job-1' }], { kind: 'activity', name: 'drain', run: 'run-1', deployment })

describe('a worker', () => {
  it('refuses to start with the server of one deployment and the store of another', async () => {
    await expect(checkSameDeployment(serverOf('dep-other'), AT)).rejects.toThrow(
      /here:7233 belongs to deployment dep-other, but the store file:\/\/\/mine to dep-mine/,
    )
    await expect(checkSameDeployment(serverOf('dep-mine'), AT)).resolves.toBeUndefined()
  })

  it.each([
    ['a job', [{ deployment: 'dep-other' }]],
    ['an order', [{ order: { deployment: 'dep-other' } }]],
    ['a stamp', stampOf('dep-other')],
  ])('leaves a task to the workers of its deployment, and does nothing about it: %s', async (_name, args) => {
    let isRun = false
    const next = async (): Promise<void> => void (isRun = true)
    const refusal = await executed(args, next)
    expect(refusal).toMatchObject({ type: 'transient', nonRetryable: false, nextRetryDelay: 10_000 })
    expect((refusal as Error).message).toMatch(/belongs to deployment dep-mine, but the task to dep-other/)
    expect(isRun).toBe(false)
  })

  it('takes the tasks of its own deployment', async () => {
    const next = async (): Promise<string> => 'done'
    for (const args of [
      [{ deployment: 'dep-mine' }],
      [{ order: { deployment: 'dep-mine' } }],
      [{}],
      stampOf('dep-mine'),
    ])
      expect(await executed(args, next)).toBe('done')
  })
})
