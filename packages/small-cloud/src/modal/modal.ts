/** Modal with Crucible's gateway in the workspace: the gateway's HTTP API, and the control plane for a gateway outside of this process. */
import { z } from 'zod'
import { HttpAnswer, route, type HttpRequest, type HttpRoute, type HttpService } from '../http/service'
import { hasBearer, isSameSecret, type CloudKeys } from '../keys'
import type { Provider, ProviderParts } from '../provider'
import { ApiError } from '../wire/errors'
import { jobRequest, key, volumeName, type JobRequest } from './documents'
import { Jobs } from './jobs'
import { allowedWith, fullReference, refusalOf, refuseVolume, type Allowed } from './policy'
import { MODAL_RATES } from './rates'
import { ModalRefusal } from './refusal'
import { Sandboxes, type Sandbox } from './sandboxes'

/** The name of the control plane's only caller. */
const CONTROL_CALLER = 'modal-control-plane'
const JOBS_APP = 'crucible-jobs'
const GPUS_MAX = 10

export function createModal(parts: ProviderParts): Provider {
  const workspace = new Workspace(parts)
  return {
    service: workspace.service(),
    credentials: { ...parts.keys.modal },
    hosted: () => workspace.sandboxes.hosted(),
    instances: () => workspace.sandboxes.instances(),
    interrupt: (instance) => workspace.sandboxes.preempt(instance),
  }
}

class Workspace {
  readonly sandboxes: Sandboxes
  private readonly jobs: Jobs
  private readonly allowed: Allowed
  private readonly volumes = new Map<string, { createdAtMs: number; usedAtMs: number | null }>()

  constructor(private readonly parts: ProviderParts) {
    this.allowed = allowedWith(Object.keys(parts.world.modal.secrets))
    this.sandboxes = new Sandboxes(parts, GPUS_MAX)
    this.jobs = new Jobs({
      ...parts,
      sandboxes: this.sandboxes,
      app: JOBS_APP,
      prepare: (request) => this.prepare(request),
      strike: (action) => this.strike(action),
    })
  }

  service(): HttpService {
    return {
      name: 'modal',
      routes: [...this.gatewayRoutes(), ...this.controlRoutes()],
      identify: (request) => identify(request, this.parts.keys),
      wrongFields: (fields) =>
        new ApiError('invalid', fields.map(({ field, words }) => `${field}: ${words}`).join('; '), 422),
      unknownRoute: () => new ApiError('gateway', 'modal-http: not found', 404),
      fault: (which) =>
        typeof which === 'string'
          ? new ApiError('gateway', 'modal-http: internal error', which === 'unavailable' ? 503 : 500)
          : new ApiError(which.code, which.message ?? which.code, which.status ?? 502),
      // Modal's own proxy answers in plain text, the gateway in JSON.
      writeError: ({ code, message, status }) =>
        new HttpAnswer(status, code === 'gateway' ? message : { code, message }),
    }
  }

  private gatewayRoutes(): HttpRoute[] {
    const params = z.strictObject({ key })
    return [
      route('health', 'GET /v1/health', {
        run: () => ({
          ok: true,
          api: 1,
          features: ['logs', 'requirements', 'volumes'],
          sdk: '1.6.4',
          environment: 'main',
          allowed: this.allowed,
        }),
      }),
      route('offers', 'GET /v1/offers', {
        run: () => ({ observed_at_ms: this.parts.clock.nowMs(), usd: MODAL_RATES }),
      }),
      route('submit', 'PUT /v1/jobs/:key', {
        params,
        body: jobRequest,
        isMutating: true,
        run: ({ params, body }) => this.submit(params.key, body),
      }),
      route('list', 'GET /v1/jobs', {
        query: z.strictObject({ owner: key }),
        run: ({ query }) => ({ items: this.jobs.running(query.owner) }),
      }),
      route('read', 'GET /v1/jobs/:key', {
        params,
        run: ({ params }) => this.jobs.read(params.key) ?? unknownKey(params.key),
      }),
      route('cancel', 'POST /v1/jobs/:key/cancel', {
        params,
        isMutating: true,
        run: ({ params }) => this.jobs.cancel(params.key),
      }),
      route('logs', 'GET /v1/jobs/:key/logs', {
        params,
        query: z.strictObject({ lines: z.coerce.number().int().min(1).max(1000).default(200) }),
        run: async ({ params, query }) => {
          const lines = await this.jobs.logs(params.key, query.lines)
          return lines === undefined ? unknownKey(params.key) : { lines }
        },
      }),
      ...this.volumeRoutes(),
    ]
  }

