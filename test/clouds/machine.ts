import { randomBytes } from 'node:crypto'
import { UNNAMED_MACHINE, type Claim } from '../../core/documents'
import type { AgentAnswer, AgentCommand, Machine, MachineSpec, PowerOff } from '#small-cloud/machines/machine'
import { layout } from '../../storage/layout'
import { StoreError, type ObjectStore } from '../../storage/store'
import type { Behaviour } from '../backends/scripted/behaviour'
import type { Clock } from '../backends/scripted/clock'
import { ScriptedRunner } from '../backends/scripted/scripted-runner'
import {
  parametersOfUserData,
  parametersOfVariable,
  readHandOver,
  type AskByUrl,
  type BootstrapParameters,
} from '../support/user-data'

export interface CloudMachineOptions {
  clock: Clock
  /** The store that its runner reaches. */
  store: ObjectStore
  /** The same by signed URLs. */
  ask: AskByUrl
  behave: () => Behaviour
}

/** The attempt that a machine is for. */
interface Assignment {
  jobId: string
  attempt: number
  claim: Claim
  /** When the machine began; where it is missing, its runner's start counts. */
  beganAtMs?: number
}

/** What the backend's program for machines (`backends/ec2/machine/start.py`) is given. */
interface Told {
  do: 'prepare' | 'start'
  jobId: string
  attempt: number
  machineId: string
}

/** Of `runner/bootstrap.py`, which asks a store that does not answer again and again. */
const ASK_AGAIN_MS = 500

const NOTICE_LOOK_MS = 100
/** What a runner gets from the shutdown of its machine's system to save in. */
const SHUTDOWN_MS = 200

/**
 * A machine of the small cloud without a process. It understands what each provider gives its machines: commands for its agent, user data, or
 * the variables of a container. In the place of the runner a scripted one speaks to the store. What really went on there stands in its
 * public fields.
 */
export class CloudMachine implements Machine {
  readonly id: string
  readonly metadataEndpoint = ''
  attempt: number | undefined
  /** When its workload was started; missing if it never was. */
  workedFromMs: number | undefined
  /** When nothing of it worked. */
  workedToMs: number | undefined
  /** It was asked to shut down without notice while its runner was well and at work: why, as its drain says. */
  shutDownAtWorkAtMs: number | undefined
  /** The longest time between two of its beats that the store took: where this process is starved, a runner that is well is silent. */
  longestSilenceMs = 0
  private readonly createdAtMs = Date.now()
  private beatAtMs: number | undefined
  private runner: ScriptedRunner | undefined
  private isUp = false
  private isOff = false
  private isStuck = false
  private hasNotice = false
  private readonly pending = new Set<() => void>()
  private readonly listeners: ((how: PowerOff) => void)[] = []

  constructor(
    private readonly spec: MachineSpec,
    private readonly options: CloudMachineOptions,
  ) {
    this.id = spec.id
  }

  async boot(): Promise<void> {
    await new Promise<void>((resolve) => this.after(this.spec.bootMs, resolve))
    this.isUp = true
    this.armFor(Number(this.read('tags/instance/crucible:timer')?.split(' ')[0]))
    this.lookForNotice()
    const parameters = parametersIn(this.spec.userData)
    if (parameters !== undefined) void this.bootstrap(parameters)
  }

  async run({ lines }: AgentCommand): Promise<AgentAnswer> {
    if (!this.isUp || this.isOff) throw new Error(`${this.id} is off`)
    const told = toldIn(lines.join('\n'))
    const { jobId, attempt, machineId } = told
    const stdout =
      told.do === 'prepare'
        ? `${randomBytes(256).toString('hex')}\n`
        : this.start({ jobId, attempt, claim: { machine: machineId } })
    return { exitCode: 0, stdout, stderr: '', timedOut: false }
  }

  cancel(): void {
    // Its commands end at once.
  }

  async shutDown(): Promise<void> {
    if (this.isAtWork && !this.hasNotice) {
      this.shutDownAtWorkAtMs = Date.now()
      this.noteSilence()
      this.runner!.notice(Date.now() + SHUTDOWN_MS)
      await new Promise<void>((resolve) => this.after(SHUTDOWN_MS, resolve))
    }
    await this.kill()
  }

  async kill(): Promise<void> {
    // A container has no system that shuts down.
    if (this.isContainer && this.isAtWork) {
      this.shutDownAtWorkAtMs = Date.now()
      this.noteSilence()
    }
    this.isOff = true
    this.runner?.cut()
    this.restNow()
    for (const forget of this.pending) forget()
    this.pending.clear()
  }

  onPowerOff(listener: (how: PowerOff) => void): void {
    this.listeners.push(listener)
  }

  owns(): boolean {
    return false
  }

  async console(): Promise<string> {
    return ''
  }

  /** Its runner is well and its workload runs. */
  get isAtWork(): boolean {
    return this.workedFromMs !== undefined && this.workedToMs === undefined && !this.isStuck
  }

  private get isContainer(): boolean {
    return this.spec.onExit !== undefined
  }

