import { HttpError } from '../../../backends/http'
import type { createApi, ModalApi } from '../../../backends/modal/api'
import type { Health, Job, JobRequest, Listed, Rates } from '../../../backends/modal/documents'

/** A call of the gateway that fails instead; `key` if it is about one. */
type Fault = (key?: string) => Promise<never> | undefined

export const HEALTH: Health = {
  ...{ ok: true, api: 1, features: ['logs', 'requirements', 'volumes'], sdk: '1.6.4', environment: 'main' },
  allowed: { registries: ['docker.io'], secrets: [], volumes: 'crucible-' },
}

export const RATES: Rates = {
  observed_at_ms: 1,
  usd: {
    ...{ cpu_hour_cost: '0.0473', cpu_hour_cost_sandbox: '0.1419' },
    ...{ mem_gib_hour_cost: '0.008', mem_gib_hour_cost_sandbox: '0.024' },
    ...{ gpu_hour_cost_t4: '0.59', gpu_hour_cost_a10g: '1.10', gpu_hour_cost_h100: '3.95' },
    ...{ gpu_hour_cost_a100_80gb: '2.50' },
  },
}

/** An answer in the gateway's own form. */
export function refusal(status: number, code: string, message = code): HttpError {
  return new HttpError(`The Modal gateway answered ${status}`, {
    ...{ reach: 'answered', status, body: { code, message } },
  })
}

/** An answer of Modal's proxy in front of the gateway. */
export function proxyAnswer(status: number, page: string): HttpError {
  return new HttpError(`The Modal gateway answered ${status}`, { reach: 'answered', status, page })
}

export const lostAnswer = (): HttpError =>
  new HttpError('The Modal gateway did not answer', { reach: 'unanswered' })

const NO_ANSWER = lostAnswer()

/** A Sandbox of one key. */
export interface FakeSandbox {
  id: string
  key: string
  isRunning: boolean
}

interface Entry {
  job: Job
  request: JobRequest
}

/** Behaves as the gateway does towards its callers, as far as the backend can see: one Sandbox for each key. */
export class FakeGateway {
  /** Every Sandbox ever made. */
  sandboxes: FakeSandbox[] = []
  readonly submits: { key: string; request: JobRequest }[] = []
  readonly calls: string[] = []
  health = HEALTH
  /** Launches wait while it is true. */
  isFull = false
  /** Before a call's effect, and after it; `*` for every call. */
  readonly before = new Map<string, Fault>()
  readonly after = new Map<string, Fault>()
  /** Submissions of a key have their effect so many milliseconds later, and no answer before that. */
  readonly late = new Map<string, number>()
  onStart: (request: JobRequest, key: string) => void = () => undefined
  private readonly entries = new Map<string, Entry>()
  private readonly cancelled = new Set<string>()

  /** The `createApi` of a workspace; several share it. */
  readonly open: typeof createApi = () => this.api()

  private api(): ModalApi {
    const call = async <T>(name: string, signal: AbortSignal, act: () => T, key?: string): Promise<T> => {
      this.calls.push(name)
      if (signal.aborted) throw lostAnswer()
      await (this.before.get(name) ?? this.before.get('*'))?.(key)
      const answer = act()
      await this.after.get(name)?.(key)
      return answer
    }
    const waiting = async (signal: AbortSignal, error: unknown): Promise<never> => {
      if (error === NO_ANSWER) await new Promise((resolve) => signal.addEventListener('abort', resolve))
      throw error
    }
    return {
      health: (signal) => call('health', signal, () => this.health),
      rates: (signal) => call('rates', signal, () => ({ ...RATES, observed_at_ms: Date.now() })),
      submit: (key, request, signal) =>
        call('submit', signal, () => this.submit(key, request), key).catch((error) => waiting(signal, error)),
      job: (key, signal) => call('job', signal, () => this.jobOf(key)),
      cancel: (key, signal) => call('cancel', signal, () => this.cancel(key)),
      jobs: (owner, signal) => call('jobs', signal, () => this.listed(owner)),
      logs: (key, signal) =>
        call('logs', signal, () => (this.entries.has(key) ? ['the container runs'] : [])),
      volumes: (_prefix, signal) => call('volumes', signal, () => []),
      deleteVolume: (_name, signal) => call('deleteVolume', signal, () => undefined),
      close: async () => undefined,
    }
  }