  private volumeRoutes(): HttpRoute[] {
    return [
      route('volumes', 'GET /v1/volumes', {
        query: z.strictObject({ prefix: volumeName }),
        run: ({ query: { prefix } }) => {
          refuseVolume(prefix)
          const items = [...this.volumes].filter(([name]) => name.startsWith(prefix))
          return {
            items: items.map(([name, { createdAtMs, usedAtMs }]) => ({
              name,
              created_at_ms: createdAtMs,
              used_at_ms: usedAtMs,
            })),
          }
        },
      }),
      route('deleteVolume', 'DELETE /v1/volumes/:name', {
        params: z.strictObject({ name: volumeName }),
        isMutating: true,
        run: ({ params: { name } }) => {
          refuseVolume(name)
          this.volumes.delete(name)
          return new HttpAnswer(204, '')
        },
      }),
    ]
  }

  private submit(name: string, request: JobRequest): HttpAnswer {
    const refusal = refusalOf(this.allowed, request)
    if (refusal !== undefined) throw new ApiError('not-allowed', refusal, 403)
    const { job, isNew } = this.jobs.submit(name, request)
    if (isNew)
      for (const volume of Object.values(request.volumes)) {
        const nowMs = this.parts.clock.nowMs()
        this.volumes.set(volume, { createdAtMs: nowMs, ...this.volumes.get(volume), usedAtMs: nowMs })
      }
    return new HttpAnswer(isNew ? 202 : 200, job)
  }

  private prepare({ image: { reference, secret, requirements } }: JobRequest): { dockerfile: string } {
    const from = `FROM ${reference ?? 'debian'}`
    const dockerfile = [from, ...requirements.map((line) => `RUN uv pip install ${line}`)].join('\n')
    this.build(dockerfile, secret ?? undefined)
    return { dockerfile }
  }

  /** Builds an image, as far as a cloud without images does: some can be absent. */
  private build(dockerfile: string, secret?: string): void {
    const { docker } = this.parts.world
    const absent = docker.absentImages.find((part) => dockerfile.includes(part))
    if (absent !== undefined)
      throw new ModalRefusal('ImageBuildError', `Image build failed: ${absent}: not found`)
    if (!this.canPull(dockerfile, secret))
      throw new ModalRefusal('ImageBuildError', 'Image build failed: unauthorized: authentication required')
    const refusal = this.strike('ImageJoinStreaming')
    if (refusal !== undefined) throw new ModalRefusal('ImageBuildError', refusal.message)
  }

  /** Whether the registry of an image asks for no login, or for the one in a Secret. */
  private canPull(dockerfile: string, secret: string | undefined): boolean {
    const { docker, modal } = this.parts.world
    const [, reference = ''] = /^FROM (\S+)/m.exec(dockerfile) ?? []
    const login = docker.logins[fullReference(reference).split('/')[0]!]
    const given = modal.secrets[secret ?? '']
    return (
      login === undefined ||
      (given?.['REGISTRY_USERNAME'] === login.username && given['REGISTRY_PASSWORD'] === login.password)
    )
  }

  private strike(action: string): ModalRefusal | undefined {
    const fault = this.parts.faults.first('error', { service: 'modal', action })
    return fault === undefined ? undefined : new ModalRefusal(fault.code, fault.message ?? fault.code)
  }

