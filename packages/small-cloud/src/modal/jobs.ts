/** The logic of Crucible's gateway, for tests that do not run the gateway itself. The same tests hold both to one behaviour. */
import { createHash } from 'node:crypto'
import type { ProviderParts } from '../provider'
import { ApiError } from '../wire/errors'
import type { Job, JobRequest } from './documents'
import { ModalRefusal } from './refusal'
import type { Sandbox, Sandboxes } from './sandboxes'

/** How long Modal's client waits for a Sandbox to be scheduled. */
const SCHEDULING_MS = 21 * 60_000
const LOOK_MS = 100
const RATE_WAITS_MS = [1000, 2000, 4000, 8000, 16_000, 32_000]
const TIMED_OUT = 124
const TERMINATED = 137

/** The exception of Modal's client for a gRPC status. */
const EXCEPTIONS: Readonly<Record<string, string>> = {
  ALREADY_EXISTS: 'AlreadyExistsError',
  INVALID_ARGUMENT: 'InvalidError',
  NOT_FOUND: 'NotFoundError',
  PERMISSION_DENIED: 'PermissionDeniedError',
  RESOURCE_EXHAUSTED: 'ResourceExhaustedError',
  UNAUTHENTICATED: 'AuthError',
  UNAVAILABLE: 'ServiceError',
}

interface Record_ {
  sha256?: string
  owner: string | null
  tags: Record<string, string>
  acceptedAtMs: number | null
  claim?: 'launcher' | 'cancel'
  isCancelled: boolean
  cancelledAtMs?: number
  sandbox?: { id: string; atMs: number }
  error?: { type: string; message: string; atMs: number }
  end?: { exitCode: number; atMs: number }
}

export interface JobsParts extends ProviderParts {
  sandboxes: Sandboxes
  app: string
  /** Builds the image of a request, and names its secrets and volumes. Throws `ModalRefusal`. */
  prepare(request: JobRequest): { dockerfile: string }
  /** The error of a fault rule for a call of Modal's control plane. */
  strike(action: string): ModalRefusal | undefined
}

export class Jobs {
  private readonly records = new Map<string, Record_>()

  constructor(private readonly parts: JobsParts) {}

  submit(key: string, request: JobRequest): { job: Job; isNew: boolean } {
    const sha256 = digestOf(request)
    const known = this.records.get(key)
    if (known?.sha256 !== undefined) {
      if (known.sha256 !== sha256)
        throw new ApiError('key-reused', `the key ${key} belongs to a different request`, 409)
      return { job: this.read(key)!, isNew: false }
    }
    const nowMs = this.parts.clock.nowMs()
    if (nowMs > request.send_by_ms)
      throw new ApiError('too-late', 'the request arrived after its send_by_ms', 410)
    const { owner, tags } = request
    const record: Record_ = { isCancelled: false, ...known, sha256, owner, tags, acceptedAtMs: nowMs }
    this.records.set(key, record)
    if (record.claim === undefined) this.parts.clock.after(0, () => void this.launch(key, record, request))
    return { job: this.read(key)!, isNew: true }
  }

  read(key: string): Job | undefined {
    const record = this.records.get(key) ?? this.found(key)
    if (record === undefined) return undefined
    const job: Job = {
      key,
      phase: 'launching',
      owner: record.owner,
      tags: record.tags,
      sandbox_id: null,
      exit_code: null,
      error: null,
      accepted_at_ms: record.acceptedAtMs,
      running_at_ms: null,
      ended_at_ms: null,
    }
    if (record.sandbox !== undefined) this.fillRunning(job, record, record.sandbox)
    else if (record.claim === 'cancel')
      Object.assign(job, { phase: 'cancelled', ended_at_ms: record.cancelledAtMs ?? null })
    else if (record.error !== undefined) {
      const { type, message, atMs } = record.error
      Object.assign(job, { phase: 'launch_failed', error: { type, message }, ended_at_ms: atMs })
    }
    if (record.isCancelled && ['ended', 'launch_failed', 'launch_lost'].includes(job.phase))
      job.phase = 'cancelled'
    return job
  }

  cancel(key: string): Job {
    const record = this.records.get(key) ?? { isCancelled: true, owner: null, tags: {}, acceptedAtMs: null }
    record.isCancelled = true
    record.claim ??= 'cancel'
    this.records.set(key, record)
    record.cancelledAtMs ??= this.parts.clock.nowMs()
    for (const { id } of this.listed({ key })) this.parts.sandboxes.terminate(id)
    return this.read(key)!
  }

  running(owner: string): { key: string; sandbox_id: string | null; tags: Record<string, string> }[] {
    const listed = this.listed({ owner }).flatMap(({ id, tags }) =>
      tags['key'] === undefined ? [] : [{ key: tags['key'], sandbox_id: id, tags: { ...tags } }],
    )
    const waiting = [...this.records]
      .filter(([key, one]) => one.owner === owner && this.read(key)?.phase === 'launching')
      .filter(([key]) => !listed.some((each) => each.key === key))
      .map(([key, one]) => ({
        key,
        sandbox_id: null,
        tags: { ...one.tags, key, owner, 'accepted-at-ms': String(one.acceptedAtMs) },
      }))
    return [...listed, ...waiting]
  }