  private submit(key: string, request: JobRequest): Job {
    this.submits.push({ key, request })
    const lateMs = this.late.get(key)
    if (lateMs === undefined || this.entries.has(key)) return this.accept(key, request)
    setTimeout(() => {
      this.late.delete(key)
      this.accept(key, request)
    }, lateMs)
    throw lostAnswer()
  }

  private accept(key: string, request: JobRequest): Job {
    const known = this.entries.get(key)
    if (known !== undefined) return { ...known.job }
    const { tags, owner } = request
    const job: Job = { key, phase: 'launching', tags, owner, accepted_at_ms: Date.now() }
    this.entries.set(key, { job, request })
    if (this.cancelled.has(key)) Object.assign(job, { phase: 'cancelled', ended_at_ms: Date.now() })
    else if (!this.isFull) this.schedule(key)
    return { ...job }
  }

  /** Modal has capacity again. */
  release(): void {
    this.isFull = false
    for (const [key, { job }] of this.entries) if (job.phase === 'launching') this.schedule(key)
  }

  /** Modal has waited for capacity long enough, or refuses. */
  giveUp(key: string, message: string): void {
    const error = { type: 'ResourceExhaustedError', message }
    Object.assign(this.entries.get(key)!.job, { phase: 'launch_failed', error, ended_at_ms: Date.now() })
  }

  private schedule(key: string): void {
    const { job, request } = this.entries.get(key)!
    const { id } = this.addSandbox(key)
    Object.assign(job, { phase: 'running', sandbox_id: id, running_at_ms: Date.now() })
    this.onStart(request, key)
  }

  /** Makes a Sandbox that the gateway need not know. */
  addSandbox(key: string): FakeSandbox {
    const sandbox = { id: `sb-${this.sandboxes.length + 1}`, key, isRunning: true }
    this.sandboxes.push(sandbox)
    return sandbox
  }

  private jobOf(key: string): Job | undefined {
    const entry = this.entries.get(key)
    return entry && { ...entry.job }
  }

  private cancel(key: string): void {
    this.cancelled.add(key)
    this.end(key, 'cancelled')
  }

  /** Everything of a key ends. */
  end(key: string, phase: 'cancelled' | 'ended', exitCode?: number): void {
    for (const sandbox of this.sandboxes) if (sandbox.key === key) sandbox.isRunning = false
    const job = this.entries.get(key)?.job
    if (job === undefined || job.phase === 'ended' || job.phase === 'cancelled') return
    Object.assign(job, { phase, ended_at_ms: Date.now(), exit_code: exitCode ?? null })
  }

  private listed(owner: string): Listed[] {
    return [...this.entries.values()]
      .filter(({ job, request }) => request.owner === owner && ['launching', 'running'].includes(job.phase))
      .map(({ job: { key, sandbox_id, tags, accepted_at_ms } }) => ({
        ...{ key, sandbox_id },
        tags: { ...tags, key, owner, 'accepted-at-ms': String(accepted_at_ms) },
      }))
  }

  sandboxesOf(key: string): FakeSandbox[] {
    return this.sandboxes.filter((sandbox) => sandbox.key === key)
  }

  /** The next call of a name fails before its effect. */
  failNext(name: string, error: HttpError): void {
    this.before.set(name, () => {
      this.before.delete(name)
      return Promise.reject(error)
    })
  }

  /** The next call of a name has its effect, and its answer is lost. */
  loseNext(name: string): void {
    this.after.set(name, () => {
      this.after.delete(name)
      return Promise.reject(lostAnswer())
    })
  }

  /** From now on submissions have their effect and are never answered. */
  stall(): void {
    this.after.set('submit', () => Promise.reject(NO_ANSWER))
  }
}
