import { randomBytes } from 'node:crypto'
import type { AgentAnswer, AgentCommand, Machine, MachineSpec, PowerOff } from '#small-cloud/machines/machine'
import { layout } from '../../storage/layout'
import type { ObjectStore } from '../../storage/store'
import type { Behaviour } from '../backends/scripted/behaviour'
import type { Clock } from '../backends/scripted/clock'
import { ScriptedRunner } from '../backends/scripted/scripted-runner'

export interface CloudMachineOptions {
  clock: Clock
  /** The store that its runner reaches. */
  store: ObjectStore
  behave: () => Behaviour
}

/** What the backend's program for machines (`backends/ec2/machine/start.py`) is given. */
interface Told {
  do: 'prepare' | 'start'
  jobId: string
  attempt: number
  attemptId: string
  machineId: string
}

const NOTICE_LOOK_MS = 100
/** What a runner gets from the shutdown of its machine's system to save in. */
const SHUTDOWN_MS = 200

/**
 * A machine of the small cloud without a process: it understands the commands that the backend sends, and in the place of the runner a
 * scripted one speaks to the store. What really went on there stands in its public fields.
 */
export class CloudMachine implements Machine {
  readonly id: string
  readonly metadataEndpoint = ''
  attempt: number | undefined
  /** When its workload was started; missing if it never was. */
  workedFromMs: number | undefined
  /** When nothing of it worked any more. */
  workedToMs: number | undefined
  /** It was asked to shut down without notice while its runner was well and at work: why, as its drain says. */
  shutDownAtWorkAtMs: number | undefined
  /** The longest time between two of its beats that the store took: where this process is starved, a runner that is well is silent. */
  longestSilenceMs = 0
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
    this.arm()
    this.lookForNotice()
  }

  async run({ lines }: AgentCommand): Promise<AgentAnswer> {
    if (!this.isUp || this.isOff) throw new Error(`${this.id} is off`)
    const told = toldIn(lines.join('\n'))
    const stdout = told.do === 'prepare' ? `${randomBytes(256).toString('hex')}\n` : this.start(told)
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
    this.isOff = true
    this.runner?.cut()
    this.restNow()
    for (const forget of this.pending) forget()
    this.pending.clear()
  }

  onPowerOff(listener: (how: PowerOff) => void): void {
    this.listeners.push(listener)
  }

  async console(): Promise<string> {
    return ''
  }

  /** Its runner is well and its workload runs. */
  get isAtWork(): boolean {
    return this.workedFromMs !== undefined && this.workedToMs === undefined && !this.isStuck
  }

  private start({ jobId, attempt, machineId }: Told): string {
    if (this.runner !== undefined) return 'the runner is at work already\n'
    const { clock, store, behave } = this.options
    const behaviour = behave()
    this.attempt = attempt
    if (behaviour.neverStarts) return 'the runner was started\n'
    this.runner = new ScriptedRunner({
      ...{ clock, jobId, attempt, behaviour, claim: { machine: machineId } },
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
    void this.kill()
    for (const listener of this.listeners.splice(0)) listener(how)
  }

  private restNow(): void {
    if (this.workedFromMs !== undefined) this.workedToMs ??= Date.now()
  }

  /** As the dead-man timer does it: a machine on which no runner begins ends itself. */
  private arm(): void {
    const timer = this.read('tags/instance/crucible:timer')
    if (timer === undefined) return
    this.after(Number(timer.split(' ')[0]), () => {
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
