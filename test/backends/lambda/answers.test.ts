/** What Lambda's answers mean, in forms that its documentation leaves open. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, it } from '@jest/globals'
import { lookFor } from '../../../activities/machine/sending'
import { createApi } from '../../../backends/lambda/api'
import type { Limiter } from '../../../backends/limiter'
import { shapeOf } from '../../../backends/lambda/offers'
import { sendNameOf } from '../../../core/queues'
import { patiently } from '../harness'
import { LambdaHarness } from './harness'

const type = (gpu_description: string, gpus = 1) => ({
  ...{ name: 'gpu', gpu_description, price_cents_per_hour: 100 },
  specs: { vcpus: 30, memory_gib: 200, storage_gib: 1400, gpus },
})

describe('a type', () => {
  it.each([
    ['H100 (80 GB SXM5)', 'H100'],
    ['H100 (80 GB PCIe)', 'H100-PCIe'],
    ['A100 (80 GB SXM4)', 'A100-80GB'],
    ['A100 (40 GB PCIe)', 'A100-PCIe'],
    ['A10 (24 GB PCIe)', 'A10'],
    ['GH200 (96 GB)', 'GH200'],
    ['X900 (64 GB PCIe)', 'X900'],
  ])('with an %s has the accelerator %s', (description, accelerator) => {
    expect(shapeOf(type(description)).accelerator).toBe(accelerator)
  })
})

describe('a list', () => {
  let server: Server | undefined
  afterEach(() => {
    server?.closeAllConnections()
    server?.close()
  })

  it.each([{ tags: null }, {}])('has an instance of somebody else with %j', async (tags) => {
    const found = {
      id: 'i-1',
      status: 'active',
      region: { name: 'us-east-1' },
      instance_type: type('A10 (24 GB PCIe)'),
    }
    server = createServer((_, response) => response.end(JSON.stringify({ data: [{ ...found, ...tags }] })))
    await new Promise<void>((resolve) => server!.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    const limiter: Limiter = { run: (_rank, _signal, call) => call() }
    const api = createApi({ endpoint: `http://127.0.0.1:${port}`, apiKey: 'key', limiter })
    expect(await api.instances(patiently().signal)).toMatchObject([{ id: 'i-1', tags: [] }])
  })
})

describe('two machines of one order', () => {
  it('are both found if one has ended already: it was billed, too', async () => {
    const h = new LambdaHarness()
    const order = await h.order()
    await h.backend.launch(order, { ...patiently(), send: sendNameOf(order.attemptId, 1) })
    const [living] = h.lambda.instances
    h.lambda.instances.push({ ...living!, id: 'i-ended', status: 'terminated' })
    const deps = { backend: h.backend, store: h.store, now: Date.now }
    const found = await h.backend.find(order.attemptId, await lookFor(deps, order, patiently().signal))
    expect(found).toMatchObject({ kind: 'found', handles: [{ id: living!.id }], ended: [{ id: 'i-ended' }] })
  })
})
