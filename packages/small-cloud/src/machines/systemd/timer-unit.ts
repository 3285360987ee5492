import { Timer } from '../timer'
import type { Unit, UnitState } from './unit'

export interface TimerSettings {
  description?: string
  /** From now to the first time. */
  activeMs: number
  /** From one time to the next; without it there is one. */
  repeatMs?: number
}

/** A transient timer, which starts its service and is gone after the last time. */
export class TimerUnit implements Unit {
  state: UnitState = { active: 'active', sub: 'waiting' }
  readonly description: string
  private timer: Timer

  constructor(
    readonly name: string,
    private readonly settings: TimerSettings,
    /** `isLast` when it will not come again. */
    private readonly elapse: (isLast: boolean) => void,
  ) {
    this.description = settings.description ?? `[systemd-run] ${name}`
    this.timer = this.arm(settings.activeMs)
  }

  async stop(): Promise<void> {
    this.abandon()
  }

  /** From the beginning, as if it had just been made. */
  restart(): void {
    this.timer.cancel()
    this.timer = this.arm(this.settings.activeMs)
  }

  abandon(): void {
    this.timer.cancel()
    this.state = { active: 'inactive', sub: 'dead' }
  }

  log(): string[] {
    return []
  }

  /** How long until it starts its service. */
  leftMs(): number {
    return this.timer.leftMs()
  }

  properties(): Record<string, string> {
    return {
      Id: this.name,
      Names: this.name,
      Description: this.description,
      LoadState: 'loaded',
      ActiveState: this.state.active,
      SubState: this.state.sub,
      Result: 'success',
      Unit: this.name.replace(/\.timer$/, '.service'),
      NextElapseUSecMonotonic: `${Math.round(this.leftMs() * 1000)}`,
      Transient: 'yes',
    }
  }

  private arm(afterMs: number): Timer {
    return new Timer(afterMs, () => {
      const { repeatMs } = this.settings
      if (repeatMs !== undefined) this.timer = this.arm(repeatMs)
      else this.abandon()
      this.elapse(repeatMs === undefined)
    })
  }
}
