import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { Agent } from './agent'
import { Control, SAID_NOTHING, type ProgramAnswer, type ProgramCall } from './control'
import { Disk } from './disk'
import { statusOf, type Enclosure } from './enclosure'
import { MachineDead, ProgramError } from './errors'
import { Groups } from './groups'
import { machineUser, ownUser, type MachineUser } from './host'
import { makeLocalDisks } from './local-disks'
import type {
  AgentAnswer,
  AgentCommand,
  Machine,
  MachineSpec,
  PowerOff,
  RegistryAnswer,
  RegistryQuestion,
} from './machine'
import { MetadataService } from './metadata-service'
import { namespacesFor } from './namespaces'
import { nvidiaSmi } from './nvidia-smi'
import { Shutdown } from './shutdown'
import type { Ground } from './systemd/launch'
import { journalctl } from './systemd/journalctl'
import { Manager } from './systemd/manager'
import { systemctl } from './systemd/systemctl'
import { systemdRun } from './systemd/systemd-run'
import { fillToolbox, findPython, pathOf } from './toolbox'
import { CONSOLE, startUserData, whyNotRun } from './user-data'

const TOOLBOX = '/run/machine'
const JOURNAL = 'journal'
/** The names of the program that turns the machine off. */
const SHUTDOWN_PROGRAMS = ['shutdown', 'poweroff', 'halt', 'reboot']
const MANAGED = ['systemd-run', 'systemctl', 'journalctl', ...SHUTDOWN_PROGRAMS]

/** The parts that exist once the boot has begun. */
interface Parts {
  disk: Disk
  enclosure: Enclosure
  manager: Manager
  agent: Agent
  ground: Ground
}

export class RunningMachine implements Machine {
  readonly id: string
  metadataEndpoint = ''
  private readonly metadata: MetadataService
  private readonly control: Control
  private readonly shutdown: Shutdown
  private readonly death = new AbortController()
  private readonly listeners: ((how: PowerOff) => void)[] = []
  private preparing: Promise<Parts> | undefined
  private enclosure: Enclosure | undefined
  private parts: Parts | undefined
  private isUp = false
  private goingDown: Promise<void> | undefined
  /** Settled when the end of the user data has been recorded. */
  private userData: Promise<void> | undefined
  private killing: Promise<void> | undefined

  constructor(private readonly spec: MachineSpec) {
    this.id = spec.id
    this.metadata = new MetadataService(spec.metadata, spec.userData, {
      hopLimit: spec.hopLimit,
      isOwn: (pid) => this.owns(pid),
    })
    this.control = new Control((call) => this.answer(call))
    this.shutdown = new Shutdown(() => void this.shutDown())
  }

  async boot(): Promise<void> {
    const started = performance.now()
    this.preparing = this.prepare()
    const { disk, enclosure, ground } = await this.preparing
    const leftMs = this.spec.bootMs - (performance.now() - started)
    try {
      if (leftMs > 0) await pause(leftMs, undefined, { signal: this.death.signal })
    } catch {
      throw new MachineDead(this.id)
    }
    if (this.death.signal.aborted) throw new MachineDead(this.id)
    this.isUp = true
    const { onExit } = this.spec
    if (onExit === undefined) this.note(`${this.id}: booted, ${enclosure.kind}`)
    const why = whyNotRun(this.spec.userData, disk)
    if (why !== undefined) this.note(why)
    const script = startUserData(this.spec.userData, ground, disk)
    this.userData = script?.ended.then((end) => {
      if (onExit !== undefined) onExit(statusOf(end))
      else this.note(`cloud-init: user data ended with ${statusOf(end)}`)
    })
  }

  async run(command: AgentCommand): Promise<AgentAnswer> {
    const { parts } = this
    if (parts === undefined || !this.isUp || this.death.signal.aborted) throw new MachineDead(this.id)
    const answer = await parts.agent.run(command)
    if (this.death.signal.aborted) throw new MachineDead(this.id)
    return answer
  }

  cancel(commandId: string): void {
    this.parts?.agent.cancel(commandId)
  }

  shutDown(): Promise<void> {
    return (this.goingDown ??= this.goDown())
  }

  kill(): Promise<void> {
    return (this.killing ??= this.killNow())
  }

  onPowerOff(listener: (how: PowerOff) => void): void {
    this.listeners.push(listener)
  }

  owns(pid: number): boolean {
    return this.enclosure?.owns(pid) === true
  }

  async console(): Promise<string> {
    return this.parts?.disk.read(CONSOLE) ?? ''
  }

