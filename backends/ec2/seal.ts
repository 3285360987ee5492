import { createHash, createHmac, getDiffieHellman } from 'node:crypto'

/** A key that only the machine with the other half of the shared secret can open. */
export interface Seal {
  /** Our half, in hexadecimal digits. */
  public: string
  text: string
  tag: string
}

/** Group of 2048 bits of RFC 3526, which both standard libraries can compute in. */
const GROUP = 'modp14'
const NUMBER_BYTES = 256

/**
 * Seals a 32-byte key for a machine. The provider keeps commands and their output for a month, readable for everyone in the account with
 * the permission; because the secret is agreed once per machine, these texts open nothing.
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
  // Used once, so a one-time pad suffices.
  const pad = createHmac('sha256', shared).update('encrypt').digest()
  const text = Buffer.from(key, 'hex').map((byte, at) => byte ^ pad[at]!)
  const tag = createHmac('sha256', shared).update('authenticate').update(text).digest('hex')
  return { public: ours, text: Buffer.from(text).toString('hex'), tag }
}

function padded(number: Buffer): Buffer {
  return Buffer.concat([Buffer.alloc(NUMBER_BYTES - number.length), number])
}
