import { afterEach, describe, expect, it } from '@jest/globals'
import type { WorldText } from '../src/index'
import { PUBLISHED, PUBLISHED_ERROR, PUBLISHED_ERRORS } from './lambda-published'
import { operatorOf, stopClouds, testCloud, type TestCloud } from './support'

afterEach(stopClouds)

interface Answer {
  status: number
  /** `data` of a success, `error` of a refusal, or the text. */
  body: never
}

interface Api {
  test: TestCloud
  /** Checks every answer against the published description of the API. */
  call: (what: string, body?: unknown, headers?: Record<string, string>) => Promise<Answer>
  launch: (change?: object) => Promise<string>
  status: (id: string) => Promise<string | undefined>
  listed: () => Promise<{ id: string; status: string }[]>
}

type Lambda = NonNullable<WorldText['lambda']>

async function open(lambda: Lambda = {}, world: WorldText = {}): Promise<Api> {
  const test = await testCloud({ ...world, lambda: { throttling: 'off', ...lambda } })
  const { endpoint, apiKey } = test.cloud.providers['lambda']!
  const api: Api = {
    test,
    call: async (what, body, headers = {}) => {
      const [method, path] = what.split(' ') as [string, string]
      const answer = await fetch(`${endpoint}/api/v1${path}`, {
        method,
        headers: {
          authorization: `Bearer ${apiKey}`,
          'user-agent': 'small-cloud-test',
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      })
      const text = await answer.text()
      if (answer.headers.get('content-type')?.includes('json') !== true)
        return { status: answer.status, body: text as never }
      const value = JSON.parse(text) as { data?: never; error?: never }
      check(what, answer.status, value)
      return { status: answer.status, body: (value.data ?? value.error)! }
    },
    launch: async (change = {}) => {
      const { status, body } = await api.call('POST /instance-operations/launch', wish(change))
      expect([status, body]).toEqual([200, { instance_ids: [expect.stringMatching(/^[0-9a-f]{32}$/)] }])
      return (body as { instance_ids: string[] }).instance_ids[0]!
    },
    status: async (id) => ((await api.call(`GET /instances/${id}`)).body as { status?: string }).status,
    listed: async () => (await api.call('GET /instances')).body,
  }
  return api
}

function check(what: string, status: number, value: unknown): void {
  if (status === 200) {
    const name = what.replace(/\/[0-9a-f]{32}$/, '/{id}')
    expect(PUBLISHED[name]?.safeParse(value)).toMatchObject({ success: true })
    return
  }
  const { code } = PUBLISHED_ERROR.parse(value).error
  if (!code.startsWith('provider/') && status !== 429) expect(PUBLISHED_ERRORS[code]).toContain(status)
}

const wish = (change: object = {}): object => ({
  region_name: 'us-west-3',
  instance_type_name: 'gpu_1x_h100_pcie',
  ssh_key_names: ['crucible'],
  ...change,
})
const UP_MS = 2_000

describe('the API of Lambda', () => {
  it('lists types with prices and the regions that have them in stock', async () => {
    const stock = [{ count: 0 }, { type: 'gpu_1x_h100_pcie', region: 'us-west-3', count: 1 }]
    const { call, launch } = await open({ stock, prices: { gpu_1x_a10: 100 } })
    const types = async () =>
      (await call('GET /instance-types')).body as Record<
        string,
        { instance_type: object; regions_with_capacity_available: { name: string }[] }
      >
    const before = await types()
    expect(before['gpu_1x_a10']).toMatchObject({
      instance_type: { price_cents_per_hour: 100, gpu_description: 'A10 (24 GB PCIe)' },
      regions_with_capacity_available: [],
    })
    const regions = (of: typeof before) =>
      of['gpu_1x_h100_pcie']!.regions_with_capacity_available.map(({ name }) => name)
    expect(regions(before)).toEqual(['us-west-3'])
    await launch()
    expect(regions(await types())).toEqual([])
    expect((await call('POST /instance-operations/launch', wish())).body).toMatchObject({
      code: 'instance-operations/launch/insufficient-capacity',
    })
  })

  it('launches an instance with its tags, name, hostname and user data', async () => {
    const { test, call, launch, status } = await open()
    const id = await launch({
      name: 'a name',
      hostname: 'job-1-s1',
      user_data: '#!/bin/sh\ntrue\n',
      tags: [{ key: 'crucible:job', value: 'one' }],
    })
    expect(await status(id)).toBe('booting')
    await test.clock.advance(UP_MS)
    expect((await call(`GET /instances/${id}`)).body).toMatchObject({
      id,
      name: 'a name',
      hostname: 'job-1-s1',
      status: 'active',
      ssh_key_names: ['crucible'],
      region: { name: 'us-west-3' },
      instance_type: { name: 'gpu_1x_h100_pcie' },
      tags: [{ key: 'crucible:job', value: 'one' }],
    })
    expect(test.machines.get(id)!.spec).toMatchObject({
      userData: '#!/bin/sh\ntrue\n',
      hostname: 'job-1-s1',
      gpus: [{ name: 'NVIDIA H100', memoryMiB: 76_294 }],
    })
  })

  it('names each refusal of a launch, and buys nothing', async () => {
    const fileSystems = [{ name: 'cache', region: 'us-east-1' }]
    const { test, call } = await open({ fileSystems, quota: 0 })
    const code = async (change: object): Promise<[number, string]> => {
      const { status, body } = await call('POST /instance-operations/launch', wish(change))
      return [status, (body as { code: string }).code]
    }
    const invalid = [400, 'global/invalid-parameters']
    expect(await code({ region_name: 'mars-1' })).toEqual(invalid)
    expect(await code({ ssh_key_names: [] })).toEqual(invalid)
    expect(await code({ ssh_key_names: ['crucible', 'crucible'] })).toEqual(invalid)
    expect(await code({ quantity: 2 })).toEqual(invalid)
    expect(await code({ hostname: 'Not-A-Hostname' })).toEqual(invalid)
    expect(await code({ tags: [{ key: 'Upper', value: '' }] })).toEqual(invalid)
    expect(await code({ tags: [{ key: 'long', value: 'x'.repeat(129) }] })).toEqual(invalid)
    expect(await code({ user_data: 'x'.repeat(1024 ** 2 + 1) })).toEqual(invalid)
    expect(await code({ instance_type_name: 'gpu_9x' })).toEqual([404, 'global/object-does-not-exist'])
    expect(await code({ ssh_key_names: ['other'] })).toEqual([404, 'global/object-does-not-exist'])
    expect(await code({ file_system_names: ['cache'] })).toEqual([
      400,
      'instance-operations/launch/file-system-in-wrong-region',
    ])
    expect(await code({})).toEqual([400, 'global/quota-exceeded'])
    expect(test.cloud.instances()).toEqual([])
  })

  it('ends an instance once, lists it no more, and knows it by its id', async () => {
    const { test, call, launch, status, listed } = await open()
    const id = await launch()
    await test.clock.advance(UP_MS)
    const machine = test.machines.get(id)!
    const terminate = () => call('POST /instance-operations/terminate', { instance_ids: [id] })
    expect((await terminate()).body).toMatchObject({ terminated_instances: [{ id, status: 'terminating' }] })
    expect(await listed()).toMatchObject([{ id, status: 'terminating' }])
    await test.clock.advance(UP_MS)
    expect(machine.isDead).toBe(true)
    expect(await listed()).toEqual([])
    expect(await status(id)).toBe('terminated')
    expect((await terminate()).status).toBe(200)
    await test.clock.advance(3_600_000)
    expect((await terminate()).status).toBe(404)
    expect(await status(id)).toBeUndefined()
  })

  it('ends nothing when one of the ids is unknown', async () => {
    const { call, launch, status } = await open()
    const id = await launch()
    const answer = await call('POST /instance-operations/terminate', { instance_ids: [id, '0'.repeat(32)] })
    expect(answer).toMatchObject({ status: 404, body: { code: 'global/object-does-not-exist' } })
    expect(await status(id)).toBe('booting')
  })

  it('keeps SSH keys and file systems', async () => {
    const { call, launch } = await open()
    const made = await call('POST /ssh-keys', { name: 'mine', public_key: 'ssh-ed25519 AAAAC3' })
    expect(made.body).toMatchObject({ name: 'mine', public_key: 'ssh-ed25519 AAAAC3' })
    expect(made.body).not.toHaveProperty('private_key')
    expect((await call('POST /ssh-keys', { name: 'new' })).body).toHaveProperty('private_key')
    expect((await call('POST /ssh-keys', { name: 'mine' })).status).toBe(400)
    const key = made.body as { id: string }
    expect((await call(`DELETE /ssh-keys/${key.id}`)).status).toBe(200)
    expect((await call(`DELETE /ssh-keys/${key.id}`)).status).toBe(400)
    const fs = (await call('POST /filesystems', { name: 'cache', region: 'us-west-3' })).body as {
      id: string
    }
    const id = await launch({ file_system_names: ['cache'] })
    expect((await call(`GET /instances/${id}`)).body).toMatchObject({
      file_system_mounts: [{ mount_point: '/lambda/nfs/cache', file_system_id: fs.id }],
    })
    expect((await call(`DELETE /filesystems/${fs.id}`)).body).toMatchObject({
      code: 'filesystems/filesystem-in-use',
    })
    expect((await call('GET /file-systems')).body).toMatchObject([{ name: 'cache', is_in_use: true }])
    expect((await call('GET /images')).status).toBe(200)
    expect((await call('GET /regions')).status).toBe(200)
  })
})

describe('quirks of Lambda', () => {
  it('is behind a firewall that refuses clients without a name, with a page', async () => {
    const { call } = await open()
    const blocked = await call('GET /instances', undefined, { 'user-agent': 'node' })
    expect(blocked).toEqual({ status: 403, body: expect.stringContaining('error code: 1010') })
  })

  it('refuses wrong keys and accounts that are not active', async () => {
    const { call } = await open()
    const foreign = await call('GET /instances', undefined, { authorization: 'Bearer other' })
    expect(foreign).toMatchObject({ status: 401, body: { code: 'global/invalid-api-key' } })
    const inactive = await open({ account: 'inactive' })
    expect(await inactive.call('GET /instances')).toMatchObject({
      status: 403,
      body: { code: 'global/account-inactive' },
    })
    const basic = `Basic ${Buffer.from('my-key:').toString('base64')}`
    const keyed = await open({ apiKey: 'my-key' })
    expect((await keyed.call('GET /instances', undefined, { authorization: basic })).status).toBe(200)
  })

  it('allows one request a second, and one launch in twelve', async () => {
    const { test, call } = await open({ throttling: 'documented' })
    expect((await call('GET /instances')).status).toBe(200)
    expect((await call('GET /instances')).status).toBe(429)
    await test.clock.advance(1_000)
    expect((await call('POST /instance-operations/launch', wish())).status).toBe(200)
    await test.clock.advance(5_000)
    expect((await call('POST /instance-operations/launch', wish())).status).toBe(429)
    await test.clock.advance(7_500)
    expect((await call('POST /instance-operations/launch', wish())).status).toBe(200)
  })

  it('refuses a launch although its list shows capacity', async () => {
    const faults = [{ fault: 'no-capacity', where: { service: 'lambda' }, times: 1 }] as const
    const { call, launch } = await open({}, { faults: [...faults] })
    expect((await call('POST /instance-operations/launch', wish())).body).toMatchObject({
      code: 'instance-operations/launch/insufficient-capacity',
    })
    await launch()
  })

  it('makes an instance although the answer is lost', async () => {
    const where = { service: 'lambda', action: 'launch' } as const
    const { call, listed } = await open({}, { faults: [{ fault: 'lost-answer', where, times: 1 }] })
    await expect(call('POST /instance-operations/launch', wish())).rejects.toThrow('fetch failed')
    expect(await listed()).toHaveLength(1)
  })

  it('lists an instance late, and states late', async () => {
    const durations = { notFound: '3s', staleList: '1s' }
    const { test, launch, listed, status } = await open({}, { durations })
    const id = await launch()
    expect([await listed(), await status(id)]).toEqual([[], undefined])
    await test.clock.advance(3_000)
    expect(await listed()).toMatchObject([{ id, status: 'active' }])
  })

  it('bills an instance by the minute until the API ends it, not until its own power-off', async () => {
    const { test, call, launch } = await open({ prices: { gpu_1x_h100_pcie: 6_000 } })
    const id = await launch()
    await test.clock.advance(UP_MS)
    test.machines.get(id)!.powerOff('shutdown')
    await test.clock.advance(90_000)
    const summary = () => test.cloud.instances().find((each) => each.id === id)!
    expect(summary()).toMatchObject({ provider: 'lambda', state: 'active', isImpaired: true })
    expect(summary().bill.usd).toBe(2)
    await call('POST /instance-operations/terminate', { instance_ids: [id] })
    await test.clock.advance(600_000)
    expect(summary().bill.usd).toBe(2)
  })

  it('preempts an instance, which its list shows no more', async () => {
    const { test, launch, listed, status } = await open()
    const [id, other] = [await launch(), await launch()]
    await test.clock.advance(UP_MS)
    const wish = JSON.stringify({ instance: id, notice: 30_000 })
    const headers = operatorOf(test.cloud)
    const asked = await fetch(`${test.cloud.endpoint}/_sim/interrupt`, {
      method: 'POST',
      headers,
      body: wish,
    })
    // Whatever was wished: Lambda gives none.
    expect(await asked.json()).toEqual({ noticeMs: null })
    await test.clock.advance(0)
    expect([await status(id), test.machines.get(id)!.isDead]).toEqual(['preempted', true])
    expect(await listed()).toMatchObject([{ id: other, status: 'active' }])
    expect(() => test.cloud.interrupt('0'.repeat(32))).toThrow('there is no instance')
  })

  it('has unhealthy instances, from the start or later, dead or alive', async () => {
    const faults: NonNullable<WorldText['faults']> = [
      { fault: 'unhealthy', times: 1 },
      { fault: 'unhealthy', after: '10s', isAlive: true, times: 1, where: { type: 'gpu_1x_a10' } },
    ]
    const { test, launch, status } = await open({}, { faults })
    const born = await launch()
    await test.clock.advance(UP_MS)
    expect([await status(born), test.machines.has(born)]).toEqual(['unhealthy', false])
    const later = await launch({ instance_type_name: 'gpu_1x_a10', region_name: 'us-west-1' })
    await test.clock.advance(UP_MS)
    expect(await status(later)).toBe('active')
    await test.clock.advance(10_000)
    expect([await status(later), test.machines.get(later)!.isDead]).toEqual(['unhealthy', false])
  })

  it('restarts an instance with the same disk', async () => {
    const { test, call, launch, status } = await open()
    const id = await launch()
    const restart = () => call('POST /instance-operations/restart', { instance_ids: [id] })
    expect((await restart()).status).toBe(409)
    await test.clock.advance(UP_MS)
    const first = test.machines.get(id)!
    expect((await restart()).status).toBe(200)
    await test.clock.advance(UP_MS)
    expect([first.isDead, await status(id)]).toEqual([true, 'active'])
    expect(test.machines.get(id)).not.toBe(first)
    expect(test.machines.get(id)!.spec.directory).toBe(first.spec.directory)
  })
})
