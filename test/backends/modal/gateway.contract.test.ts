import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals'
import { patient } from '../../support/patience'
import { until } from '../../support/until'
import { openRealGateway, openStandIn, type Gateway, type OpenGateway } from './gateways'

interface Job {
  phase: string
  sandbox_id: string | null
  exit_code: number | null
  error: { type: string; message: string } | null
  accepted_at_ms: number
  running_at_ms: number | null
  ended_at_ms: number | null
}

const HEADERS = { 'content-type': 'application/json', 'user-agent': 'crucible-test' }
/** How long a request of these tests may be on its way. */
const SEND_MS = 60_000
/** A registry that requires a login, and the Secrets of the workspace. */
const PRIVATE = {
  docker: { logins: { 'ghcr.io': { username: 'robot', password: 'right' } } },
  modal: {
    secrets: {
      'registry-login': { REGISTRY_USERNAME: 'robot', REGISTRY_PASSWORD: 'right' },
      'old-login': { REGISTRY_USERNAME: 'robot', REGISTRY_PASSWORD: 'wrong' },
    },
  },
}
const CANCELLED = { status: 200, body: { phase: 'cancelled' } }

jest.setTimeout(patient(60_000))

/** What the gateway promises over HTTP: held by the gateway under Modal's own client, and by the stand-in that other tests use. */
function gatewayContract(open: OpenGateway): void {
  let gateway: Gateway
  let keys = 0
  let key = ''

  beforeAll(async () => {
    gateway = await open(PRIVATE)
  })
  afterAll(() => gateway.close())
  afterEach(() => call('POST', `/v1/jobs/${key}/cancel`))

  async function call<T = Job>(
    method: string,
    path: string,
    body?: unknown,
  ): Promise<{ status: number; body: T }> {
    const { key: id, secret } = gateway.token
    const answer = await fetch(`${gateway.endpoint}${path}`, {
      method,
      redirect: 'manual',
      headers: { ...HEADERS, 'modal-key': id, 'modal-secret': secret },
      body: body === undefined ? undefined : JSON.stringify(body),
    })
    const text = await answer.text()
    return { status: answer.status, body: (text.startsWith('{') ? JSON.parse(text) : text) as T }
  }

  function requestOf(script: string, fields: object = {}): object {
    return {
      owner: 'dep',
      command: ['sh', '-c', script],
      cpu: 1,
      memory_mib: 512,
      timeout_s: 60,
      send_by_ms: Date.now() + SEND_MS,
      ...fields,
    }
  }

  /** Submits a job of a new key. */
  async function submit(script: string, fields: object = {}): Promise<{ status: number; body: Job }> {
    key = `job-${(keys += 1)}`
    return call('PUT', `/v1/jobs/${key}`, requestOf(script, fields))
  }

  const read = async (): Promise<Job> => (await call('GET', `/v1/jobs/${key}`)).body

  async function untilPhase(...phases: string[]): Promise<Job> {
    let job = await read()
    await until(async () => phases.includes((job = await read()).phase), patient(20_000))
    return job
  }

  it('wants the proxy token, and answers in plain text without it', async () => {
    const none = await fetch(`${gateway.endpoint}/v1/health`)
    expect(none.status).toBe(401)
    expect(await none.text()).toBe('modal-http: missing credentials for proxy authorization')
    const wrong = await fetch(`${gateway.endpoint}/v1/health`, {
      headers: { ...HEADERS, 'modal-key': 'wk-other', 'modal-secret': 'ws-other' },
    })
    expect(wrong.status).toBe(401)
  })

  it('reports its version and features', async () => {
    expect((await call('GET', '/v1/health')).body).toMatchObject({
      ok: true,
      api: 1,
      sdk: '1.6.4',
      features: ['logs', 'requirements', 'volumes'],
      allowed: { registries: expect.arrayContaining(['docker.io']), volumes: 'crucible-' },
    })
  })

  it('reports the rates of the workspace', async () => {
    const { body } = await call<{ usd: object; observed_at_ms: number }>('GET', '/v1/offers')
    expect(body.usd).toMatchObject({ gpu_hour_cost_h100: '3.95', cpu_hour_cost_sandbox: '0.1419' })
    expect(Math.abs(body.observed_at_ms - Date.now())).toBeLessThan(patient(10_000))
  })

  it('runs the command with its variables, and reports its end and its output', async () => {
    const fields = { env: { GREETING: "it's me" }, tags: { job: 'a' } }
    const { status, body } = await submit('echo "hello $GREETING"; exit 3', fields)
    expect({ status, body }).toMatchObject({ status: 202, body: { owner: 'dep', tags: { job: 'a' } } })
    const job = await untilPhase('ended')
    expect(job).toMatchObject({ exit_code: 3, error: null, sandbox_id: expect.stringMatching(/^sb-/) })
    expect(job.running_at_ms).toBeGreaterThanOrEqual(job.accepted_at_ms)
    const { body: logs } = await call<{ lines: string[] }>('GET', `/v1/jobs/${key}/logs?lines=5`)
    expect(logs).toEqual({ lines: ["hello it's me"] })
  })

  it('makes one Sandbox of a request that is repeated, whatever its command', async () => {
    key = `job-${(keys += 1)}`
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, i) => call('PUT', `/v1/jobs/${key}`, requestOf(`sleep 30; : ${i}`))),
    )
    expect(answers.filter(({ status }) => status === 202)).toHaveLength(1)
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(7)
    await untilPhase('running')
    expect(sandboxesOf(key)).toHaveLength(1)
    const { status, body } = await call('PUT', `/v1/jobs/${key}`, requestOf('sleep 30', { memory_mib: 1024 }))
    expect({ status, body }).toMatchObject({ status: 409, body: { code: 'key-reused' } })
  })

  const sandboxesOf = (name: string): unknown[] =>
    gateway.cloud.instances().filter(({ tags }) => tags['key'] === name)

  it('refuses what arrives too late, unless it is known', async () => {
    const late = { send_by_ms: Date.now() - 1000 }
    expect(await submit('true', late)).toMatchObject({ status: 410, body: { code: 'too-late' } })
    expect(await call('GET', `/v1/jobs/${key}`)).toMatchObject({
      status: 404,
      body: { code: 'unknown-key' },
    })
    await call('PUT', `/v1/jobs/${key}`, requestOf('sleep 30'))
    expect((await call('PUT', `/v1/jobs/${key}`, requestOf('sleep 30', late))).status).toBe(200)
  })

  it.each([
    ['an unknown field', { gpus: 1 }, /gpus/],
    ['more than 24 hours', { timeout_s: 86_401 }, /timeout_s/],
    ['an empty command', { command: [] }, /command/],
    ['an option among the requirements', { image: { requirements: ['--pre'] } }, /requirements/],
    ['a tag that is no tag', { tags: { 'a b': 'c' } }, /tags/],
  ])('refuses %s, by name', async (_, fields, name) => {
    const { status, body } = await submit('true', fields)
    expect({ status, body }).toMatchObject({
      status: 422,
      body: { code: 'invalid', message: expect.stringMatching(name) },
    })
  })

  it.each([
    ['a registry', { image: { reference: 'registry.example/x' } }],
    ['a secret', { secrets: ['aws-admin'] }],
    ['a volume', { volumes: { '/data': 'payroll' } }],
  ])('refuses %s that the deployment does not allow', async (_, fields) => {
    expect(await submit('true', fields)).toMatchObject({ status: 403, body: { code: 'not-allowed' } })
  })

  it('reports a queued launch as launching until Modal has a GPU', async () => {
    gateway.cloud.addFault({ fault: 'queued', for: '2s', times: 1, where: { service: 'modal' } })
    const { body } = await submit('sleep 30', { gpu: 'H100!:2' })
    expect(body).toMatchObject({ phase: 'launching', running_at_ms: null })
    const job = await untilPhase('running')
    expect(job.running_at_ms! - job.accepted_at_ms).toBeGreaterThan(1900)
  })

  it('ends a queued launch that is cancelled before it starts', async () => {
    gateway.cloud.addFault({ fault: 'queued', for: '60s', times: 1, where: { service: 'modal' } })
    await submit('sleep 30', { gpu: 'T4' })
    await until(async () => sandboxesOf(key).length === 1, patient(10_000))
    await call('POST', `/v1/jobs/${key}/cancel`)
    const job = await untilPhase('cancelled')
    expect(job.running_at_ms).toBeNull()
    expect(sandboxesOf(key)).toMatchObject([{ state: 'ended', bill: { usd: 0 } }])
  })

  it('cancels a running job, more than once, and a key that nothing was sent for', async () => {
    await submit('sleep 30')
    await untilPhase('running')
    await call('POST', `/v1/jobs/${key}/cancel`)
    expect(await untilPhase('cancelled')).toMatchObject({ exit_code: 137 })
    expect(await call('POST', `/v1/jobs/${key}/cancel`)).toMatchObject(CANCELLED)
    key = `job-${(keys += 1)}`
    expect(await call('POST', `/v1/jobs/${key}/cancel`)).toMatchObject(CANCELLED)
    expect(await call('PUT', `/v1/jobs/${key}`, requestOf('true'))).toMatchObject({
      body: { phase: 'cancelled' },
    })
    expect(sandboxesOf(key)).toEqual([])
  })

  it('reports the time limit as exit code 124', async () => {
    await submit('sleep 30', { timeout_s: 1 })
    expect(await untilPhase('ended')).toMatchObject({ exit_code: 124 })
  })

  it('reports a Sandbox that Modal took away as exit code 137', async () => {
    await submit('sleep 30', { gpu: 'L4' })
    const job = await untilPhase('running')
    gateway.cloud.interrupt(job.sandbox_id!)
    expect(await untilPhase('ended')).toMatchObject({ exit_code: 137 })
  })

  it('reports a worker of Modal that failed as exit code 0', async () => {
    gateway.cloud.addFault({ fault: 'crash', after: '200ms', times: 1, where: { service: 'modal' } })
    await submit('sleep 30')
    expect(await untilPhase('ended')).toMatchObject({ exit_code: 0 })
  })

  it('reports a container that cannot start as a failed launch', async () => {
    gateway.cloud.addFault({
      fault: 'launch-fails',
      after: '100ms',
      reason: 'exec failed',
      times: 1,
      where: { service: 'modal' },
    })
    await submit('sleep 30', { gpu: 'T4' })
    expect(await untilPhase('launch_failed')).toMatchObject({
      error: { type: 'ConflictError', message: 'exec failed' },
    })
  })

  it('reports a GPU that Modal does not know, and an image that cannot be built', async () => {
    await submit('true', { gpu: 'K80' })
    expect(await untilPhase('launch_failed')).toMatchObject({ error: { type: 'InvalidError' } })
    gateway.cloud.addFault({
      fault: 'error',
      code: 'FAILURE',
      message: 'Image build failed',
      times: 1,
      where: { service: 'modal', action: 'ImageJoinStreaming' },
    })
    await submit('true', { image: { reference: 'nobody/nothing:1' } })
    expect(await untilPhase('launch_failed')).toMatchObject({
      error: { type: 'ImageBuildError', message: expect.stringContaining('Image build failed') },
    })
  })

  it('pulls an image that needs a login with the Secret that the request names', async () => {
    const reference = 'ghcr.io/team/train:1'
    for (const secret of [null, 'old-login']) {
      await submit('true', { image: { reference, secret } })
      expect(await untilPhase('launch_failed')).toMatchObject({
        error: { type: 'ImageBuildError', message: expect.stringContaining('authentication required') },
      })
    }
    await submit('sleep 30', { image: { reference, secret: 'registry-login' } })
    await untilPhase('running')
  })

  it('reports a Sandbox that Modal takes back as ended; an operator of the cloud means it by its key', async () => {
    await submit('sleep 30')
    await untilPhase('running')
    gateway.cloud.interrupt(key)
    expect(await untilPhase('ended')).toMatchObject({ exit_code: 137 })
    expect(() => gateway.cloud.interrupt(key)).toThrow('there is no instance')
  })

  it('waits while Modal refuses because Sandboxes are created too fast', async () => {
    gateway.cloud.addFault({
      fault: 'error',
      code: 'RESOURCE_EXHAUSTED',
      message: 'Sandbox creation rate limit exceeded',
      times: 2,
      where: { service: 'modal', action: 'SandboxCreate' },
    })
    await submit('sleep 30')
    await untilPhase('running')
  })

  it('reports a workspace that may have no more', async () => {
    gateway.cloud.addFault({
      fault: 'error',
      code: 'RESOURCE_EXHAUSTED',
      message: 'Workspace spend limit reached',
      times: 1,
      where: { service: 'modal', action: 'SandboxCreate' },
    })
    await submit('true')
    expect(await untilPhase('launch_failed')).toMatchObject({
      error: { type: 'ResourceExhaustedError', message: 'Workspace spend limit reached' },
    })
  })

  it('lists what runs or waits, by owner', async () => {
    await submit('sleep 30', { owner: 'somebody', tags: { job: 'x' } })
    await untilPhase('running')
    const { body } = await call<{ items: { key: string; tags: object }[] }>('GET', '/v1/jobs?owner=somebody')
    expect(body.items).toMatchObject([{ key, tags: { owner: 'somebody', job: 'x' } }])
    expect((await call('GET', '/v1/jobs?owner=nobody')).body).toEqual({ items: [] })
  })

  it('keeps volumes, reports when they were used, and deletes them', async () => {
    await submit('sleep 30', { volumes: { '/var/cache/crucible': 'crucible-cache-a' } })
    await untilPhase('running')
    const list = async (): Promise<unknown> =>
      (await call<{ items: unknown[] }>('GET', '/v1/volumes?prefix=crucible-')).body.items
    expect(await list()).toMatchObject([
      { name: 'crucible-cache-a', created_at_ms: expect.any(Number), used_at_ms: expect.any(Number) },
    ])
    expect((await call('DELETE', '/v1/volumes/crucible-cache-a')).status).toBe(204)
    expect(await list()).toEqual([])
    expect((await call('DELETE', '/v1/volumes/payroll')).status).toBe(403)
  })

  it('knows no other addresses', async () => {
    expect((await call('GET', '/v2/health')).status).toBe(404)
  })
}

