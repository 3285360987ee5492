/** Modal's Sandboxes, as its control plane knows them: queued, running, ended. */
import type { InstanceSummary } from '../control'
import { runsIn, stateOf, type StateChange } from '../machines/history'
import type { Hosted } from '../machines/pool'
import type { ProviderParts } from '../provider'
import type { Occasion } from '../world/faults'
import { drawMs } from '../world/world'
import { startScript } from './container'
import { gpuName, MODAL_GPUS, usdPerHourOf } from './rates'
import { ModalRefusal } from './refusal'

/** Status in Modal's protocol. Its client shows only an exit code, which does not distinguish these. */
type SandboxStatus = 'SUCCESS' | 'FAILURE' | 'TERMINATED' | 'TIMEOUT' | 'INIT_FAILURE' | 'INTERNAL_FAILURE'

export interface SandboxResult {
  status: SandboxStatus
  exitCode: number
  message: string
}

/** Specification by a client. */
export interface SandboxSpec {
  app: string
  /** Unique among the running Sandboxes of an app; empty for none. */
  name: string
  tags: Readonly<Record<string, string>>
  command: readonly string[]
  env: Readonly<Record<string, string>>
  dockerfile: string
  timeoutMs: number
  gpu: { type: string; count: number } | null
  milliCpu: number
  memoryMiB: number
  /** Names of volumes by path. */
  volumes: Readonly<Record<string, string>>
}

type State = 'queued' | 'running' | 'ended'

export interface Sandbox extends Hosted, SandboxSpec {
  createdAtMs: number
  history: StateChange<State>[]
  /** Id of the task; null until it is scheduled. */
  taskId: string | null
  result: SandboxResult | null
}

/** Interval at which a queued Sandbox looks for capacity. */
const QUEUE_LOOK_MS = 200
const GPUS_MAX = 8
const HOUR_MS = 3_600_000
const TERMINATED_MESSAGE = 'The Sandbox was terminated.'

export class Sandboxes {
  private readonly all = new Map<string, Sandbox>()

  constructor(
    private readonly parts: ProviderParts,
    /** GPUs that the workspace may use at once; further Sandboxes wait. */
    private readonly gpusMax: number,
  ) {}

  /** Throws `ModalRefusal`. */
  create(spec: SandboxSpec): Sandbox {
    const { clock, ids, faults } = this.parts
    if (spec.gpu !== null && (MODAL_GPUS[gpuName(spec.gpu.type)] === undefined || spec.gpu.count > GPUS_MAX))
      throw new ModalRefusal('INVALID_ARGUMENT', `Invalid GPU type: ${spec.gpu.type}:${spec.gpu.count}`)
    const isTaken = [...this.all.values()].some(
      (each) => each.app === spec.app && each.name === spec.name && stateOf(each) !== 'ended',
    )
    if (spec.name !== '' && isTaken)
      throw new ModalRefusal('ALREADY_EXISTS', `Sandbox with name '${spec.name}' already exists`)
    const nowMs = clock.nowMs()
    // The client tells Sandboxes with a GPU from others by the length of their ids.
    const digits = ids.uuid().replaceAll('-', '')
    const sandbox: Sandbox = {
      ...spec,
      id: `sb-${spec.gpu === null ? digits : digits.slice(0, 22)}`,
      createdAtMs: nowMs,
      isImpaired: false,
      history: [{ atMs: nowMs, state: 'queued' }],
      taskId: null,
      result: null,
    }
    this.all.set(sandbox.id, sandbox)
    const occasion = occasionOf(sandbox)
    const waits = faults.strike('queued', occasion).map((fault) => fault.for)
    const failure = faults.first('launch-fails', occasion)
    if (failure !== undefined) {
      // Modal's client reports the exit code of a container that never started: 0.
      const result: SandboxResult = { status: 'INIT_FAILURE', exitCode: 0, message: failure.reason }
      clock.after(failure.after, () => void this.end(sandbox, result))
    } else if (spec.gpu === null && waits.length === 0) this.schedule(sandbox)
    else
      clock.after(drawMs(this.parts.world, 'pending') + Math.max(0, ...waits), () =>
        this.trySchedule(sandbox),
      )
    return sandbox
  }

  get(id: string): Sandbox {
    const sandbox = this.all.get(id)
    if (sandbox === undefined) throw new ModalRefusal('NOT_FOUND', `Sandbox with ID ${id} not found`)
    return sandbox
  }

  /** Returns the Sandboxes that have not ended, newest first. */
  list({ app, tags }: { app: string; tags: Readonly<Record<string, string>> }): Sandbox[] {
    return [...this.all.values()]
      .filter((each) => each.app === app && stateOf(each) !== 'ended')
      .filter((each) => Object.entries(tags).every(([name, value]) => each.tags[name] === value))
      .reverse()
  }

  terminate(id: string): void {
    const sandbox = this.get(id)
    void this.end(sandbox, { status: 'TERMINATED', exitCode: 137, message: TERMINATED_MESSAGE })
  }

