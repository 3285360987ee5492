import { createServer, type RequestListener, type Server } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from '@jest/globals'
import { z } from 'zod'
import { createModalBackend } from '../../../backends/modal'
import type { Backend } from '../../../backends/backend'
import { parseModalConfig, type ModalConfig } from '../../../backends/modal/config'
import * as documents from '../../../backends/modal/documents'
import { launchFailure } from '../../../backends/modal/errors'
import { observationOf } from '../../../backends/modal/machines'
import type { Job } from '../../../backends/modal/documents'
import type { ResourceRequest } from '../../../core/resources'
import type { MachineHandle } from '../../../core/handle'
import type { Offer } from '../../../core/offer'
import { testFolder } from '../../support/folders'
import { patiently, settled } from '../harness'
import { makeOrder } from '../orders'
import { HEALTH, ModalHarness } from './harness'
import { MemoryStore } from '../scripted/memory-store'
import { HOUR_MS } from '../../../core/time/time'

const servers: Server[] = []
afterEach(async () => {
  const ended = servers.splice(0).map((server) => {
    server.closeAllConnections()
    return new Promise((resolve) => server.close(resolve))
  })
  await Promise.all(ended)
})

const RATES_USD = {
  cpu_hour_cost: '0.0473',
  cpu_hour_cost_sandbox: '0.1419',
  mem_gib_hour_cost: '0.008',
  mem_gib_hour_cost_sandbox: '0.024',
  gpu_hour_cost_t4: '0.59',
  gpu_hour_cost_a10g: '1.10',
  gpu_hour_cost_h100: '3.95',
  gpu_hour_cost_a100_80gb: '2.50',
}

let h: ModalHarness | undefined
afterEach(async () => {
  await h?.dispose()
  h = undefined
})