  async logs(key: string, lines: number): Promise<string[] | undefined> {
    const job = this.read(key)
    if (job === undefined) return undefined
    if (job.sandbox_id === null) return job.error === null ? [] : [`${job.error.type}: ${job.error.message}`]
    const text = await this.parts.sandboxes.logs(job.sandbox_id)
    return text.split('\n').slice(0, -1).slice(-lines)
  }

  /** Forgets everything, like a registry whose entries have expired. */
  forget(): void {
    this.records.clear()
  }

  private listed(tags: Record<string, string>): Sandbox[] {
    return this.parts.sandboxes.list({ app: this.parts.app, tags })
  }

  private found(key: string): Record_ | undefined {
    const [sandbox] = this.listed({ key })
    if (sandbox === undefined) return undefined
    const { owner = null, 'accepted-at-ms': accepted, ...others } = sandbox.tags
    const tags = Object.fromEntries(Object.entries(others).filter(([name]) => name !== 'key'))
    const record: Record_ = {
      owner,
      tags,
      acceptedAtMs: Number(accepted),
      isCancelled: false,
      sandbox: { id: sandbox.id, atMs: this.parts.clock.nowMs() },
    }
    this.records.set(key, record)
    return record
  }

  private fillRunning(job: Job, record: Record_, { id, atMs }: { id: string; atMs: number }): void {
    const { result } = this.parts.sandboxes.get(id)
    Object.assign(job, { phase: 'running', sandbox_id: id, running_at_ms: atMs })
    if (result === null) return
    const codes: Partial<Record<typeof result.status, number>> = { TIMEOUT: TIMED_OUT, TERMINATED }
    record.end ??= { exitCode: codes[result.status] ?? result.exitCode, atMs: this.parts.clock.nowMs() }
    Object.assign(job, { phase: 'ended', exit_code: record.end.exitCode, ended_at_ms: record.end.atMs })
  }

  private async launch(key: string, record: Record_, request: JobRequest): Promise<void> {
    if (record.claim !== undefined) return
    record.claim = 'launcher'
    try {
      const sandbox = await this.create(key, record, request)
      record.sandbox = { id: sandbox.id, atMs: this.parts.clock.nowMs() }
      if (record.isCancelled) this.parts.sandboxes.terminate(sandbox.id)
    } catch (error) {
      if (!(error instanceof ModalRefusal)) throw error
      const type = EXCEPTIONS[error.code] ?? error.code
      const [adopted] = type === 'AlreadyExistsError' ? this.listed({ key }) : []
      const atMs = this.parts.clock.nowMs()
      if (adopted !== undefined) record.sandbox = { id: adopted.id, atMs }
      else record.error = { type, message: error.message, atMs }
    }
  }

  private async create(key: string, record: Record_, request: JobRequest): Promise<Sandbox> {
    const { sandboxes, app, clock } = this.parts
    const { dockerfile } = this.parts.prepare(request)
    await this.untilUnderRate()
    const [type, count] = request.gpu?.split(':') ?? []
    const accepted = String(record.acceptedAtMs)
    const sandbox = sandboxes.create({
      app,
      name: key,
      dockerfile,
      command: request.command,
      env: request.env,
      volumes: request.volumes,
      tags: { ...request.tags, key, owner: request.owner, 'accepted-at-ms': accepted },
      timeoutMs: request.timeout_s * 1000,
      gpu: type === undefined ? null : { type, count: Number(count ?? 1) },
      milliCpu: Math.round(request.cpu * 1000),
      memoryMiB: request.memory_mib,
    })
    const deadlineMs = clock.nowMs() + SCHEDULING_MS
    while (sandbox.taskId === null) {
      if (sandbox.result !== null)
        throw new ModalRefusal('ConflictError', sandbox.result.message || 'Sandbox already finished')
      if (clock.nowMs() > deadlineMs) {
        sandboxes.terminate(sandbox.id)
        throw new ModalRefusal('RESOURCE_EXHAUSTED', 'Insufficient capacity to create sandbox.')
      }
      await this.wait(LOOK_MS)
    }
    return sandbox
  }

  /** Waits while Modal refuses because of its limit on the rate of creation. */
  private async untilUnderRate(): Promise<void> {
    for (const waitMs of [...RATE_WAITS_MS, undefined]) {
      const refusal = this.parts.strike('SandboxCreate')
      if (refusal === undefined) return
      if (waitMs === undefined || !refusal.message.includes('rate limit')) throw refusal
      await this.wait(waitMs)
    }
  }

  private wait(durationMs: number): Promise<void> {
    return new Promise((resolve) => this.parts.clock.after(durationMs, resolve))
  }
}

/** Identifies a request without the fields that change with each send. */
function digestOf(request: JobRequest): string {
  const compared = { ...request, command: null, env: null, send_by_ms: null }
  return createHash('sha256').update(JSON.stringify(compared)).digest('hex')
}
