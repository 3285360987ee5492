/** Something to be done at an instant. A driven clock waits for what it returns before time passes. */
export type Task = () => void | Promise<void>

/** Time as the scripted world sees it: real, real with jumps, or driven by a test. They are never mixed in one world. */
export interface Clock {
  now(): number
  /** Does the task at the instant, or at once when that has passed. Returns how to forget it. */
  at(atMs: number, task: Task): () => void
}

interface Entry {
  atMs: number
  task: Task | undefined
}

/** Tasks in the order of their instants, those of one instant in the order in which they came. */
class Agenda {
  readonly #entries: Entry[] = []

  add(atMs: number, task: Task): () => void {
    const entry: Entry = { atMs, task }
    let low = 0
    for (let high = this.#entries.length; low < high;) {
      const middle = (low + high) >>> 1
      if (this.#entries[middle]!.atMs <= atMs) low = middle + 1
      else high = middle
    }
    this.#entries.splice(low, 0, entry)
    return () => {
      entry.task = undefined
    }
  }

  /** When the next task is due. */
  get nextAtMs(): number | undefined {
    while (this.#entries.length > 0 && this.#entries[0]!.task === undefined) this.#entries.shift()
    return this.#entries[0]?.atMs
  }

  /** The next task, when it is due by then. */
  take(byMs: number): Entry | undefined {
    const nextAtMs = this.nextAtMs
    return nextAtMs !== undefined && nextAtMs <= byMs ? this.#entries.shift() : undefined
  }
}

/** Real time, with one timer for all tasks: thousands of machines tick in one process. */
export class RealClock implements Clock {
  readonly #agenda = new Agenda()
  #timer: NodeJS.Timeout | undefined
  #timerAtMs = Infinity

  now(): number {
    return Date.now()
  }

  at(atMs: number, task: Task): () => void {
    const forget = this.#agenda.add(atMs, task)
    this.#arm()
    return forget
  }

  #arm(): void {
    const nextAtMs = this.#agenda.nextAtMs
    if (nextAtMs === undefined || nextAtMs >= this.#timerAtMs) return
    clearTimeout(this.#timer)
    this.#timerAtMs = nextAtMs
    this.#timer = setTimeout(() => this.#run(), Math.max(0, nextAtMs - this.now())).unref()
  }

  #run(): void {
    this.#timerAtMs = Infinity
    for (let entry = this.#agenda.take(this.now()); entry; entry = this.#agenda.take(this.now())) {
      void entry.task?.()
    }
    this.#arm()
  }
}

/** Real time that a test lets jump ahead. Between two jumps it passes as it does outside. */
export class JumpingClock implements Clock {
  readonly #agenda = new Agenda()
  /** Since which instant of the machine's clock it is how far ahead of it; oldest first. */
  readonly #ahead: { sinceMs: number; byMs: number }[]
  #timer: NodeJS.Timeout | undefined
  #isJumping = false

  constructor(nowMs: number) {
    this.#ahead = [{ sinceMs: -Infinity, byMs: nowMs - Date.now() }]
  }

  now(): number {
    return Date.now() + this.#ahead.at(-1)!.byMs
  }

  /** What this clock said, or will say without another jump, at an instant of the machine's clock. */
  of(machineMs: number): number {
    return machineMs + this.#ahead.findLast(({ sinceMs }) => sinceMs <= machineMs)!.byMs
  }

  at(atMs: number, task: Task): () => void {
    const forget = this.#agenda.add(atMs, task)
    this.#arm()
    return forget
  }

  /** Jumps, doing what falls due one after the other, each at its own instant. Does nothing if the instant has passed. */
  async jumpTo(atMs: number): Promise<void> {
    if (atMs <= this.now()) return
    this.#isJumping = true
    const jump = { sinceMs: Date.now(), byMs: this.#ahead.at(-1)!.byMs }
    this.#ahead.push(jump)
    const setTo = (toMs: number): void => void (jump.byMs = Math.max(jump.byMs, toMs - Date.now()))
    for (let entry = this.#agenda.take(atMs); entry; entry = this.#agenda.take(atMs)) {
      setTo(entry.atMs)
      await entry.task?.()
    }
    setTo(atMs)
    this.#isJumping = false
    this.#arm()
  }

  #arm(): void {
    clearTimeout(this.#timer)
    const { nextAtMs } = this.#agenda
    if (nextAtMs === undefined || this.#isJumping) return
    const inMs = Math.min(Math.max(0, nextAtMs - this.now()), TIMEOUT_MAX_MS)
    this.#timer = setTimeout(() => this.#run(), inMs).unref()
  }

  #run(): void {
    if (this.#isJumping) return
    for (let entry = this.#agenda.take(this.now()); entry; entry = this.#agenda.take(this.now()))
      void entry.task?.()
    this.#arm()
  }
}

/** Node has no longer timers. */
const TIMEOUT_MAX_MS = 2 ** 31 - 1

/** Time that stands still until a test lets it go on. */
export class DrivenClock implements Clock {
  readonly #agenda = new Agenda()
  #nowMs: number

  constructor(nowMs: number) {
    this.#nowMs = nowMs
  }

  now(): number {
    return this.#nowMs
  }

  at(atMs: number, task: Task): () => void {
    return this.#agenda.add(atMs, task)
  }

  /** Lets time pass, doing what falls due one after the other, each at its own instant. A task must not wait for time. */
  async advance(durationMs: number): Promise<void> {
    const endMs = this.#nowMs + durationMs
    for (let entry = this.#agenda.take(endMs); entry; entry = this.#agenda.take(endMs)) {
      this.#nowMs = Math.max(this.#nowMs, entry.atMs)
      await entry.task?.()
    }
    this.#nowMs = endMs
  }
}

/** Waits by a clock; returns early when the signal aborts. */
export function sleep(clock: Clock, durationMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const forget = clock.at(clock.now() + durationMs, () => finish())
    const finish = (): void => {
      forget()
      signal?.removeEventListener('abort', finish)
      resolve()
    }
    signal?.addEventListener('abort', finish, { once: true })
    if (signal?.aborted) finish()
  })
}
