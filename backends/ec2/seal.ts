import { createHash, createHmac, getDiffieHellman } from 'node:crypto'

/** A key that only the machine can open whose half of the secret it was sealed with. */
export interface Seal {
  /** Our half, as hexadecimal digits. */
  public: string
  text: string
  tag: string
}

/** The group of 2048 bits of RFC 3526; both standard libraries can count in it. */
const GROUP = 'modp14'
const NUMBER_BYTES = 256

/**
 * Seals a 32-byte key for a machine. Commands and their answers are kept by the provider for a month, for everybody in the
 * account who may read them: with a secret agreed upon for this once, what is kept there opens nothing.
 *
 * @param machinePublic the machine's half, hexadecimal
 * @param key 64 hexadecimal digits
 */
export function sealFor(machinePublic: string, key: string): Seal {
  const exchange = getDiffieHellman(GROUP)
  const ours = exchange.generateKeys('hex')
  const theirs = Buffer.from(machinePublic.padStart(2 * NUMBER_BYTES, '0'), 'hex')
  const shared = createHash('sha256')
    .update(padded(exchange.computeSecret(theirs)))
    .digest()
  // Used once, so that a pad is enough.
  const pad = createHmac('sha256', shared).update('encrypt').digest()
  const text = Buffer.from(key, 'hex').map((byte, at) => byte ^ pad[at]!)
  const tag = createHmac('sha256', shared).update('authenticate').update(text).digest('hex')
  return { public: ours, text: Buffer.from(text).toString('hex'), tag }
}

function padded(number: Buffer): Buffer {
  return Buffer.concat([Buffer.alloc(NUMBER_BYTES - number.length), number])
}
