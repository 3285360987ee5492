/** Sends drawn requests to the doors of the small cloud and of the Web UI. The front of the object store has a test of its own. */
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { openUiDoor, type UiDoor } from '../../cli/dev/temporal/ui-door'
import { startCloud, type Cloud } from '#small-cloud'
import { openRealGateway, type Gateway } from '../backends/modal/gateways'
import { Dice } from '../kit/dice'
import { inLanes } from '../kit/lanes'
import { operatorOf } from '../support/cloud-keys'
import { chosen } from '../support/selection'
import { drawHostile, sendHostile, type HostileRequest } from './hostile-targets'

const SEEDS = Array.from({ length: chosen([5_000], [1_000])[0]! }, (_, index) => index + 1)

/** Sends a request of each seed; returns the answers, with the seed. */
async function send(
  port: number,
  draw: (dice: Dice) => HostileRequest,
): Promise<{ seed: number; status: number; request: HostileRequest }[]> {
  const answers: { seed: number; status: number; request: HostileRequest }[] = []
  await inLanes(SEEDS, { jobs: 8 }, async (seed) => {
    const request = draw(new Dice(seed))
    answers.push({ seed, status: await sendHostile(port, request), request })
  })
  return answers
}

/** A failure of the cloud itself: another thing than the answer that it has no such operation or store. */
const hasFailed = ({ status }: { status: number }): boolean => status === 500
const isThrough = ({ status }: { status: number }): boolean => status > 0 && status < 400

describe('the services of the small cloud, sent drawn requests,', () => {
  let cloud: Cloud
  let port: number
  beforeAll(async () => {
    cloud = await startCloud()
    port = Number(new URL(cloud.endpoint).port)
  }, 60_000)
  afterAll(() => cloud.stop())

  const CONTROL = ['secrets', 'volumes', 'rates', 'functions', 'sandboxes/list', 'images'].map(
    (name) => `/_modal/control/${name}`,
  )
  const GATEWAY = ['health', 'offers', 'jobs', 'volumes', 'jobs/a', 'jobs/a/logs', 'jobs/a/cancel'].map(
    (name) => `/_modal/v1/${name}`,
  )
  const LAMBDA = ['instances', 'instance-types', 'ssh-keys', 'instance-operations/terminate', 'images'].map(
    (name) => `/_lambda/api/v1/${name}`,
  )
  const SIM = ['journal', 'instances', 'account', 'faults', 'interrupt', 'reservations'].map(
    (name) => `/_sim/${name}`,
  )
  const ROUTES = [...CONTROL, ...GATEWAY, ...LAMBDA, ...SIM, '/', '/v2/', '/_registry']

  it('answer none without a key, and never fail', async () => {
    const answers = await send(port, (dice) => drawHostile(dice, ROUTES))
    expect(answers.filter((each) => isThrough(each) || hasFailed(each))).toEqual([])
  }, 120_000)

  it("close the operator's side to the keys of the providers", async () => {
    const { modal, lambda } = cloud.providers
    const answers = await send(port, (dice) => {
      const request = drawHostile(dice, [...CONTROL, ...GATEWAY, ...LAMBDA, ...SIM])
      const keys = {
        'modal-key': modal!['key']!,
        'modal-secret': modal!['secret']!,
        authorization: `Bearer ${lambda!['apiKey']}`,
      }
      return { ...request, headers: { ...request.headers, ...keys, 'user-agent': 'crucible' } }
    })
    const headers = { 'modal-key': modal!['key']!, 'modal-secret': modal!['secret']! }
    const plain = { method: 'GET', target: '/_modal/%63ontrol/secrets', headers, body: '' }
    expect(await sendHostile(port, plain)).toBe(401)
    const operators = cloud.journal
      .calls({ service: 'modal' })
      .filter(({ action }) => /^[A-Z][a-z]+[A-Z]/.test(action))
    expect(operators.length).toBeGreaterThan(10)
    expect(operators.filter(({ outcome }) => outcome === 'ok')).toEqual([])
    expect(answers.filter(hasFailed)).toEqual([])
    const through = answers.filter(isThrough).map(({ request }) => request.target)
    expect(through.length).toBeGreaterThan(0)
    expect(through.filter((path) => path.includes('_sim'))).toEqual([])
  }, 120_000)
})

