import { afterEach, describe, expect, it } from '@jest/globals'
import { metadataOf, rebalanceNotice, spotNotice, type MachineMetadata } from '../../src/machines/metadata'
import { MetadataService } from '../../src/machines/metadata-service'

const TTL = 'x-aws-ec2-metadata-token-ttl-seconds'
const TOKEN = 'x-aws-ec2-metadata-token'
const services: MetadataService[] = []

afterEach(async () => {
  await Promise.all(services.splice(0).map((service) => service.close()))
})

const FACTS = {
  instanceId: 'i-0123456789abcdef0',
  instanceType: 'g5.xlarge',
  imageId: 'ami-0123456789abcdef0',
  accountId: '123456789012',
  region: 'eu-west-1',
  zone: 'eu-west-1b',
  zoneId: 'euw1-az2',
  privateIp: '10.0.3.7',
  architecture: 'x86_64',
  capacityType: 'spot',
  launchedAt: new Date('2026-11-21T10:00:00.500Z'),
  tags: { 'crucible:job': 'job-1', Name: 'a machine' },
} as const

async function serve(metadata: MachineMetadata, userData = '', clock?: () => number) {
  const service = new MetadataService(metadata, userData, { monotonicMs: clock, isOwn: () => true })
  services.push(service)
  const endpoint = await service.listen()
  const take = async (ttl = '60', headers = {}) =>
    fetch(`${endpoint}/latest/api/token`, { method: 'PUT', headers: { [TTL]: ttl, ...headers } })
  const token = await (await take()).text()
  const get = async (path: string, with_ = token) => {
    const response = await fetch(`${endpoint}${path}`, { headers: { [TOKEN]: with_ } })
    return { status: response.status, text: await response.text() }
  }
  const meta = async (path: string) => get(`/latest/meta-data/${path}`)
  return { endpoint, take, token, get, meta }
}

describe('tokens of the metadata service', () => {
  it('are given for up to six hours, and their time is said', async () => {
    const { take } = await serve({})
    const response = await take('21600')
    expect(response.status).toBe(200)
    expect(response.headers.get(TTL)).toBe('21600')
    expect((await response.text()).length).toBeGreaterThan(30)
    for (const ttl of ['0', '21601', 'x', '-1', '1.5', '']) expect((await take(ttl)).status).toBe(400)
  })

  it('are refused to what comes through a proxy, and to all but PUT', async () => {
    const { take, endpoint } = await serve({})
    expect((await take('60', { 'x-forwarded-for': '10.0.0.1' })).status).toBe(403)
    expect((await fetch(`${endpoint}/latest/api/token`, { method: 'POST' })).status).toBe(405)
    expect((await fetch(`${endpoint}/latest/meta-data/`, { method: 'PUT' })).status).toBe(405)
  })

  it('are asked for at every path', async () => {
    const { endpoint, get } = await serve({ 'instance-id': 'i-1' })
    expect((await fetch(`${endpoint}/latest/meta-data/instance-id`)).status).toBe(401)
    expect((await fetch(`${endpoint}/latest/meta-data/nothing`)).status).toBe(401)
    expect((await get('/latest/meta-data/instance-id', 'made up')).status).toBe(401)
    expect(await get('/latest/meta-data/instance-id')).toEqual({ status: 200, text: 'i-1' })
  })

  it('end with their time, and count on their own machine only', async () => {
    let now = 0
    const { get, token } = await serve({ 'instance-id': 'i-1' }, '', () => now)
    const other = await serve({ 'instance-id': 'i-2' })
    expect((await other.get('/latest/meta-data/instance-id', token)).status).toBe(401)
    now = 59_999
    expect((await get('/latest/meta-data/instance-id')).status).toBe(200)
    now = 60_000
    expect((await get('/latest/meta-data/instance-id')).status).toBe(401)
  })
})

describe('the tree of the metadata service', () => {
  it('lists folders, with a slash behind those that are in them', async () => {
    const { get, meta } = await serve(metadataOf(FACTS), '#!/bin/sh\n')
    expect((await get('/')).text).toContain('latest')
    expect((await get('/latest/')).text).toBe('dynamic/\nmeta-data/\nuser-data')
    const names = (await meta('')).text.split('\n')
    expect(names).toEqual(expect.arrayContaining(['ami-id', 'instance-id', 'placement/', 'tags/']))
    expect((await meta('placement')).text).toBe('availability-zone\navailability-zone-id\nregion')
    expect((await meta('placement/')).text).toBe((await meta('placement')).text)
    expect((await meta('tags/instance')).text).toBe('Name\ncrucible:job')
    expect((await meta('tags/instance/crucible%3Ajob')).text).toBe('job-1')
    expect((await meta('placement/region/')).text).toBe('eu-west-1')
    expect((await get('/2021-07-15/meta-data/placement/region')).text).toBe('eu-west-1')
    expect((await get('/newest/meta-data/')).status).toBe(404)
    expect((await get('/latest/%zz')).status).toBe(400)
  })

  it('tells who the machine is', async () => {
    const { get, meta } = await serve(metadataOf(FACTS))
    expect((await meta('instance-life-cycle')).text).toBe('spot')
    expect((await meta('local-hostname')).text).toBe('ip-10-0-3-7.eu-west-1.compute.internal')
    expect(JSON.parse((await get('/latest/dynamic/instance-identity/document')).text)).toMatchObject({
      accountId: '123456789012',
      instanceId: FACTS.instanceId,
      region: 'eu-west-1',
      availabilityZone: 'eu-west-1b',
      pendingTime: '2026-11-21T10:00:00Z',
    })
    expect((await get('/latest/user-data')).status).toBe(404)
  })

  it('follows its machine: notices and tags come and go', async () => {
    const metadata = metadataOf(FACTS)
    const { meta } = await serve(metadata)
    expect((await meta('spot/instance-action')).status).toBe(404)
    expect((await meta('events/recommendations/rebalance')).status).toBe(404)
    Object.assign(metadata, spotNotice(new Date('2026-11-21T10:02:00Z')), rebalanceNotice(new Date(0)))
    expect(JSON.parse((await meta('spot/instance-action')).text)).toEqual({
      action: 'terminate',
      time: '2026-11-21T10:02:00Z',
    })
    expect((await meta('spot/termination-time')).text).toBe('2026-11-21T10:02:00Z')
    expect(JSON.parse((await meta('events/recommendations/rebalance')).text)).toEqual({
      noticeTime: '1970-01-01T00:00:00Z',
    })
    metadata['tags/instance/New'] = 'tag'
    delete metadata['tags/instance/Name']
    metadata['spot/instance-action'] = undefined
    expect((await meta('tags/instance/')).text).toBe('New\ncrucible:job')
    expect((await meta('spot/instance-action')).status).toBe(404)
  })

  it('hands out user data as it is', async () => {
    const { get } = await serve({}, '#!/bin/sh\necho "ü"\n')
    expect((await get('/latest/user-data')).text).toBe('#!/bin/sh\necho "ü"\n')
  })
})