  /**
   * Takes a Sandbox back, without notice. Its id and the key of its job mean it: callers of the gateway know only the key. Returns false
   * if none runs.
   */
  preempt(id: string): boolean {
    const isMeant = (one: Sandbox): boolean => one.result === null && [one.id, one.tags['key']].includes(id)
    const sandbox = [...this.all.values()].find(isMeant)
    if (sandbox === undefined) return false
    void this.end(sandbox, { status: 'TERMINATED', exitCode: 137, message: 'The worker was preempted.' })
    return true
  }

  async logs(id: string): Promise<string> {
    const { machine, lastConsole } = this.get(id)
    return lastConsole ?? (await machine?.console().catch(() => '')) ?? ''
  }

  byTask(taskId: string): Sandbox | undefined {
    return [...this.all.values()].find((each) => each.taskId === taskId)
  }

  hosted(): Iterable<Hosted> {
    return this.all.values()
  }

  instances(): InstanceSummary[] {
    return [...this.all.values()].map((sandbox) => this.summaryOf(sandbox))
  }

  private trySchedule(sandbox: Sandbox): void {
    if (stateOf(sandbox) !== 'queued') return
    const { faults, clock } = this.parts
    const { count } = sandbox.gpu ?? { count: 0 }
    const used = [...this.all.values()]
      .filter((each) => stateOf(each) === 'running')
      .reduce((sum, each) => sum + (each.gpu?.count ?? 0), 0)
    const isFull =
      used + count > this.gpusMax || faults.first('no-capacity', occasionOf(sandbox)) !== undefined
    if (isFull) clock.after(QUEUE_LOOK_MS, () => this.trySchedule(sandbox))
    else this.schedule(sandbox)
  }

  private schedule(sandbox: Sandbox): void {
    const { clock, ids, pool, faults } = this.parts
    sandbox.taskId = `ta-${ids.uuid().replaceAll('-', '').slice(0, 22)}`
    sandbox.history.push({ atMs: clock.nowMs(), state: 'running' })
    const occasion = occasionOf(sandbox)
    const timeout: SandboxResult = { status: 'TIMEOUT', exitCode: 0, message: 'The Sandbox timed out.' }
    clock.after(sandbox.timeoutMs, () => void this.end(sandbox, timeout))
    if (faults.first('no-boot', occasion) !== undefined) return
    pool.connect(sandbox, {
      userData: startScript(sandbox),
      metadata: {},
      gpus: gpusOf(sandbox),
      onExit: (exitCode) => {
        const status = exitCode === 0 ? 'SUCCESS' : 'FAILURE'
        void this.end(sandbox, { status, exitCode, message: '' })
      },
    })
    const isWanted = (): boolean => stateOf(sandbox) === 'running'
    pool.boot(sandbox, { isWanted, poweredOff: () => undefined })
    const failed: SandboxResult = { status: 'INTERNAL_FAILURE', exitCode: 0, message: 'The worker failed.' }
    pool.scheduleFaults(occasion, {
      crash: () => void this.end(sandbox, failed),
      hang: () => void pool.hang(sandbox),
    })
    for (const { after } of faults.strike('interruption', occasion))
      clock.after(after, () => void this.preempt(sandbox.id))
  }

  private async end(sandbox: Sandbox, result: SandboxResult): Promise<void> {
    if (sandbox.result !== null) return
    sandbox.result = result
    sandbox.history.push({ atMs: this.parts.clock.nowMs(), state: 'ended' })
    await this.parts.pool.turnOff(sandbox, true)
    await this.parts.pool.discard(sandbox)
  }

  private summaryOf(sandbox: Sandbox): InstanceSummary {
    const [run] = runsIn(sandbox, ['running'])
    const untilMs = run?.untilMs ?? this.parts.clock.nowMs()
    const seconds = run === undefined ? 0 : (untilMs - run.fromMs) / 1000
    const { gpu, tags, isImpaired, result, createdAtMs } = sandbox
    return {
      provider: 'modal',
      id: sandbox.id,
      state: stateOf(sandbox),
      type: gpu === null ? 'cpu' : `${gpu.type}:${gpu.count}`,
      image: '',
      zone: '',
      capacity: 'on-demand',
      tags: { ...tags },
      launchedAtMs: createdAtMs,
      isImpaired,
      ...(result === null ? {} : { reason: result.status }),
      bill: {
        ...(run === undefined ? {} : { fromMs: run.fromMs }),
        ...(run?.untilMs === undefined ? {} : { untilMs: run.untilMs }),
        usd: (usdPerHourOf(sandbox) * seconds * 1000) / HOUR_MS,
      },
    }
  }
}

function gpusOf({ gpu }: Sandbox): { name: string; memoryMiB: number }[] {
  if (gpu === null) return []
  const { driverName, memoryMiB } = MODAL_GPUS[gpuName(gpu.type)]!
  return Array.from({ length: gpu.count }, () => ({ name: driverName, memoryMiB }))
}

function occasionOf({ id, gpu, tags }: Sandbox): Occasion {
  const type = gpu === null ? 'cpu' : gpuName(gpu.type)
  return { service: 'modal', type, capacity: 'on-demand', instance: id, tags: new Map(Object.entries(tags)) }
}
