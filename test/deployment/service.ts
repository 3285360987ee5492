import { setTimeout as sleep } from 'node:timers/promises'
import { startLeashed } from '../../cli/dev/temporal/leash'
import { Part } from '../chaos/part'

export interface ServiceOptions {
  name: string
  log: string
  /** The program and its arguments; asked at each start. */
  command: readonly string[]
  environment: Readonly<Record<string, string>>
  /** The health check. */
  isHealthy: () => Promise<boolean>
}

const LOOK_EVERY_MS = 100
const RESTART_AFTER_MS = 300

/** A service of docker-compose.yml as a process: one that ends is started again, as `restart: unless-stopped` does. */
export class Service extends Part {
  /** How often it ended without having been killed. */
  restarts = 0
  #isWanted = true

  constructor(private readonly service: ServiceOptions) {
    super({ name: service.name, log: service.log, onFailure: () => void this.#restart() })
  }

  /** Resolves when the health check succeeds. */
  async untilHealthy(limitMs: number): Promise<void> {
    const startedAt = performance.now()
    while (!(await this.service.isHealthy())) {
      if (performance.now() - startedAt > limitMs)
        throw new Error(
          `${this.name} is not healthy after ${limitMs / 1_000} s; its log is ${this.service.log}`,
        )
      await sleep(LOOK_EVERY_MS)
    }
  }

  override async stop(): Promise<void> {
    this.#isWanted = false
    await super.stop()
  }

  protected launch(): Promise<void> {
    const { command, environment } = this.service
    // A leashed process has an empty environment; `env` gives it one.
    const settings = Object.entries(environment).map(([name, value]) => `${name}=${value}`)
    const onOutput = (line: string): void => this.write(line)
    this.has(startLeashed('/usr/bin/env', [...settings, ...command], { onOutput }))
    return Promise.resolve()
  }

  async #restart(): Promise<void> {
    this.restarts += 1
    await sleep(RESTART_AFTER_MS)
    if (this.#isWanted) await this.start()
  }
}
