/** Longest step, because Node's own timers are limited to 24 days. */
const STEP_MAX_MS = 2 ** 31 - 1

/** Calls once after a delay of any length. `cancel` may be called at any time. */
export class Timer {
  readonly dueMs: number
  private handle: NodeJS.Timeout | undefined

  constructor(
    afterMs: number,
    private readonly call: () => void,
  ) {
    this.dueMs = performance.now() + afterMs
    this.arm()
  }

  leftMs(): number {
    return Math.max(0, this.dueMs - performance.now())
  }

  cancel(): void {
    clearTimeout(this.handle)
  }

  private arm(): void {
    const leftMs = this.leftMs()
    this.handle = setTimeout(
      () => (leftMs > STEP_MAX_MS ? this.arm() : this.call()),
      Math.min(leftMs, STEP_MAX_MS),
    )
  }
}
