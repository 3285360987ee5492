import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { Worker } from '@temporalio/worker'
import { DAY_MS } from '../../core/time/time'
import type { sleeper } from './sleeper'
import { connectTo, quietWorkers, skipTime, type TestConnection } from './temporal'

let connected: TestConnection

beforeAll(async () => {
  quietWorkers()
  connected = await connectTo()
})

afterAll(async () => {
  await connected.close()
})

describe('skipTime', () => {
  it('carries a workflow over a wait of months in seconds', async () => {
    const { client, nativeConnection } = connected
    const taskQueue = `sleeper-${randomUUID()}`
    const worker = await Worker.create({
      connection: nativeConnection,
      taskQueue,
      workflowsPath: require.resolve('./sleeper'),
    })
    const waited = await worker.runUntil(async () => {
      const handle = await client.workflow.start<typeof sleeper>('sleeper', {
        taskQueue,
        workflowId: taskQueue,
        args: [90 * DAY_MS],
      })
      await skipTime(client, handle.workflowId)
      return handle.result()
    })
    expect(waited).toBeGreaterThanOrEqual(90 * DAY_MS)
  })
})
