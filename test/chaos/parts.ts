import { launchServer } from '../../cli/dev/temporal/launch'
import { startLeashed } from '../../cli/dev/temporal/leash'
import { choosePorts, LOOPBACK, type Ports } from '../../cli/dev/temporal/ports'
import type { TemporalExecutable } from '../../cli/dev/temporal/resolve'
import { Part, type PartOptions } from './part'

/** A worker of the built product. */
export class WorkerProcess extends Part {
  constructor(
    options: PartOptions,
    private readonly command: { args: readonly string[]; environment: Readonly<Record<string, string>> },
  ) {
    super(options)
  }

  protected async launch(): Promise<void> {
    const { args, environment } = this.command
    let isReady = (): void => undefined
    const ready = new Promise<void>((resolve) => (isReady = resolve))
    // A leashed process has an empty environment; `env` gives it one.
    const settings = Object.entries(environment).map(([name, value]) => `${name}=${value}`)
    const started = startLeashed('/usr/bin/env', [...settings, process.execPath, ...args], {
      onOutput: (line) => {
        this.write(line)
        if (line.includes('Workers poll at')) isReady()
      },
    })
    this.has(started)
    await Promise.race([ready, started.exited])
  }
}

/** The Temporal server on its database file, always at the same address. */
export class Server extends Part {
  private constructor(
    options: PartOptions,
    private readonly at: { executable: TemporalExecutable; dataFile: string; ports: Ports },
  ) {
    super(options)
  }

  static async create(
    options: PartOptions,
    at: { executable: TemporalExecutable; dataFile: string },
  ): Promise<Server> {
    return new Server(options, { ...at, ports: await choosePorts({}) })
  }

  get address(): string {
    return `${LOOPBACK}:${this.at.ports.grpc}`
  }

  protected async launch(): Promise<void> {
    const { ports, executable, dataFile } = this.at
    const started = await launchServer(
      ports,
      { executable, dataFile, onOutput: (line) => this.write(line) },
      { onStarted: () => undefined, signal: new AbortController().signal },
    )
    this.has(started)
  }
}