const withClient = openRealGateway === undefined ? describe.skip : describe

withClient('the gateway on Modal, sent drawn requests with its key,', () => {
  let gateway: Gateway
  beforeAll(async () => {
    gateway = await openRealGateway!()
    for (const name of VOLUMES)
      await fetch(`${CONTROL()}/volumes/${name}`, { method: 'PUT', headers: operatorOf(gateway.cloud) })
  }, 60_000)
  afterAll(() => gateway.close())

  const VOLUMES = ['crucible-cache', 'of-the-team', 'crucibl']
  const CONTROL = (): string => gateway.cloud.providers['modal']!['endpoint']! + '/control'
  const JOBS = ['jobs', 'jobs?owner=test', 'jobs/job-a', 'jobs/job-a/logs', 'jobs/job-a/cancel']
  const QUERIES = ['prefix=crucible-', 'prefix=of', 'prefix=crucible-&prefix=of']
  const NAMES = [...VOLUMES, 'crucible-%2f..%2fof-the-team', 'of-the-team%00crucible-']
  const ROUTES = [
    '/v1/health',
    '/v1/offers',
    '/v1/openapi.json',
    ...JOBS.map((name) => `/v1/${name}`),
    ...NAMES.map((name) => `/v1/volumes/${name}`),
    ...QUERIES.map((query) => `/v1/volumes?${query}`),
  ]

  it('never fails, and touches no volume of others', async () => {
    const { key, secret } = gateway.token
    const port = Number(new URL(gateway.endpoint).port)
    const answers = await send(port, (dice) => {
      const request = drawHostile(dice, ROUTES)
      return { ...request, headers: { ...request.headers, 'modal-key': key, 'modal-secret': secret } }
    })
    expect(answers.filter(({ status }) => status >= 500)).toEqual([])
    expect(answers.filter(isThrough).length).toBeGreaterThan(SEEDS.length / 200)
    const left = await fetch(`${CONTROL()}/volumes`, { headers: operatorOf(gateway.cloud) })
    const { volumes } = (await left.json()) as { volumes: { name: string }[] }
    expect(volumes.map(({ name }) => name)).toEqual(expect.arrayContaining(['crucibl', 'of-the-team']))
  }, 120_000)
})

describe('the door of the Web UI, sent drawn requests,', () => {
  let ui: Server
  let door: UiDoor
  const arrived: IncomingMessage[] = []
  beforeAll(async () => {
    ui = createServer((incoming, outgoing) => {
      arrived.push(incoming)
      incoming.resume()
      outgoing.end('the page')
    })
    await new Promise<void>((resolve) => ui.listen(0, '127.0.0.1', resolve))
    door = await openUiDoor(undefined, { host: '127.0.0.1', port: (ui.address() as AddressInfo).port })
  })
  afterAll(async () => {
    await door.close()
    await new Promise((resolve) => ui.close(resolve))
  })

  it('lets each through once, with one meaning', async () => {
    const routes = ['/api/v1/namespaces/default/workflows/job%2Fx', '/namespaces/default', '/_app/start.js']
    const answers = await send(door.port, (dice) => drawHostile(dice, routes))
    expect(answers.filter(hasFailed)).toEqual([])
    expect(answers.filter(isThrough)).toHaveLength(arrived.length)
    expect(arrived.length).toBeGreaterThan(100)
    for (const { url = '', headers, method } of arrived) {
      const parts = url.split('?')[0]!.slice(1).split('/').map(decodeURIComponent)
      expect(`/${parts.map(encodeURIComponent).join('/')}`).toBe(url.split('?')[0])
      expect(
        parts.flatMap((part) => part.split(/[/\\]/)).filter((part) => ['.', '..'].includes(part)),
      ).toEqual([])
      expect(['TRACE', 'CONNECT']).not.toContain(method)
      expect(
        Object.keys(headers).filter((name) => /^x-(?!csrf)|^authorization$|^expect$/.test(name)),
      ).toEqual([])
    }
  }, 120_000)
})