  private async prepare(): Promise<Parts> {
    const { enclosure, user } = await this.enclose()
    const disk = new Disk(this.spec.directory, user)
    disk.prepare()
    this.enclosure = enclosure
    this.metadataEndpoint = await this.metadata.listen()
    // Without namespaces the machine sees the disks of this host.
    const localDisks = enclosure.kind === 'namespaces' ? this.spec.localDisks : undefined
    if (localDisks !== undefined) makeLocalDisks(disk, localDisks)
    await this.fill(disk, enclosure, { hasLocalDisks: localDisks !== undefined })
    if (this.death.signal.aborted) throw new MachineDead(this.id)
    const environment = {
      LANG: 'C.UTF-8',
      PATH: pathOf(enclosure.seenAs(TOOLBOX)),
      AWS_EC2_METADATA_SERVICE_ENDPOINT: this.metadataEndpoint,
      ...this.spec.environment,
      ...enclosure.environment,
    }
    const journal = disk.on(JOURNAL)
    mkdirSync(journal, { recursive: true })
    const ground: Ground = {
      enclosure,
      environment,
      journalFile: (unit) => `${journal}/${unit}.log`,
      consoleFile: disk.on(CONSOLE),
      hasProgram: (name) =>
        name.includes('/')
          ? existsSync(disk.find(name) ?? name)
          : ['bin', 'programs'].some((folder) => existsSync(disk.on(`${TOOLBOX}/${folder}/${name}`))),
    }
    const manager = new Manager(ground)
    const parts = { disk, enclosure, ground, manager, agent: new Agent(this.id, ground, disk) }
    this.parts = parts
    enclosure.onEnd(() => void this.kill().then(() => this.tell('init-ended')))
    await enclosure.start()
    return parts
  }

  private async enclose(): Promise<{ enclosure: Enclosure; user: MachineUser }> {
    const { id, directory, hostname, enclosure: wanted } = this.spec
    const own = await ownUser(directory)
    const namespaces =
      wanted === 'groups' ? undefined : await namespacesFor({ id, directory, hostname, user: own })
    if (namespaces !== undefined) return { enclosure: namespaces, user: own }
    if (wanted === 'namespaces')
      throw new Error('This host lets its user make no user, mount and PID namespaces.')
    // The jobs of such machines share a folder.
    const user = await machineUser()
    return { enclosure: new Groups({ id, directory, user, python: await findPython([]) }), user }
  }

  private async fill(
    disk: Disk,
    enclosure: Enclosure,
    { hasLocalDisks }: { hasLocalDisks: boolean },
  ): Promise<void> {
    const folder = disk.on(TOOLBOX)
    rmSync(folder, { recursive: true, force: true })
    mkdirSync(folder)
    const { gpus, docker, onExit } = this.spec
    // Containers without their own namespaces would share all processes with this host.
    const isIsolated = enclosure.kind === 'namespaces'
    const port = await this.control.listen()
    const { token, gpuToken } = this.control
    // Files, because every user of this host can read the arguments of processes.
    const machine = { isIsolated, gpuCount: gpus?.length ?? 0, port, token }
    writeFileSync(`${folder}/machine.json`, JSON.stringify(machine))
    mkdirSync(`${folder}/gpu`)
    writeFileSync(`${folder}/gpu/machine.json`, JSON.stringify({ port, token: gpuToken }))
    await fillToolbox({
      folder,
      seenAs: enclosure.seenAs(TOOLBOX),
      hidden: enclosure.hidden,
      managed: [...(onExit === undefined ? MANAGED : []), ...(gpus?.length ? ['nvidia-smi'] : [])],
      hasDocker: docker !== undefined,
      hasLocalDisks,
    })
  }

  private async answer(call: ProgramCall): Promise<ProgramAnswer> {
    const { manager } = this.parts!
    const verb = call.arguments.find((word) => !word.startsWith('-')) ?? ''
    if (SHUTDOWN_PROGRAMS.includes(call.program)) return this.shutdown.call(call)
    if (call.program === 'systemctl' && SHUTDOWN_PROGRAMS.includes(verb))
      return this.shutdown.call({ ...call, program: verb, arguments: [] })
    switch (call.program) {
      case 'systemd-run':
        return systemdRun(call, manager)
      case 'systemctl':
        return systemctl(call, manager)
      case 'journalctl':
        return journalctl(call, this.parts!.ground)
      case 'nvidia-smi':
        return nvidiaSmi(call, this.spec.gpus ?? [])
      case 'registry':
        return { ...SAID_NOTHING, stdout: JSON.stringify(await this.askRegistry(call)) }
      default:
        throw new ProgramError(`${call.program}: command not found`, 127)
    }
  }

  /** Answers the question of this machine's container engine; the question is one argument. */
  private async askRegistry({ arguments: [question = ''] }: ProgramCall): Promise<RegistryAnswer> {
    const { docker } = this.spec
    if (docker === undefined) throw new ProgramError('docker: command not found', 127)
    return docker(JSON.parse(question) as RegistryQuestion)
  }

  private async goDown(): Promise<void> {
    this.note(`${this.id}: going down`)
    await this.parts?.manager.stopAll()
    if (this.killing !== undefined) return this.killing
    await this.kill()
    this.tell('shutdown')
  }

  private async killNow(): Promise<void> {
    this.death.abort()
    this.shutdown.cancel()
    // Waits for a start in progress, so that all its parts are cleaned up.
    await this.preparing?.catch(() => undefined)
    this.parts?.manager.abandon()
    await this.parts?.enclosure.kill()
    await Promise.all([this.metadata.close(), this.control.close(), this.userData])
    if (this.spec.onExit === undefined) this.note(`${this.id}: off`)
  }

  private tell(how: PowerOff): void {
    for (const listener of this.listeners.splice(0)) listener(how)
  }

  private note(line: string): void {
    this.parts?.disk.note(CONSOLE, line)
  }
}
