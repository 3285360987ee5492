import { chmodSync, closeSync, existsSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { statusOf, untilFound, type EnclosedProcess } from './enclosure'
import type { AgentAnswer, AgentCommand } from './machine'
import { readProcesses, signalProcesses } from './processes'
import { Timer } from './timer'
import type { Disk } from './disk'
import type { Ground } from './systemd/launch'

/** The working directory of scripts when the agent is installed as a service. */
const DEFAULT_DIRECTORY = '/usr/bin'
/** The exit code that the agent reports for a script that it killed. */
const KILLED = 137

/** Runs scripts like an agent on the machine: in a separate process group, with output into files. */
export class Agent {
  private readonly running = new Map<EnclosedProcess, string>()
  private counter = 0

  constructor(
    private readonly id: string,
    private readonly ground: Ground,
    private readonly disk: Disk,
  ) {}

  async run(command: AgentCommand): Promise<AgentAnswer> {
    const folder = this.folderFor(command.id)
    const script = `${folder}/_script.sh`
    writeFileSync(this.disk.on(script), `${command.lines.join('\n')}\n`)
    chmodSync(this.disk.on(script), 0o755)
    const files = ['stdout', 'stderr'].map((name) => this.disk.on(`${folder}/${name}`))
    const child = this.start(command, script, files)
    let isTimedOut = false
    const timer = new Timer(command.timeoutMs, () => {
      isTimedOut = true
      void this.killGroup(child)
    })
    this.running.set(child, command.id)
    const end = await child.ended
    timer.cancel()
    const wasCancelled = !this.running.delete(child)
    const [stdout, stderr] = files.map((file) => readFileSync(file, 'utf8')) as [string, string]
    const exitCode = isTimedOut || wasCancelled ? KILLED : statusOf(end)
    return { exitCode, stdout, stderr, timedOut: isTimedOut }
  }

  cancel(commandId: string): void {
    for (const [child, id] of this.running) {
      if (id !== commandId) continue
      this.running.delete(child)
      void this.killGroup(child)
    }
  }

  /** Returns the folder of a delivery. A command that is delivered twice runs twice. */
  private folderFor(commandId: string): string {
    const base = `/var/lib/amazon/ssm/${this.id}/document/orchestration/${commandId}/awsrunShellScript`
    let folder = `${base}/0.awsrunShellScript`
    while (existsSync(this.disk.on(folder))) folder = `${base}/again-${++this.counter}`
    this.disk.make(folder)
    return folder
  }

  private start(command: AgentCommand, script: string, files: string[]): EnclosedProcess {
    const { enclosure, environment } = this.ground
    const [stdout, stderr] = files.map((file) => openSync(file, 'w')) as [number, number]
    try {
      return enclosure.run({
        argv: ['sh', '-c', enclosure.seenAs(script)],
        cwd: command.workingDirectory ?? DEFAULT_DIRECTORY,
        environment: { ...environment, AWS_SSM_INSTANCE_ID: this.id, ...command.environment },
        stdout,
        stderr,
      })
    } finally {
      closeSync(stdout)
      closeSync(stderr)
    }
  }

  /** Processes that left the group keep running, as with the real agent. */
  private async killGroup(child: EnclosedProcess): Promise<void> {
    const first = await untilFound(child)
    if (first === undefined) return
    const { processes } = await readProcesses()
    signalProcesses(
      processes.filter(({ group }) => group === first.group),
      'SIGKILL',
    )
  }
}
