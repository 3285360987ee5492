/** Commands on machines: sending, delivery, execution and results. */
import type { Ec2 } from '../ec2/ec2'
import { occasionOf } from '../ec2/life'
import { stateOf, type Instance } from '../ec2/model'
import type { Agents } from './agents'

export interface Command {
  id: string
  region: string
  comment: string
  document: string
  parameters: Readonly<Record<string, readonly string[]>>
  instanceIds: string[]
  targets: readonly { Key: string; Values: readonly string[] }[]
  requestedAtMs: number
  visibleAtMs: number
  /** Time limit for the delivery. */
  deliveryTimeoutMs: number
  executionTimeoutMs: number
  workingDirectory?: string
  invocations: Map<string, Invocation>
}

type Status =
  'Pending' | 'InProgress' | 'Delayed' | 'Success' | 'Cancelled' | 'TimedOut' | 'Failed' | 'Cancelling'

export interface Invocation {
  command: Command
  instance: Instance
  status: Status
  details: string
  exitCode: number
  stdout: string
  stderr: string
  startedAtMs?: number
  endedAtMs?: number
  /** Number of deliveries to the machine. */
  deliveries: number
}

/** Length limits of the outputs of an invocation. */
const STDOUT_CHARS_MAX = 24_000
const STDERR_CHARS_MAX = 8_000
const TRUNCATED = '\n---Output truncated---'
const KILLED = 137

export class Commands {
  readonly commands = new Map<string, Command>()

  constructor(
    private readonly ec2: Ec2,
    private readonly agents: Agents,
  ) {}

  send(command: Command, instances: readonly Instance[]): void {
    this.commands.set(command.id, command)
    for (const instance of instances) {
      const invocation: Invocation = {
        command,
        instance,
        status: 'Pending',
        details: 'Pending',
        exitCode: -1,
        stdout: '',
        stderr: '',
        deliveries: 0,
      }
      command.invocations.set(instance.id, invocation)
      this.deliver(invocation)
    }
  }

  /** Tries to stop running invocations; the machine may not comply. */
  cancel(command: Command, instanceIds: readonly string[]): void {
    for (const invocation of command.invocations.values()) {
      if (instanceIds.length > 0 && !instanceIds.includes(invocation.instance.id)) continue
      if (invocation.status === 'Pending' || invocation.status === 'Delayed')
        this.finish(invocation, { status: 'Cancelled', details: 'Cancelled', exitCode: -1 })
      else if (invocation.status === 'InProgress') {
        invocation.status = 'Cancelling'
        invocation.details = 'Cancelling'
        for (let delivery = 1; delivery <= invocation.deliveries; delivery++)
          invocation.instance.machine?.cancel(runId(invocation, delivery))
      }
    }
  }

  /** Returns the instances selected by tags or groups, limited to those with an agent. */
  targeted(region: string, targets: Command['targets']): Instance[] {
    const fits = ({ tags, id }: Instance): boolean =>
      targets.every(({ Key, Values }) => {
        if (Key === 'InstanceIds' || Key === 'instanceids') return Values.includes(id)
        if (Key === 'tag-key') return Values.some((key) => tags.has(key))
        return Key.startsWith('tag:') && Values.includes(tags.get(Key.slice('tag:'.length)) ?? '')
      })
    return this.agents
      .all(region)
      .map(({ instance }) => instance)
      .filter(fits)
  }

  private deliver(invocation: Invocation): void {
    const { clock, faults } = this.ec2.parts
    const { command, instance } = invocation
    const occasion = { ...occasionOf(instance), service: 'ssm', action: 'SendCommand' }
    clock.after(command.deliveryTimeoutMs, () => {
      if (invocation.status === 'Pending' || invocation.status === 'Delayed')
        this.finish(invocation, { status: 'TimedOut', details: 'DeliveryTimedOut', exitCode: -1 })
    })
    // If no agent can report the end, the command counts as running until its time limits have passed.
    clock.after(command.deliveryTimeoutMs + command.executionTimeoutMs, () => {
      if (invocation.endedAtMs === undefined)
        this.finish(invocation, { status: 'TimedOut', details: 'DeliveryTimedOut', exitCode: -1 })
    })
    if (faults.first('command-lost', occasion) !== undefined) return
    const lateMs = faults.first('command-late', occasion)?.by ?? 0
    const firstMs = this.ec2.drawMs('delivery') + lateMs
    clock.after(firstMs, () => void this.take(invocation, 1))
    if (faults.first('command-doubled', occasion) !== undefined)
      clock.after(firstMs + this.ec2.drawMs('delivery'), () => void this.take(invocation, 2))
  }

  private async take(invocation: Invocation, delivery: number): Promise<void> {
    const { clock, faults } = this.ec2.parts
    const { command, instance } = invocation
    const isOver = invocation.status === 'Cancelled' || invocation.status === 'TimedOut'
    const agent = this.agents.find(instance.id, command.region)
    if (isOver || agent === undefined || !this.agents.isReachable(agent) || instance.machine === undefined)
      return
    invocation.deliveries += 1
    invocation.startedAtMs ??= clock.nowMs()
    if (invocation.status === 'Pending')
      Object.assign(invocation, { status: 'InProgress', details: 'InProgress' })
    const ran = await instance.machine
      .run({
        id: runId(invocation, delivery),
        lines: [...(command.parameters.commands ?? [])],
        timeoutMs: command.executionTimeoutMs,
        ...(command.workingDirectory === undefined ? {} : { workingDirectory: command.workingDirectory }),
      })
      // The machine and its agent are gone, so no result arrives.
      .catch(() => undefined)
    const isSilent =
      ran === undefined || !this.agents.isReachable(agent) || stateOf(instance) === 'terminated'
    if (isSilent || invocation.endedAtMs !== undefined) return
    const cut = faults.first('command-truncated', {
      ...occasionOf(instance),
      service: 'ssm',
      action: 'SendCommand',
    })
    invocation.stdout = shortened(ran.stdout, Math.min(STDOUT_CHARS_MAX, cut?.chars ?? Infinity))
    invocation.stderr = shortened(ran.stderr, Math.min(STDERR_CHARS_MAX, cut?.chars ?? Infinity))
    this.finish(invocation, outcomeOf(invocation, ran))
  }

  private finish(
    invocation: Invocation,
    { status, details, exitCode }: Pick<Invocation, 'status' | 'details' | 'exitCode'>,
  ): void {
    Object.assign(invocation, { status, details, exitCode, endedAtMs: this.ec2.nowMs })
  }
}

function outcomeOf(
  { status }: Invocation,
  { exitCode, timedOut }: { exitCode: number; timedOut: boolean },
): Pick<Invocation, 'status' | 'details' | 'exitCode'> {
  if (timedOut) return { status: 'TimedOut', details: 'ExecutionTimedOut', exitCode }
  if (status === 'Cancelling' && exitCode === KILLED)
    return { status: 'Cancelled', details: 'Cancelled', exitCode }
  return exitCode === 0
    ? { status: 'Success', details: 'Success', exitCode }
    : { status: 'Failed', details: 'Failed', exitCode }
}

/** Returns the name of a delivery: a command that is delivered twice runs under two names. */
function runId({ command }: Invocation, delivery: number): string {
  return delivery === 1 ? command.id : `${command.id}-again`
}

function shortened(text: string, charsMax: number): string {
  if (text.length <= charsMax) return text
  return text.slice(0, Math.max(0, charsMax - TRUNCATED.length)) + TRUNCATED
}