describe("the gateway's stand-in", () => gatewayContract(openStandIn))

if (openRealGateway === undefined)
  describe.skip("the gateway under Modal's client", () => it('keeps the same contract', () => undefined))
else {
  describe("the gateway under Modal's client", () => gatewayContract(openRealGateway!))

  describe('an image of the user', () => {
    it('gets a Python from its own package manager when Modal builds it, if it has none', async () => {
      const gateway = await openRealGateway!()
      const { cloud, endpoint, token } = gateway
      const body = {
        owner: 'dep',
        command: ['true'],
        cpu: 1,
        memory_mib: 512,
        timeout_s: 60,
        image: { reference: 'alpine:3.22' },
        send_by_ms: Date.now() + SEND_MS,
      }
      const headers = { ...HEADERS, 'modal-key': token.key, 'modal-secret': token.secret }
      await fetch(`${endpoint}/v1/jobs/job-alpine`, { method: 'PUT', headers, body: JSON.stringify(body) })
      const built = (): string[] =>
        cloud.journal
          .calls({ service: 'modal', action: 'ImageJoinStreaming' })
          .map(({ parameters }) => (parameters as { dockerfile: string }).dockerfile)
      await until(() => built().some((text) => text.includes('alpine:3.22')), patient(20_000))
      const dockerfile = built().find((text) => text.includes('alpine:3.22'))!
      expect(dockerfile).toMatch(/command -v python3 .*apt-get install .*python3.*apk add .*python3/)
      await gateway.close()
    })
  })
}
