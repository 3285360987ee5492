import { createHash } from 'node:crypto'

/** Lower and upper end, both inclusive. */
export type Range = readonly [number, number]

/**
 * Reproducible randomness: each draw depends on the seed, on its purpose and on the number of earlier draws for this purpose, but not on
 * other draws. Two runs of one world therefore agree even when their requests arrive in another order.
 */
export class Random {
  private readonly drawn = new Map<string, number>()

  constructor(private readonly seed: string) {}

  /** Returns the next number for a purpose, from 0 to below 1. */
  next(purpose: string): number {
    const count = this.drawn.get(purpose) ?? 0
    this.drawn.set(purpose, count + 1)
    return this.at(`${purpose}#${count}`)
  }

  /** Returns the number of a name, always the same one. */
  at(name: string): number {
    return createHash('sha256').update(`${this.seed}/${name}`).digest().readUIntBE(0, 6) / 2 ** 48
  }

  /** Returns a whole number from a range. */
  within([from, to]: Range, purpose: string): number {
    return from === to ? from : Math.round(from + (to - from) * this.next(purpose))
  }

  /** Returns hexadecimal digits. */
  hex(digits: number, purpose: string): string {
    const count = this.drawn.get(purpose) ?? 0
    this.drawn.set(purpose, count + 1)
    return createHash('sha512').update(`${this.seed}/${purpose}#${count}`).digest('hex').slice(0, digits)
  }
}