  /** As `runner/bootstrap.py`: takes the hand-over, deletes it and starts the runner; without one nothing starts here. */
  private async bootstrap(parameters: BootstrapParameters): Promise<void> {
    const told = await this.untilAnswered(() => readHandOver(parameters, this.options.ask))
    if (told === undefined) return this.powerOff('init-ended')
    const { jobId, attempt, startMs, deleteUrl } = told
    await this.untilAnswered(() => this.options.ask('DELETE', deleteUrl))
    if (!this.isContainer) this.armFor(startMs)
    const { id } = this
    const { machineId, send } = parameters
    const claim =
      machineId === null
        ? { machine: UNNAMED_MACHINE + id, send: send !== null ? send : undefined }
        : { machine: machineId.literal }
    this.start({ jobId, attempt, claim, beganAtMs: this.createdAtMs })
  }

  /** The store's answer, as soon as it gives one; none comes to a machine that is off. */
  private async untilAnswered<T>(ask: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        const answer = await ask()
        return this.isOff ? await new Promise<T>(() => undefined) : answer
      } catch (error) {
        if (!(error instanceof StoreError)) throw error
        await new Promise<void>((resolve) => this.after(ASK_AGAIN_MS, resolve))
      }
    }
  }

  private start({ jobId, attempt, claim, beganAtMs }: Assignment): string {
    if (this.runner !== undefined) return 'the runner is already running\n'
    const { clock, store, behave } = this.options
    const behaviour = behave()
    this.attempt = attempt
    if (behaviour.neverStarts) return 'the runner was started\n'
    this.runner = new ScriptedRunner({
      clock,
      jobId,
      attempt,
      behaviour,
      claim,
      beganAtMs,
      store: this.hearingBeats(store, layout.beat(jobId, attempt)),
      onWork: () => {
        this.workedFromMs = Date.now()
        this.foresee(behaviour)
      },
      onOver: (how) => this.powerOff(how === 'died' ? 'init-ended' : 'shutdown'),
    })
    return 'the runner was started\n'
  }

  private hearingBeats(store: ObjectStore, beatKey: string): ObjectStore {
    const put: ObjectStore['put'] = async (key, body) => {
      await store.put(key, body)
      if (key !== beatKey) return
      this.noteSilence()
      this.beatAtMs = Date.now()
    }
    return new Proxy(store, {
      get: (target, name) => {
        if (name === 'put') return put
        const value: unknown = Reflect.get(target, name)
        return typeof value === 'function' ? (value.bind(target) as unknown) : value
      },
    })
  }

  private noteSilence(): void {
    const silenceMs = this.beatAtMs === undefined ? 0 : Date.now() - this.beatAtMs
    this.longestSilenceMs = Math.max(this.longestSilenceMs, silenceMs)
  }

  /** Ill before its step comes: whatever ends it from then on ends no healthy machine. */
  private foresee({ hangsAtStep, isDeaf }: Behaviour): void {
    this.isStuck = hangsAtStep !== undefined || isDeaf
  }

  private powerOff(how: PowerOff): void {
    if (this.isOff) return
    this.restNow()
    void this.kill()
    if (this.isContainer) this.spec.onExit!(how === 'shutdown' ? 0 : 1)
    else for (const listener of this.listeners.splice(0)) listener(how)
  }

  private restNow(): void {
    if (this.workedFromMs !== undefined) this.workedToMs ??= Date.now()
  }

  /** As the dead-man timer does it: a machine on which no runner begins in time ends itself; `NaN` arms none. */
  private armFor(startMs: number): void {
    if (Number.isNaN(startMs)) return
    this.after(startMs, () => {
      if (this.runner === undefined) this.powerOff('shutdown')
    })
  }

  private lookForNotice(): void {
    const action = this.read('spot/instance-action')
    if (action === undefined) return this.after(NOTICE_LOOK_MS, () => this.lookForNotice())
    this.hasNotice = true
    this.runner?.notice(Date.parse((JSON.parse(action) as { time: string }).time))
    if (this.runner === undefined) this.after(NOTICE_LOOK_MS, () => this.lookForNotice())
  }

  private read(path: string): string | undefined {
    const value = this.spec.metadata[path]
    return typeof value === 'function' ? value() : value
  }

  private after(durationMs: number, action: () => void): void {
    const forget = this.options.clock.at(Date.now() + durationMs, () => {
      this.pending.delete(forget)
      action()
    })
    this.pending.add(forget)
  }
}

/** What stands in front of the program that the backend sends. */
function toldIn(script: string): Told {
  const [, text] = /base64\.b64decode\("([^"]+)"\)/.exec(script) ?? []
  if (text === undefined) throw new Error('this is no command that a machine of Crucible understands')
  return JSON.parse(Buffer.from(text, 'base64').toString()) as Told
}

/** The parameters of the bootstrap in user data or in a container's variables; undefined on a machine that waits for commands. */
function parametersIn(userData: string): BootstrapParameters | undefined {
  if (userData.startsWith('#cloud-config')) return parametersOfUserData(userData)
  const [, packed] = /^export CRUCIBLE_BOOTSTRAP='([^']+)'$/m.exec(userData) ?? []
  return packed === undefined ? undefined : parametersOfVariable(packed)
}
