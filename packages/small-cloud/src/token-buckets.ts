import type { Clock } from './clock'

export interface Bucket {
  size: number
  perSecond: number
}

/** Buckets of requests that refill over time. */
export class TokenBuckets {
  private readonly levels = new Map<string, { tokens: number; atMs: number }>()

  constructor(private readonly clock: Clock) {}

  /** Takes tokens from the bucket of a name. Returns false, and takes none, when there are too few. */
  take(name: string, { size, perSecond }: Bucket, count = 1): boolean {
    const nowMs = this.clock.nowMs()
    const level = this.levels.get(name) ?? { tokens: size, atMs: nowMs }
    const tokens = Math.min(size, level.tokens + ((nowMs - level.atMs) / 1000) * perSecond)
    const isEnough = tokens >= count
    this.levels.set(name, { tokens: isEnough ? tokens - count : tokens, atMs: nowMs })
    return isEnough
  }
}