async function serve(answer: RequestListener): Promise<string> {
  const server = createServer(answer)
  servers.push(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const json =
  (of: (path: string, method: string) => unknown): RequestListener =>
  ({ url = '', method = '' }, response) => {
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify(of(url, method)))
  }

const plain =
  (status: number, text: string, headers = {}): RequestListener =>
  (_, response) => {
    response.writeHead(status, { 'content-type': 'text/plain', ...headers })
    response.end(text)
  }

async function backendAt(url: string, changes: Partial<ModalConfig> = {}): Promise<Backend> {
  const config: ModalConfig = {
    url,
    token: { key: 'wk-0123456789', secret: 'ws-secret' },
    gpus: ['T4', 'A10', 'A100-80GB', 'H100'],
    runMsMax: 24 * HOUR_MS,
    hasCache: true,
    imageSecrets: {},
    cacheUnusedMs: 1,
    ...changes,
  }
  return createModalBackend(config, deps)
}

const deps = {
  clock: Date.now,
  handOver: async () => ({ url: 'https://store.example/x', key: '0'.repeat(64) }),
}

describe('the Modal gateway', () => {
  const offer = {
    backend: 'modal',
    capacityType: 'on-demand',
    type: 'T4x1',
    place: '',
    availability: 'unknown',
    shape: { cpus: 4, memoryGiB: 16, gpus: 1 },
    priceMicroUsdPerHour: 1_000_000,
    priceSource: { kind: 'live', observedAtMs: 0 },
    data: { cores: '2', memoryMiB: '16384', gpu: 'T4:1' },
  } as Offer
  const order = makeOrder({ store: new MemoryStore(Date.now), offers: [offer] })

  it.each([
    ['that is not deployed', plain(404, 'modal-http: app not found'), 'auth', /not deployed/],
    [
      'with another token',
      plain(401, 'modal-http: incorrect credentials'),
      'auth',
      /refused the proxy token.*6789/,
    ],
    ['that took too long', plain(303, '', { location: '/elsewhere' }), 'transient', /took too long.*303/],
    ['that is broken', plain(500, 'modal-http: internal error'), 'transient', /does not work/],
    ['that is asked too often', plain(429, 'slow down'), 'throttled', /slow down/],
    ['of a later version', json(() => ({ ...HEALTH, api: 2 })), 'invalid', /speaks version 2/],
    ['that answers something else', json(() => ({ hello: 1 })), 'transient', /unknown form/],
  ])('%s has its own message, and what to do', async (_, answer, failure, message) => {
    const backend = await backendAt(await serve(answer))
    const [problem, ...others] = await backend.check(patiently())
    expect(problem).toMatchObject({ severity: 'error', failure, message: expect.stringMatching(message) })
    expect(problem!.remedy).toMatch(/\S/)
    expect(JSON.stringify(problem)).not.toContain('ws-secret')
    expect(others).toEqual([])
  })

  it.each([404, 401, 303, 503])('whose place answers %i says nothing of machines', async (status) => {
    const backend = await backendAt(await serve(plain(status, 'modal-http: app not found')))
    const handle = { backend: 'modal', kind: 'machine', id: 'job-1-1' } as MachineHandle
    const calls = [
      backend.observe([handle], patiently()),
      backend.find('job-1-1', patiently()),
      backend.list('test', patiently()),
      backend.logs!(handle, undefined, patiently()),
      backend.terminate(handle, patiently()),
    ]
    const ends = await Promise.all(calls.map(settled))
    expect(ends).toEqual(calls.map(() => 'BackendError'))
  })

  it('that fails for one job answers about the others', async () => {
    const url = await serve((request, response) => {
      const isBroken = request.url!.endsWith('/job-1-1')
      response.writeHead(isBroken ? 502 : 200, { 'content-type': 'application/json' })
      const problem = { code: 'modal', message: 'internal error', type: 'InternalError' }
      const job = { key: 'job-2-1', phase: 'running', tags: {}, running_at_ms: 7 }
      response.end(JSON.stringify(isBroken ? problem : job))
    })
    const backend = await backendAt(url)
    const handles = ['job-1-1', 'job-2-1'].map(
      (id) => ({ backend: 'modal', kind: 'machine', id }) as MachineHandle,
    )
    expect(await backend.observe(handles, patiently())).toEqual([
      undefined,
      { state: 'running', billedFromAtMs: 7 },
    ])
    await expect(backend.observe(handles.slice(0, 1), patiently())).rejects.toThrow('internal error')
  })

  it('that cannot be reached has its own message', async () => {
    const url = await serve(plain(200, ''))
    servers[0]!.close()
    const [problem] = await (await backendAt(url)).check(patiently())
    expect(problem).toMatchObject({ failure: 'transient', message: expect.stringMatching(/ECONNREFUSED/) })
  })

  it('is asked for its version before each launch, and one of another version gets no order', async () => {
    const seen: string[] = []
    const url = await serve(
      json((path, method) => {
        seen.push(`${method} ${path}`)
        return { ...HEALTH, api: 0 }
      }),
    )
    const outcome = await (await backendAt(url)).launch(order, patiently())
    expect(outcome).toMatchObject({
      kind: 'refused',
      failure: { class: 'invalid', hint: expect.stringContaining('crucible setup modal') },
    })
    expect(seen).toEqual(['GET /v1/health'])
  })

  const withRequirements = { ...order, image: 'pytorch/pytorch:2.9.0', requirements: ['numpy>=2'] }

  it('builds the requirements of a job into its image', async () => {
    h = await ModalHarness.make({ isOnPaper: true })
    await h.backend.launch(withRequirements, patiently())
    expect(h.sendsOf(order.attemptId)[0]!.image).toEqual({
      reference: 'pytorch/pytorch:2.9.0',
      secret: null,
      requirements: ['numpy>=2'],
    })
  })

  it.each([
    ['ghcr.io/team/train:1', 'team-robot'],
    ['ghcr.io/other/train:1', 'robot'],
    ['ghcr.io.example/other/train:1', null],
    ['team/train:1', 'hub'],
    ['pytorch', 'hub'],
    ['localhost:5000/train', null],
  ])('gets the name of the Secret for the registry of %s', async (image, secret) => {
    h = await ModalHarness.make({ isOnPaper: true })
    const imageSecrets = { 'ghcr.io': 'robot', 'ghcr.io/team': 'team-robot', 'docker.io': 'hub' }
    const backend = await h.reopen({ imageSecrets })
    await backend.launch({ ...order, image }, patiently())
    expect(h.sendsOf(order.attemptId)[0]!.image).toMatchObject({ reference: image, secret })
  })

  it('that does not allow a Secret of the settings is reported, and does the rest', async () => {
    h = await ModalHarness.make({ isOnPaper: true })
    h.answerHealth({ allowed: { ...HEALTH.allowed, secrets: ['hub'] } })
    const imageSecrets = { 'ghcr.io': 'robot', 'docker.io': 'hub' }
    expect(await (await h.reopen({ imageSecrets })).check(patiently())).toEqual([
      {
        severity: 'warning',
        message: expect.stringContaining('Modal Secret robot'),
        remedy: 'Run `crucible setup modal`.',
      },
    ])
  })

  it('whose cache volume no machine uses shows it as not needed', async () => {
    const dayMs = 86_400_000
    const volume = { name: 'crucible-cache-test', created_at_ms: 1 }
    const url = await serve(
      json((path) =>
        path.startsWith('/v1/volumes')
          ? { items: [{ ...volume, used_at_ms: Date.now() - 2 * dayMs }] }
          : HEALTH,
      ),
    )
    const leftovers = async (cacheUnusedMs: number): Promise<unknown> =>
      (await backendAt(url, { cacheUnusedMs })).leftovers!('test', patiently())
    const handle = { kind: 'volume', id: 'crucible-cache-test' }
    expect(await leftovers(dayMs)).toMatchObject([{ handle, use: { isNeeded: false } }])
    expect(await leftovers(7 * dayMs)).toMatchObject([{ handle, use: { isNeeded: true } }])
  })
})

describe('offers of Modal', () => {
  async function offersOf(
    request: ResourceRequest,
    usd: object = RATES_USD,
    observedAtMs = Date.now(),
  ): Promise<Offer[]> {
    const rates = { observed_at_ms: observedAtMs, usd }
    const url = await serve(json((path) => (path === '/v1/health' ? HEALTH : rates)))
    return (await backendAt(url)).offers(request, patiently())
  }

  it('have the price of the GPUs, cores and memory at the rates of Sandboxes', async () => {
    const offers = await offersOf({ gpus: { min: 2 }, accelerators: ['H100'] })
    const found = offers.find(({ type }) => type === 'H100x2')!
    expect(found).toMatchObject({
      shape: { cpus: 8, memoryGiB: 32, gpus: 2, accelerator: 'H100' },
      isPreemptible: true,
      isolation: 'shared',
      runMsMax: 24 * HOUR_MS,
      priceSource: { kind: 'live' },
      // A core is two vCPUs.
      data: { cores: '4', memoryMiB: '32768', gpu: 'H100!:2' },
    })
    // 2 x $3.95, 4 x $0.1419 and 32 x $0.024.
    expect(found.priceMicroUsdPerHour).toBe(9_235_600)
  })

  it('refuse a larger GPU only for a job that names its GPU, or the most memory of one', async () => {
    const gpuOf = async (request: ResourceRequest): Promise<string | undefined> =>
      (await offersOf(request)).find(({ type }) => type === 'H100x1')?.data?.['gpu']
    expect(await gpuOf({ gpus: { min: 1 } })).toBe('H100:1')
    expect(await gpuOf({ accelerators: ['H100'] })).toBe('H100!:1')
    expect(await gpuOf({ gpuMemoryGb: { min: 80, max: 80 } })).toBe('H100!:1')
  })

  it('are cut to the request', async () => {
    const [cpu] = await offersOf({ cpus: { min: 6 }, memoryGiB: { min: 10 } })
    expect(cpu).toMatchObject({
      type: 'cpu',
      shape: { cpus: 6, memoryGiB: 10, gpus: 0 },
      data: { cores: '3' },
    })
    expect(cpu!.isPreemptible).toBeUndefined()
  })

  it('have no more than four A10, and leave out a GPU without a rate', async () => {
    const types = (await offersOf({ gpus: { min: 1 } })).map(({ type }) => type)
    expect(types).toEqual(expect.arrayContaining(['A10x4', 'T4x8']))
    expect(types).not.toContain('A10x8')
    const others = Object.fromEntries(
      Object.entries(RATES_USD).filter(([name]) => name !== 'gpu_hour_cost_t4'),
    )
    const left = (await offersOf({ gpus: { min: 1 } }, others)).map(({ type }) => type)
    expect(left).not.toContain('T4x1')
  })

  it('tell the age of rates that only the deployment of the gateway could read', async () => {
    const weekAgo = Date.now() - 7 * 86_400_000
    const sources = (await offersOf({}, RATES_USD, weekAgo)).map(({ priceSource }) => priceSource)
    expect(new Set(sources.map((one) => JSON.stringify(one)))).toEqual(
      new Set([JSON.stringify({ kind: 'static', observedAtMs: weekAgo })]),
    )
    expect((await offersOf({})).map(({ priceSource: { kind } }) => kind)).not.toContain('static')
  })

  it('are not made up where Modal reports no rates', async () => {
    await expect(offersOf({}, {})).rejects.toMatchObject({
      failure: { class: 'unclassified', message: expect.stringContaining('cpu_hour_cost_sandbox') },
    })
  })
})

describe('what the gateway says of a machine', () => {
  const job = (fields: Partial<Job>): Job => ({ key: 'a-1', phase: 'ended', tags: {}, ...fields })

  it.each<[string, Partial<Job> | undefined, object]>([
    ['a launch waits', { phase: 'launching' }, { state: 'queued' }],
    [
      'it runs, and since when it costs',
      { phase: 'running', running_at_ms: 7 },
      { state: 'running', billedFromAtMs: 7 },
    ],
    [
      'Modal took it back',
      { exit_code: 137, ended_at_ms: 9 },
      { state: 'gone', cause: 'interrupted', endedAtMs: 9 },
    ],
    [
      'it reached its time limit',
      { exit_code: 124 },
      { state: 'gone', cause: 'ended', detail: expect.stringContaining('time limit') },
    ],
    ['it ended, which proves no success', { exit_code: 0 }, { state: 'gone', cause: 'ended' }],
    ['we ended it', { phase: 'cancelled', exit_code: 137 }, { state: 'gone', cause: 'ended' }],
    [
      'no GPU came',
      {
        phase: 'launch_failed',
        error: { type: 'ResourceExhaustedError', message: 'Insufficient capacity to create sandbox.' },
      },
      { state: 'gone', cause: 'failed-to-start' },
    ],
    [
      'its image cannot be built',
      { phase: 'launch_failed', error: { type: 'ImageBuildError', message: 'no such image' } },
      {
        cause: 'failed-to-start',
        failure: { class: 'invalid', hint: expect.stringContaining('CRUCIBLE_MODAL_IMAGE_SECRETS') },
      },
    ],
    ['its launcher was lost', { phase: 'launch_lost' }, { state: 'gone', cause: 'failed-to-start' }],
    ['a later gateway has another phase', { phase: 'hibernating' }, { state: 'running' }],
    ['nothing is known of it', undefined, { state: 'gone', cause: 'unknown' }],
  ])('tells that %s', (_, fields, observation) => {
    expect(observationOf(fields && job(fields))).toMatchObject(observation)
  })

  it('tells missing capacity from a limit of the workspace', () => {
    const classOf = (message: string): string =>
      launchFailure({ type: 'ResourceExhaustedError', message }).class
    expect(classOf('Insufficient capacity to create sandbox.')).toBe('capacity')
    expect(classOf('Sandbox creation rate limit exceeded')).toBe('capacity')
    expect(classOf('Workspace spend limit reached')).toBe('quota')
  })

  it.each(['ConflictError', 'PermissionDeniedError', 'ServiceError', 'GRPCError'])(
    'knows a workspace that may spend no more by its words, in a %s too',
    (type) => {
      const message = 'Function call failed: workspace billing cycle spend limit reached'
      expect(launchFailure({ type, message })).toMatchObject({
        class: 'quota',
        hint: expect.stringContaining('modal.com/settings/usage'),
      })
    },
  )
})

/** The parts of JSON Schema that the document uses. */
interface Schema {
  type?: string
  $ref?: string
  anyOf?: Schema[]
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
}

describe("the gateway's OpenAPI document", () => {
  const document = JSON.parse(
    readFileSync(join(__dirname, '../../../backends/modal/gateway/openapi.json'), 'utf8'),
  ) as {
    info: { version: string }
    components: { schemas: Record<string, Schema> }
  }
  const PAIRS = {
    Health: documents.health,
    Rates: documents.rates,
    Job: documents.job,
    JobList: documents.jobList,
    VolumeList: documents.volumeList,
    LogTail: documents.logTail,
  }

  it('has the version that this code speaks', () => {
    expect(document.info.version).toBe(String(documents.API))
  })

  /** A schema without its null, with its reference in place. */
  function plain(schema: Schema): Schema {
    const one = schema.anyOf?.find(({ type }) => type !== 'null') ?? schema
    return one.$ref === undefined ? one : document.components.schemas[one.$ref.split('/').at(-1)!]!
  }

  /** Fields that are read and that the gateway does not have, or may leave out although they are needed. */
  function lacking(read: Schema, given: Schema, path: string): string[] {
    const [wanted, known] = [plain(read), plain(given)]
    const fields = Object.entries(wanted.properties ?? {}).flatMap(([name, field]) => {
      const found = known.properties?.[name]
      if (found === undefined) return [`${path}.${name} is unknown`]
      const isLeftOut = wanted.required?.includes(name) === true && known.required?.includes(name) !== true
      return [
        ...(isLeftOut ? [`${path}.${name} may be missing`] : []),
        ...lacking(field, found, `${path}.${name}`),
      ]
    })
    return wanted.items === undefined
      ? fields
      : [...fields, ...lacking(wanted.items, known.items!, `${path}[]`)]
  }

  it.each(Object.entries(PAIRS))('gives every field of %s that is read here', (name, schema) => {
    const read = z.toJSONSchema(schema as z.ZodType, { io: 'input' }) as Schema
    expect(Object.keys(read.properties ?? {})).not.toEqual([])
    expect(lacking(read, document.components.schemas[name]!, name)).toEqual([])
  })

  it('allows the launches that are sent', async () => {
    const { components } = JSON.parse(
      JSON.stringify(document).replaceAll('#/components/schemas/', '#/$defs/'),
    ) as typeof document
    const request = z.fromJSONSchema({
      ...components.schemas['JobRequest'],
      $defs: components.schemas,
    } as never)
    h = await ModalHarness.make({ isOnPaper: true })
    const [offer] = await h.backend.offers({ gpus: { min: 1 } }, patiently())
    const orders = [await h.order(), { ...(await h.order()), offers: [offer!], image: 'python:3.12' }]
    for (const order of orders) await h.backend.launch(order, patiently())
    const sent = orders.map(({ attemptId, token }) => {
      const { key, ...request } = h!.sendsOf(attemptId)[0]!
      expect(key).toBe(token)
      return request
    })
    expect(sent.map(({ gpu, image }) => [gpu, image.reference])).toEqual([
      [null, null],
      ['T4:1', 'python:3.12'],
    ])
    for (const one of sent) expect(request.safeParse(one).error).toBeUndefined()
    expect(request.safeParse({ ...sent[0], surprise: 1 }).success).toBe(false)
    expect(request.safeParse({ ...sent[0], gpu: 'T4;' }).success).toBe(false)
  })

  it('has every field of a launch that is sent, and no other required one', async () => {
    const { properties, required = [] } = document.components.schemas['JobRequest']!
    const sent: Record<keyof documents.JobRequest, true> = {
      owner: true,
      tags: true,
      image: true,
      command: true,
      env: true,
      gpu: true,
      cpu: true,
      memory_mib: true,
      timeout_s: true,
      volumes: true,
      secrets: true,
      send_by_ms: true,
    }
    expect(Object.keys(properties ?? {}).sort()).toEqual(Object.keys(sent).sort())
    expect(required.filter((field) => !(field in sent))).toEqual([])
  })
})

describe('the settings of Modal', () => {
  const problemsOf = (settings: Record<string, string>): string[] => {
    const parsed = parseModalConfig({ HOME: testFolder('home'), ...settings })
    return 'problems' in parsed ? parsed.problems : []
  }
  const WHOLE = {
    CRUCIBLE_MODAL_URL: 'https://w--g.modal.run/',
    CRUCIBLE_MODAL_KEY: 'wk-1',
    CRUCIBLE_MODAL_SECRET: 'ws-1',
  }

  it('are complete with an address and a token', () => {
    expect(parseModalConfig({ HOME: testFolder('home'), ...WHOLE })).toMatchObject({
      config: {
        url: 'https://w--g.modal.run',
        token: { key: 'wk-1', secret: 'ws-1' },
        runMsMax: 24 * HOUR_MS,
      },
    })
    expect(problemsOf({})).toEqual([expect.stringContaining('crucible setup modal')])
  })

  it.each([
    [{ CRUCIBLE_MODAL_URL: 'modal' }, /CRUCIBLE_MODAL_URL is "modal"/],
    [{ CRUCIBLE_MODAL_RUN_MAX: '25h' }, /24h or less/],
    [{ CRUCIBLE_MODAL_GPUS: 'K80' }, /write some of T4/],
    [{ CRUCIBLE_MODAL_CACHE: 'maybe' }, /write yes or no/],
    [{ CRUCIBLE_MODAL_IMAGE_SECRETS: 'ghcr.io' }, /is "ghcr\.io": write REGISTRY=SECRET/],
    [{ CRUCIBLE_MODAL_IMAGE_SECRETS: 'ghcr.io=a=b' }, /write REGISTRY=SECRET/],
  ])('name what is wrong: %j', (wrong, words) => {
    expect(problemsOf({ ...WHOLE, ...wrong })).toEqual([expect.stringMatching(words)])
  })
})
