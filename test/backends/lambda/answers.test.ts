/** What Lambda's answers mean, in forms that its documentation leaves open. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, it } from '@jest/globals'
import { lookFor } from '../../../activities/machine/sending'
import { createLambdaBackend } from '../../../backends/lambda'
import { shapeOf } from '../../../backends/lambda/offers'
import type { Backend } from '../../../backends/backend'
import type { MachineHandle } from '../../../core/handle'
import type { Offer } from '../../../core/offer'
import { Ages } from '../../../core/time/ages'
import { patiently } from '../harness'
import { makeOrder } from '../orders'
import { MemoryStore } from '../scripted/memory-store'
import { CONFIG } from './harness'

const type = (gpu_description: string, gpus = 1) => ({
  name: 'gpu',
  gpu_description,
  price_cents_per_hour: 100,
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

  const found = {
    id: 'i-1',
    status: 'active',
    region: { name: 'us-east-1' },
    instance_type: type('A10 (24 GB PCIe)'),
  }

  /** The backend over an API that lists these instances. */
  async function backendOver(data: object[]): Promise<Backend> {
    server = createServer((_, response) => response.end(JSON.stringify({ data })))
    await new Promise<void>((resolve) => server!.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    return createLambdaBackend({ ...CONFIG, endpoint: `http://127.0.0.1:${port}` }, { clock: Date.now })
  }

  it.each([{ tags: null }, {}])('has an instance of somebody else with %j', async (tags) => {
    const backend = await backendOver([{ ...found, ...tags }])
    expect(await backend.list('test', patiently())).toEqual([])
    expect(await backend.observe([{ id: 'i-1' } as MachineHandle], patiently())).toEqual([
      { state: 'running' },
    ])
  })

  it('that still has an ended machine of an order has both: it was billed, too', async () => {
    const store = new MemoryStore(Date.now)
    const offers = [{ capacityType: 'on-demand', backend: 'lambda' } as Offer]
    const order = makeOrder({ store, offers })
    const tags = [{ key: 'crucible:attempt', value: order.attemptId }]
    const backend = await backendOver([
      { ...found, tags },
      { ...found, tags, id: 'i-ended', status: 'terminated' },
    ])
    const look = await lookFor(
      { backend, store, now: Date.now, ages: new Ages({ now: Date.now, monotonicMs: Date.now }) },
      order,
      patiently().signal,
    )
    expect(await backend.find(order.attemptId, look)).toMatchObject({
      kind: 'found',
      handles: [{ id: 'i-1' }],
      ended: [{ id: 'i-ended' }],
    })
  })
})
