import { appendFileSync } from 'node:fs'
import type { LeashedProcess } from '../../cli/dev/temporal/leash'
import { signal } from './machines'

export interface PartOptions {
  name: string
  /** File that keeps all its output. */
  log: string
  /** Called when it ends without having been killed. */
  onFailure: (what: string) => void
}

/**
 * A part of the deployment that runs as a process of its own, and can be killed and started again. It does not outlive this
 * process, however this process ends.
 */
export abstract class Part {
  private process: LeashedProcess | undefined
  /** Starts, one after the other. */
  private tail: Promise<void> = Promise.resolve()

  constructor(private readonly options: PartOptions) {}

  get name(): string {
    return this.options.name
  }

  /** Resolves when it does its work, or has been killed before it could. */
  start(): Promise<void> {
    this.tail = this.tail.then(async () => {
      if (this.process !== undefined) return
      this.write(`--- started ${new Date().toISOString()}`)
      await this.launch()
    })
    return this.tail
  }

  /** Kills it with SIGKILL; false when there was nothing to kill. */
  async kill(): Promise<boolean> {
    const victim = this.process
    if (victim === undefined) return false
    this.process = undefined
    this.write(`--- killed ${new Date().toISOString()}`)
    signal(victim.pid, 'SIGKILL')
    await victim.exited
    return true
  }

  /** Ends it in good order. */
  async stop(): Promise<void> {
    await this.tail.catch(() => undefined)
    const ending = this.process
    this.process = undefined
    await ending?.stop()
  }

  protected abstract launch(): Promise<void>

  protected isMine(started: LeashedProcess): boolean {
    return this.process === started
  }

  /** From now on there is something to kill. */
  protected has(started: LeashedProcess): void {
    this.process = started
    void started.exited.then(({ code, signal: name }) => {
      if (!this.isMine(started)) return
      this.process = undefined
      this.options.onFailure(`${this.name} ended on its own (${name ?? code}): ${started.output()}`)
    })
  }

  protected write(line: string): void {
    appendFileSync(this.options.log, `${line}\n`)
  }
}
