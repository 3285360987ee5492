/** Time that passes only when everybody waits: the earliest to be woken is woken, and all that follows from it happens at once. */
export class VirtualClock {
  nowMs: number
  private readonly sleepers: { atMs: number; order: number; wake: () => void }[] = []
  private count = 0

  constructor(startMs: number) {
    this.nowMs = startMs
  }

  /** Instants in the past are now. */
  until(atMs: number): Promise<void> {
    return new Promise((wake) => {
      const sleeper = { atMs: Math.max(atMs, this.nowMs), order: this.count++, wake }
      const place = this.sleepers.findIndex((other) => other.atMs > sleeper.atMs)
      if (place === -1) this.sleepers.push(sleeper)
      else this.sleepers.splice(place, 0, sleeper)
    })
  }

  async runUntil(all: Promise<unknown>): Promise<void> {
    let isOver = false
    const ended = all.finally(() => (isOver = true))
    // Its failure is the caller's.
    ended.catch(() => undefined)
    for (;;) {
      await new Promise(setImmediate)
      if (isOver) break
      const next = this.sleepers.shift()
      if (next === undefined) throw new Error('everybody waits for somebody else')
      this.nowMs = next.atMs
      next.wake()
    }
    await ended
  }
}
