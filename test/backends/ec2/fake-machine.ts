import type { Machine, MachineState } from '../../../backends/ec2/sdk/api'

interface Facts extends Omit<Machine, 'state' | 'reason' | 'transition'> {
  now: () => number
}

/** From the request to end it until it has ended. */
const SHUTS_DOWN_FOR_MS = 30

/** A machine as the provider sees it; it boots at once. */
export class FakeMachine {
  readonly id: string
  readonly type: string
  readonly launchedAtMs: number
  readonly tags: Record<string, string>
  readonly reservation: string | undefined
  /** How often a runner was started. */
  starts = 0
  hasRunner = false
  isStuck = false
  #reason: Machine['reason']
  #endedAtMs: number | undefined

  constructor(private readonly facts: Facts) {
    this.id = facts.id
    this.type = facts.type
    this.launchedAtMs = facts.launchedAtMs
    this.tags = facts.tags
    this.reservation = facts.reservation
  }

  get state(): MachineState {
    if (this.#endedAtMs === undefined) return this.isStuck ? 'pending' : 'running'
    return this.facts.now() >= this.#endedAtMs ? 'terminated' : 'shutting-down'
  }

  end(reason: NonNullable<Machine['reason']>): void {
    if (this.#endedAtMs !== undefined) return
    this.hasRunner = false
    this.#reason = reason
    this.#endedAtMs = this.facts.now() + SHUTS_DOWN_FOR_MS
  }

  /** The systemd of this machine: a unit that runs is not started twice. */
  startRunner(): void {
    if (this.hasRunner) return
    this.hasRunner = true
    this.starts += 1
  }

  view(): Machine {
    const { id, type, zone, subnet, capacityType, launchedAtMs } = this.facts
    return {
      ...{ id, state: this.state, type, zone, capacityType, launchedAtMs },
      ...(subnet === undefined ? {} : { subnet }),
      ...(this.reservation === undefined ? {} : { reservation: this.reservation }),
      tags: { ...this.tags },
      ...(this.#reason && { reason: this.#reason }),
      ...(this.#endedAtMs !== undefined && { transition: `User initiated (${this.#changedAt()} GMT)` }),
    }
  }

  /** In whole seconds, as the provider tells it. */
  #changedAt(): string {
    const atMs = this.state === 'terminated' ? this.#endedAtMs! : this.#endedAtMs! - SHUTS_DOWN_FOR_MS
    return new Date(atMs).toISOString().slice(0, 19).replace('T', ' ')
  }
}
