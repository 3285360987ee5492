import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals'
import type { ClientConfig } from '../../client/config'
import { Context } from '../../client/context'
import { retryNow } from '../../client/job/retry'
import { troubleOf } from '../../client/job/workflow-state'
import { microUsd } from '../../core/money/money'
import type { RecordKind } from '../../core/job/record'
import { putRecord, readRecords } from '../../storage/record'
import { SPEC } from '../support/spec'
import { connectTo, quietWorkers, type TestConnection } from '../support/temporal'
import { LONG, SPOT, statusOf, worldsOn, type Deployment } from './harness'
import { ended, eventually, forReason, running, TEST_LIMIT_MS } from './looks'
import { partialEntry } from '../support/record'
import { patient } from '../support/patience'
import { chosen } from '../support/selection'

jest.setTimeout(TEST_LIMIT_MS)

let at: TestConnection

beforeAll(async () => {
  quietWorkers()
  at = await connectTo()
})
afterAll(() => at.close())

const inWorld = worldsOn(() => at)

const SUBMITTED = partialEntry({
  seq: 0,
  atMs: 0,
  kind: 'submitted',
  summary: 'Submitted.',
  data: { jobId: 'job-test', spec: SPEC, owner: 'somebody', submittedAtMs: 0 },
})

/** From now on the store refuses one kind of record, as a folder does that was mounted read-only. */
function refuse({ store }: Deployment, kind: RecordKind): void {
  store.refuses = (_key, body) => body.includes(`"kind": "${kind}"`)
}

const mended = ({ store }: Deployment): void => void (store.refuses = () => false)

describe('a store that refuses writes for a while', () => {
  const KINDS: RecordKind[] = ['resolved', 'planned', 'launched', 'settled', 'decided', 'finished']

  it.concurrent.each(chosen(KINDS, ['settled', 'launched', 'planned']))(
    'ends no job, and adds little to its history: %s',
    async (kind) => {
      await inWorld({}, async (deployment) => {
        refuse(deployment, kind)
        const job = await deployment.submit()
        await eventually(() => deployment.store.refused >= 3)
        mended(deployment)
        expect(await job.result()).toMatchObject({ state: 'succeeded', attempts: 1 })
        const { events } = await job.fetchHistory()
        expect(events!.length).toBeLessThan(45)
      })()
    },
  )

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
    'is reported while it lasts, and no longer',
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
    'keeps new limits from a machine, and the attempt still gets its requests',
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
    'is over at once for a job that is asked to retry, however long its pause',
    inWorld({}, async (deployment) => {
      const { client, namespace } = deployment
      refuse(deployment, 'planned')
      const job = await deployment.submit()
      // The pauses double from a second to a minute.
      await eventually(async () => {
        const next = troubleOf(await job.describe())?.nextTryAtMs ?? 0
        return next - Date.now() > patient(10_000)
      })
      mended(deployment)
      const config = { home: {}, temporal: { connection: {}, namespace } } as unknown as ClientConfig
      const context = new Context(config, Date.now)
      context.temporal = () => Promise.resolve(client)
      jest.spyOn(context, 'store', 'get').mockReturnValue(deployment.store)
      await putRecord(deployment.store, 'job-test', SUBMITTED)
      const fromMs = Date.now()
      expect(await retryNow(context, 'job-test')).toMatchObject({ message: 'Retrying now: plan.' })
      expect(await job.result()).toMatchObject({ state: 'succeeded' })
      expect(Date.now() - fromMs).toBeLessThan(patient(10_000))
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

describe('a job that waits for a machine', () => {
  it.concurrent(
    'is planned with the limits that it was given meanwhile',
    inWorld({ wares: [{ ...SPOT, stock: 0 }] }, async (deployment) => {
      const job = await deployment.submit({ deadlineAtMs: Date.now() + 600_000 })
      await forReason(job, 'waiting-for-capacity')
      const deadlineAtMs = Date.now() + 900_000
      await job.executeUpdate('extend', { args: [{ deadlineAtMs }] })
      deployment.world.setStock(SPOT, 1)
      expect(await job.result()).toMatchObject({ state: 'succeeded', attempts: 1 })
      const records = await readRecords(deployment.store, 'job-test')
      const planned = records.filter(({ kind }) => kind === 'planned')
      expect(planned).toMatchObject([{ data: { inputs: { deadlineAtMs } } }])
    }),
  )
})
