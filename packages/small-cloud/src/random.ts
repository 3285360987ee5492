import { createHash } from 'node:crypto'

/** From and to, both possible. */
export type Range = readonly [number, number]

/**
 * Chance that repeats itself: each draw depends on the seed, on what it is for and on how often that was drawn before, but not on
 * what else was drawn meanwhile. So two runs of one world agree even where their requests come in another order.
 */
export class Random {
  private readonly drawn = new Map<string, number>()

  constructor(private readonly seed: string) {}

  /** The next number for a purpose, from 0 to below 1. */
  next(purpose: string): number {
    const count = this.drawn.get(purpose) ?? 0
    this.drawn.set(purpose, count + 1)
    return this.at(`${purpose}#${count}`)
  }

  /** The number that belongs to a name, always the same one. */
  at(name: string): number {
    return createHash('sha256').update(`${this.seed}/${name}`).digest().readUIntBE(0, 6) / 2 ** 48
  }

  /** A whole number out of a range. */
  within([from, to]: Range, purpose: string): number {
    return from === to ? from : Math.round(from + (to - from) * this.next(purpose))
  }

  /** Hexadecimal digits. */
  hex(digits: number, purpose: string): string {
    const count = this.drawn.get(purpose) ?? 0
    this.drawn.set(purpose, count + 1)
    return createHash('sha512').update(`${this.seed}/${purpose}#${count}`).digest('hex').slice(0, digits)
  }
}