  /** Routes of the control plane for tests with Modal's own client; see test/backends/modal/python/servicer.py. */
  private controlRoutes(): HttpRoute[] {
    const params = z.strictObject({ id: z.string() })
    const spec = z.strictObject({
      app: z.string(),
      name: z.string(),
      tags: z.record(z.string(), z.string()),
      command: z.array(z.string()),
      env: z.record(z.string(), z.string()),
      dockerfile: z.string(),
      gpu: z.strictObject({ type: z.string(), count: z.int() }).nullable(),
      timeoutMs: z.int(),
      milliCpu: z.int(),
      memoryMiB: z.int(),
      volumes: z.record(z.string(), z.string()),
    })
    return [
      control('SandboxCreate', 'POST /control/sandboxes', {
        body: spec,
        isMutating: true,
        run: ({ body }) => wordsOf(this.sandboxes.create(body)),
      }),
      control('SandboxList', 'POST /control/sandboxes/list', {
        body: z.strictObject({ app: z.string(), tags: z.record(z.string(), z.string()) }),
        run: ({ body }) => ({ sandboxes: this.sandboxes.list(body).map(wordsOf) }),
      }),
      control('SandboxWait', 'GET /control/sandboxes/:id', {
        params,
        run: ({ params }) => wordsOf(this.sandboxes.get(params.id)),
      }),
      control('SandboxTerminate', 'POST /control/sandboxes/:id/terminate', {
        params,
        isMutating: true,
        run: ({ params }) => this.sandboxes.terminate(params.id),
      }),
      control('AppFetchLogs', 'GET /control/tasks/:id/logs', {
        params,
        run: async ({ params }) => {
          const sandbox = this.sandboxes.byTask(params.id)
          return { items: sandbox === undefined ? [] : [await this.sandboxes.logs(sandbox.id)] }
        },
      }),
      control('ImageJoinStreaming', 'POST /control/images', {
        body: z.strictObject({ dockerfile: z.string(), secret: z.string().optional() }),
        run: ({ body }) => this.build(body.dockerfile, body.secret),
      }),
      // The call is kept in the journal only.
      control('FunctionCreate', 'POST /control/functions', {
        body: z.looseObject({ name: z.string() }),
        isMutating: true,
        run: () => undefined,
      }),
      control('WorkspaceBillingRates', 'GET /control/rates', { run: () => ({ usd: MODAL_RATES }) }),
      control('SecretList', 'GET /control/secrets', {
        run: () => ({
          secrets: Object.entries(this.parts.world.modal.secrets).map(([name, variables]) => ({
            name,
            keys: Object.keys(variables),
          })),
        }),
      }),
      ...this.controlVolumeRoutes(),
    ]
  }

  private controlVolumeRoutes(): HttpRoute[] {
    const params = z.strictObject({ name: z.string() })
    return [
      control('VolumeList', 'GET /control/volumes', {
        run: () => ({
          volumes: [...this.volumes].map(([name, { createdAtMs }]) => ({ name, createdAtMs })),
        }),
      }),
      control('VolumeGetOrCreate', 'PUT /control/volumes/:name', {
        params,
        isMutating: true,
        run: ({ params: { name } }) => {
          const made = { createdAtMs: this.parts.clock.nowMs(), usedAtMs: null }
          if (!this.volumes.has(name)) this.volumes.set(name, made)
        },
      }),
      control('VolumeDelete', 'DELETE /control/volumes/:name', {
        params,
        isMutating: true,
        run: ({ params }) => void this.volumes.delete(params.name),
      }),
    ]
  }
}

/** A route whose refusals are those of gRPC. */
const control: typeof route = (action, where, definition) =>
  route(action, where, {
    ...definition,
    run: async (input, call) => {
      try {
        return await definition.run(input, call)
      } catch (error) {
        if (error instanceof ModalRefusal) throw new ApiError(error.code, error.message, 400)
        throw error
      }
    },
  })

function identify({ url, headers }: HttpRequest, { modal, control: operator }: CloudKeys): string {
  if (url.startsWith('/control/')) {
    if (hasBearer(headers.authorization, operator)) return CONTROL_CALLER
    throw new ApiError('UNAUTHENTICATED', 'the control plane needs the key of this cloud', 401)
  }
  const [id, secret] = [headers['modal-key'], headers['modal-secret']]
  if (id === undefined || secret === undefined)
    throw new ApiError('gateway', 'modal-http: missing credentials for proxy authorization', 401)
  if (!isSameSecret(`${String(id)}:${String(secret)}`, `${modal.key}:${modal.secret}`))
    throw new ApiError('gateway', 'modal-http: incorrect credentials for proxy authorization', 401)
  return modal.key
}

function unknownKey(name: string): never {
  throw new ApiError('unknown-key', `neither the registry nor Modal knows the key ${name}`, 404)
}

function wordsOf({ id, app, tags, createdAtMs, taskId, result }: Sandbox): Record<string, unknown> {
  return { id, app, tags, createdAtMs, taskId, result }
}
