import { describe, expect, it } from '@jest/globals'
import { MockActivityEnvironment } from '@temporalio/testing'
import type { Client } from '@temporalio/client'
import type { ObjectStore } from '../../storage/store'
import { onlyFor } from '../../activities/only-for'
import { checkSameDeployment } from '../../workers/same-deployment'

/** A server whose schedule of garbage collection holds this deployment. */
const serverOf = (deployment: string): Client =>
  ({
    schedule: { getHandle: () => ({ describe: async () => ({ action: { args: [{ deployment }] } }) }) },
  }) as unknown as Client

const AT = { address: 'here:7233', store: { url: 'file:///mine' } as ObjectStore, deployment: 'dep-mine' }

const executed = (input: object, next: () => Promise<unknown>): Promise<unknown> =>
  new MockActivityEnvironment({ activityType: 'settle' }).run(() =>
    onlyFor('dep-mine')
      .execute({ args: [input], headers: {} }, next)
      .catch((error: unknown) => error),
  )

describe('a worker', () => {
  it('refuses to start with the server of one deployment and the store of another', async () => {
    await expect(checkSameDeployment(serverOf('dep-other'), AT)).rejects.toThrow(
      /here:7233 belongs to deployment dep-other, the store file:\/\/\/mine to dep-mine/,
    )
    await expect(checkSameDeployment(serverOf('dep-mine'), AT)).resolves.toBeUndefined()
  })

  it.each([
    ['a job', { deployment: 'dep-other' }],
    ['an order', { order: { deployment: 'dep-other' } }],
  ])(
    'leaves a task to the workers of its deployment, and does nothing about it: %s',
    async (_name, input) => {
      let isRun = false
      const next = async (): Promise<void> => void (isRun = true)
      expect(await executed(input, next)).toMatchObject({ type: 'transient', nonRetryable: false })
      expect(isRun).toBe(false)
    },
  )

  it('takes the tasks of its own deployment', async () => {
    const next = async (): Promise<string> => 'done'
    for (const input of [{ deployment: 'dep-mine' }, { order: { deployment: 'dep-mine' } }, {}])
      expect(await executed(input, next)).toBe('done')
  })
})
