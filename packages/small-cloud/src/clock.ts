/** What the small cloud knows of time. Everything that happens later is asked of one clock, so that it can be driven by hand. */
export interface Clock {
  /** Milliseconds since 1970. */
  nowMs(): number
  /** Does something after a time. Returns what calls it off. */
  after(delayMs: number, action: () => void): () => void
}

/** The longest that one timer of Node can wait; more is waited in pieces. */
const TIMER_MS_MAX = 2_000_000_000

/** The clock on the wall. `stop` calls off all that is still to come. */
export class WallClock implements Clock {
  private readonly timers = new Set<NodeJS.Timeout>()

  /** @param aheadMs of the clock of this host */
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

/** A clock that stands still until it is driven; for worlds whose machines are scripted. */
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

  /** When the next thing happens; `undefined` when nothing is to come. */
  nextMs(): number | undefined {
    return this.next()?.atMs
  }

  /** Lets time pass, with everything that happens in it, in order. Promises settle between one happening and the next. */
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

/** Lets all promises that can settle do so. */
function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
