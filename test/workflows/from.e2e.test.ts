import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { readArtifact } from '../../storage/artifacts'
import { layout } from '../../storage/layout'
import { readRecords } from '../../storage/record'
import { trained, UNTRAINED } from '../backends/scripted/checkpoints'
import { WEIGHTS_ARTIFACT } from '../backends/scripted/scripted-runner'
import { connectTo, quietWorkers, type TestConnection } from '../support/temporal'
import { until } from '../support/until'
import { statusOf, worldsOn, type WorldWishes } from './harness'
import { cancelledWithCheckpoint, holdCopies, SOURCE_JOB } from './two-jobs'

let at: TestConnection
beforeAll(async () => {
  quietWorkers()
  at = await connectTo()
})
afterAll(() => at.close())

const inWorld = worldsOn(() => at)

const SHORT: WorldWishes = {
  behave: ({ jobId }) => ({ stepsTotal: jobId === SOURCE_JOB ? 10_000 : 20 }),
}

describe('a job that continues from another', () => {
  it.concurrent(
    'begins with its checkpoint and ends with the weights of an undisturbed training',
    inWorld(
      {
        // Slow at first, so that a busy machine does not pass the second job's last step before the first one is cancelled.
        behave: ({ jobId }) =>
          jobId === SOURCE_JOB
            ? { stepsTotal: 100_000, stepsPerSecond: 100 }
            : { stepsTotal: 2_000, stepsPerSecond: 1_000 },
      },
      async (deployment) => {
        const source = await cancelledWithCheckpoint(deployment)
        expect(source.checkpoint.step).toBeLessThan(2_000)
        const job = await deployment.submit({}, { source })
        const result = await job.result()
        const { attempts } = await statusOf(job)
        expect(attempts[0]!.restoredFrom).toEqual({
          id: source.checkpoint.id.replace(/-\d+$/, '-0'),
          step: source.checkpoint.step,
          attempt: 0,
        })
        const weights = await readArtifact(deployment.store, 'job-test', WEIGHTS_ARTIFACT)
        expect(weights).toEqual(trained(UNTRAINED, 2_000).weights)
        expect(result.attempts).toBe(1)
        const records = await readRecords(deployment.store, 'job-test')
        expect(records.map(({ kind }) => kind)).toEqual([
          'resolved',
          'copied',
          'planned',
          'launched',
          'settled',
          'decided',
          'finished',
        ])
      },
    ),
  )

  it.concurrent(
    'waits for a store that does not answer, and is not failed by it',
    inWorld(SHORT, async (deployment) => {
      const source = await cancelledWithCheckpoint(deployment)
      const held = holdCopies(deployment)
      const job = await deployment.submit({}, { source })
      await held.begun
      deployment.store.isDown = true
      held.release()
      await until(async () => {
        const { pendingActivities = [] } = (await job.describe()).raw
        return (pendingActivities ?? []).some(({ attempt }) => (attempt ?? 0) > 1)
      })
      deployment.store.isDown = false
      expect((await job.result()).state).toBe('succeeded')
    }),
  )

  it.concurrent(
    'fails with what to do where no checkpoint is left, and buys nothing',
    inWorld(SHORT, async (deployment) => {
      const source = await cancelledWithCheckpoint(deployment)
      const machines = deployment.world.machines.length
      for await (const { key } of deployment.store.list(layout.checkpoints(SOURCE_JOB)))
        await deployment.store.delete(key)
      const job = await deployment.submit({}, { source })
      await expect(job.result()).rejects.toMatchObject({ cause: { type: 'invalid' } })
      expect((await statusOf(job)).message).toContain(`--from ${SOURCE_JOB} --fresh`)
      expect(deployment.world.machines).toHaveLength(machines)
    }),
  )

  it.concurrent(
    'is cancelled while the copy is under way',
    inWorld(SHORT, async (deployment) => {
      const source = await cancelledWithCheckpoint(deployment)
      const held = holdCopies(deployment)
      const job = await deployment.submit({}, { source })
      await held.begun
      expect((await statusOf(job)).message).toContain(`of ${SOURCE_JOB}`)
      await job.cancel()
      await until(async () => (await statusOf(job)).state === 'cancelled')
      held.release()
      expect(deployment.world.machines).toHaveLength(1)
    }),
  )
})
