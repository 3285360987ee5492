import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals'
import { troubleOf } from '../../client/workflow-state'
import { microUsd } from '../../core/money'
import type { RecordKind } from '../../core/record'
import { connectTo, quietWorkers, type TestConnection } from '../support/temporal'
import { LONG, SPOT, statusOf, worldsOn, type Deployment } from './harness'
import { ended, eventually, forReason, running, TEST_LIMIT_MS } from './looks'

jest.setTimeout(TEST_LIMIT_MS)

let at: TestConnection

beforeAll(async () => {
  quietWorkers()
  at = await connectTo()
})
afterAll(() => at.close())

const inWorld = worldsOn(() => at)

/** From now on the store refuses one kind of record, as a folder does that was mounted read-only. */
function refuse({ store }: Deployment, kind: RecordKind): void {
  store.refuses = (_key, body) => body.includes(`"kind": "${kind}"`)
}

const mended = ({ store }: Deployment): void => void (store.refuses = () => false)

describe('a store that refuses writes for a while', () => {
  const KINDS: RecordKind[] = ['resolved', 'planned', 'launched', 'settled', 'decided', 'finished']

  it.concurrent.each(KINDS)('ends no job, and adds little to its history: %s', async (kind) => {
    await inWorld({}, async (deployment) => {
      refuse(deployment, kind)
      const job = await deployment.submit()
      await eventually(() => deployment.store.refused >= 3)
      mended(deployment)
      expect(await job.result()).toMatchObject({ state: 'succeeded', attempts: 1 })
      const { events } = await job.fetchHistory()
      expect(events!.length).toBeLessThan(45)
    })()
  })

  it.concurrent(
    'leaves a job that waits for a machine waiting',
    inWorld({ wares: [{ ...SPOT, stock: 0 }] }, async (deployment) => {
      const job = await deployment.submit()
      await forReason(job, 'waiting-for-capacity')
      refuse(deployment, 'planned')
      deployment.world.setStock(SPOT, 1)
      await eventually(() => deployment.store.refused >= 2)
      mended(deployment)
      expect(await job.result()).toMatchObject({ state: 'succeeded', attempts: 1 })
    }),
  )

  it.concurrent(
    'is told while it lasts, and no longer',
    inWorld({}, async (deployment) => {
      refuse(deployment, 'planned')
      const job = await deployment.submit()
      await eventually(async () => /read-only/.test((await statusOf(job)).trouble ?? ''))
      await eventually(async () => (troubleOf(await job.describe())?.tries ?? 0) >= 1)
      expect(troubleOf(await job.describe())!.message).toContain('read-only')
      mended(deployment)
      await job.result()
      expect((await statusOf(job)).trouble).toBeUndefined()
    }),
  )

  it.concurrent(
    'keeps new limits from a machine, and the attempt goes on to hear what it is told',
    inWorld({ behave: () => LONG }, async (deployment) => {
      deployment.store.refuses = (key) => key.includes('/limits/')
      const job = await deployment.submit({ budgetMicroUsd: microUsd(1_000) })
      await running(job)
      await job.executeUpdate('extend', { args: [{ budgetMicroUsd: microUsd(2_000) }] })
      await eventually(() => deployment.store.refused >= 2)
      await job.cancel()
      expect(await ended(job)).toMatchObject({ status: 'CANCELLED' })
      const { attempts } = await statusOf(job)
      expect(attempts).toMatchObject([{ state: 'stopped', reason: 'cancelled', stepsLost: 0 }])
    }),
  )

  it.concurrent(
    'does not keep a job from hearing that it is cancelled',
    inWorld({}, async (deployment) => {
      refuse(deployment, 'planned')
      const job = await deployment.submit()
      await eventually(() => deployment.store.refused >= 2)
      await job.cancel()
      await eventually(async () => (await statusOf(job)).state === 'stopping')
      mended(deployment)
      expect(await ended(job)).toMatchObject({ status: 'CANCELLED' })
      expect(deployment.world.machines).toEqual([])
    }),
  )
})
