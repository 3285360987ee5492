import { drawKeyId, drawSecret } from './keys'
import type { Random } from './random'

/**
 * Generates ids in AWS's formats. They are unique within a cloud, and repeatable in a world with the same seed and start, except for
 * those of sessions, which are secrets.
 */
export class Ids {
  constructor(
    private readonly random: Random,
    /** Distinguishes the ids of one cloud from those of the next one with the same seed. */
    private readonly life: string,
  ) {}

  /** Makes an id such as `i-0123456789abcdef0`. */
  resource(prefix: string): string {
    return `${prefix}-0${this.hex(16)}`
  }

  /** Makes an id with a UUID and a prefix such as `fleet-`. */
  uuid(): string {
    const digits = this.hex(32)
    const variant = '89ab'[parseInt(digits[16]!, 16) % 4]!
    return [
      digits.slice(0, 8),
      digits.slice(8, 12),
      `4${digits.slice(13, 16)}`,
      `${variant}${digits.slice(17, 20)}`,
      digits.slice(20),
    ].join('-')
  }

  /** Ids of users and roles. */
  iam(prefix: 'AIDA' | 'AROA' | 'AIPA'): string {
    return `${prefix}${this.hex(17).toUpperCase()}`
  }

  sessionKey(): string {
    return drawKeyId('ASIA')
  }

  secret(): string {
    return drawSecret()
  }

  sessionToken(): string {
    return `FwoGZXIvYXdz${drawSecret(120)}`
  }

  private hex(digits: number): string {
    return this.random.hex(digits, `id/${this.life}`)
  }
}
