/** The time source of the small cloud. Everything that happens later is scheduled on one clock, so that tests can drive it by hand. */
export interface Clock {
  /** Milliseconds since 1970. */
  nowMs(): number
  /** Runs the action after a delay. Returns a function that cancels it. */
  after(delayMs: number, action: () => void): () => void
}

/** The longest delay of one Node timer; longer delays are split. */
const TIMER_MS_MAX = 2_000_000_000

/** The wall clock. `stop` cancels everything that is still scheduled. */
export class WallClock implements Clock {
  private readonly timers = new Set<NodeJS.Timeout>()

  /** @param aheadMs how far it is ahead of this host's clock */
  constructor(private readonly aheadMs = 0) {}

  nowMs(): number {
    return Date.now() + this.aheadMs
  }

  after(delayMs: number, action: () => void): () => void {
    let isOff = false
    let cancelTimer = (): void => undefined
    const wait = (leftMs: number): void => {
      const stepMs = Math.min(leftMs, TIMER_MS_MAX)
      const timer = setTimeout(() => {
        this.timers.delete(timer)
        if (isOff) return
        if (leftMs > stepMs) wait(leftMs - stepMs)
        else action()
      }, stepMs)
      this.timers.add(timer)
      cancelTimer = () => {
        clearTimeout(timer)
        this.timers.delete(timer)
      }
    }
    wait(Math.max(0, delayMs))
    return () => {
      isOff = true
      cancelTimer()
    }
  }

  stop(): void {
    for (const timer of this.timers) clearTimeout(timer)
    this.timers.clear()
  }
}

interface Appointment {
  atMs: number
  order: number
  action: () => void
}

/** A clock that stands still until it is advanced; for worlds with scripted machines. */
export class DrivenClock implements Clock {
  private readonly appointments = new Set<Appointment>()
  private made = 0

  constructor(private currentMs: number) {}

  nowMs(): number {
    return this.currentMs
  }

  after(delayMs: number, action: () => void): () => void {
    const appointment = { atMs: this.currentMs + Math.max(0, delayMs), order: this.made++, action }
    this.appointments.add(appointment)
    return () => void this.appointments.delete(appointment)
  }

  /** Returns when the next scheduled action is due; `undefined` without any. */
  nextMs(): number | undefined {
    return this.next()?.atMs
  }

  /** Advances the time and runs everything due, in order. Promises settle between one action and the next. */
  async advance(durationMs: number): Promise<void> {
    const endMs = this.currentMs + durationMs
    await settle()
    for (let next = this.next(); next !== undefined && next.atMs <= endMs; next = this.next()) {
      this.appointments.delete(next)
      this.currentMs = Math.max(this.currentMs, next.atMs)
      next.action()
      await settle()
    }
    this.currentMs = endMs
  }

  private next(): Appointment | undefined {
    let first: Appointment | undefined
    for (const each of this.appointments)
      if (
        first === undefined ||
        each.atMs < first.atMs ||
        (each.atMs === first.atMs && each.order < first.order)
      )
        first = each
    return first
  }
}

/** Lets all pending promises settle. */
function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
