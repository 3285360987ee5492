import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import fc from 'fast-check'
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import fs from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  attemptKey,
  ensureDeploymentKey,
  formatKey,
  handOverKey,
  openSecrets,
  sealSecrets,
  SecretsError,
} from '../../storage/secrets'

const GOLDEN = join(__dirname, '..', 'runner', 'golden')

interface Vector {
  deploymentKey: string
  attemptId: string
  attemptKey: string
  plain: string
  sealed: { nonce: string }
}

describe('sealed secrets', () => {
  const key = randomBytes(32)
  const nonce = randomBytes(16)

  it('are the same bytes as the runner makes and opens', () => {
    const vector = JSON.parse(readFileSync(join(GOLDEN, 'vectors', 'sealed.json'), 'utf8')) as Vector
    const ours = attemptKey(Buffer.from(vector.deploymentKey, 'hex'), vector.attemptId)
    const values = JSON.parse(vector.plain) as Record<string, string>
    expect(ours.toString('hex')).toBe(vector.attemptKey)
    expect(JSON.parse(sealSecrets(ours, values, Buffer.from(vector.sealed.nonce, 'base64')))).toEqual(
      vector.sealed,
    )
    expect(openSecrets(ours, readFileSync(join(GOLDEN, 'sealed.json'), 'utf8'))).toEqual(values)
  })

  it('have a key of their own for each hand-over, which the bootstrap opens with', () => {
    const text = readFileSync(join(GOLDEN, 'vectors', 'hand-over.json'), 'utf8')
    const vector = JSON.parse(text) as Omit<Vector, 'attemptId'> & { send: string; key: string }
    const ours = handOverKey(Buffer.from(vector.deploymentKey, 'hex'), vector.send)
    expect(ours.toString('hex')).toBe(vector.key)
    const document = readFileSync(join(GOLDEN, 'hand-over.json'), 'utf8')
    const values = { handOver: JSON.stringify(JSON.parse(document)) }
    const sealed = sealSecrets(ours, values, Buffer.from(vector.sealed.nonce, 'base64'))
    expect(JSON.parse(sealed)).toEqual(vector.sealed)
  })

  it('open to what was sealed', () => {
    const bytes = (length: number): fc.Arbitrary<Buffer> =>
      fc.uint8Array({ minLength: length, maxLength: length }).map((array) => Buffer.from(array))
    fc.assert(
      fc.property(
        bytes(32),
        bytes(16),
        fc.dictionary(fc.string(), fc.string({ unit: 'grapheme' })),
        (k, n, values) => {
          expect(openSecrets(k, sealSecrets(k, values, n))).toEqual({ ...values })
        },
      ),
    )
    const long = { LONG: 'ü'.repeat(100_000) }
    expect(openSecrets(key, sealSecrets(key, long, nonce))).toEqual(long)
  })

  it('do not open with another key, nor after any change', () => {
    const document = sealSecrets(key, { TOKEN: 'value' }, nonce)
    expect(() => openSecrets(attemptKey(key, 'job-a-1'), document)).toThrow(
      'made with another key, or modified',
    )
    const sealed = JSON.parse(document) as Record<'nonce' | 'text' | 'tag', string>
    const fields = fc.constantFrom('nonce' as const, 'text' as const, 'tag' as const)
    fc.assert(
      fc.property(fields, fc.nat(), fc.integer({ min: 1, max: 255 }), (field, at, flip) => {
        const bytes = Buffer.from(sealed[field], 'base64')
        bytes[at % bytes.length]! ^= flip
        const changed = JSON.stringify({ ...sealed, [field]: bytes.toString('base64') })
        expect(() => openSecrets(key, changed)).toThrow(SecretsError)
      }),
    )
    expect(() => openSecrets(key, JSON.stringify({ ...sealed, tag: '' }))).toThrow(SecretsError)
  })

  it('show nothing of the values', () => {
    const document = sealSecrets(key, { TOKEN: 'correct horse battery staple' }, nonce)
    const raw = Object.values(JSON.parse(document) as Record<string, unknown>).map((field) =>
      Buffer.from(String(field), 'base64').toString('latin1'),
    )
    for (const text of [document, ...raw]) expect(text).not.toMatch(/TOKEN|horse/)
  })

  it.each(['sealed-of-version-2.json', 'sealed-without-tag.json'])('refuse %s', (name) => {
    const document = readFileSync(join(GOLDEN, 'invalid', name), 'utf8')
    expect(() => openSecrets(key, document)).toThrow(SecretsError)
  })

  it.each(['', 'null', '[]', '{"v":1}', 'not JSON'])('refuse %j', (document) => {
    expect(() => openSecrets(key, document)).toThrow(SecretsError)
  })

  it('take keys and nonces of the right length only', () => {
    expect(() => sealSecrets(Buffer.alloc(31), {}, nonce)).toThrow('The key has 31 bytes instead of 32.')
    expect(() => sealSecrets(key, {}, Buffer.alloc(12))).toThrow('The nonce has 12 bytes instead of 16.')
    expect(() => attemptKey(Buffer.alloc(0), 'job-a-1')).toThrow(SecretsError)
  })
})

describe('the key file of a deployment', () => {
  let directory: string
  let path: string

  beforeEach(async () => {
    directory = await fs.mkdtemp(join(tmpdir(), 'crucible-key-'))
    path = join(directory, 'state', 'deployment.key')
  })
  afterEach(async () => {
    jest.restoreAllMocks()
    await fs.rm(directory, { recursive: true, force: true })
  })

  it('is made at first use, readable by its owner only, and stays the same', async () => {
    const key = await ensureDeploymentKey(path)
    expect(key).toHaveLength(32)
    expect((await fs.stat(path)).mode & 0o777).toBe(0o600)
    expect(await fs.readFile(path, 'utf8')).toBe(formatKey(key))
    expect((await ensureDeploymentKey(path)).equals(key)).toBe(true)
  })

  it('is one key for all who ask at the same moment, with nothing left next to it', async () => {
    const keys = await Promise.all(Array.from({ length: 10 }, () => ensureDeploymentKey(path)))
    expect(new Set(keys.map((key) => key.toString('hex'))).size).toBe(1)
    expect(await fs.readdir(join(directory, 'state'))).toEqual(['deployment.key'])
  })

  it.each([0o640, 0o604, 0o660, 0o644])('is refused with mode %o, and the remedy is named', async (mode) => {
    await ensureDeploymentKey(path)
    await fs.chmod(path, mode)
    await expect(ensureDeploymentKey(path)).rejects.toThrow(
      `The key file ${path} can be read by others (mode ${mode.toString(8)}): run "chmod 600 ${path}".`,
    )
  })

  it.each(['', 'abc', 'x'.repeat(64), 'a'.repeat(66)])(
    'is refused when it holds %j, and not replaced',
    async (text) => {
      await fs.mkdir(join(directory, 'state'))
      await fs.writeFile(path, text, { mode: 0o600 })
      await expect(ensureDeploymentKey(path)).rejects.toThrow(
        'does not hold 64 hex digits: restore it from a backup',
      )
      expect(await fs.readFile(path, 'utf8')).toBe(text)
    },
  )

  it('says why it cannot be made or read', async () => {
    await fs.writeFile(join(directory, 'state'), '')
    await expect(ensureDeploymentKey(path)).rejects.toThrow(
      `Could not use the key file ${path}: a file exists where`,
    )
    const denied = Object.assign(new Error('no'), { code: 'EACCES' })
    await fs.rm(join(directory, 'state'))
    await ensureDeploymentKey(path)
    jest.spyOn(fs, 'readFile').mockRejectedValue(denied)
    await expect(ensureDeploymentKey(path)).rejects.toThrow(
      `Could not use the key file ${path}: permission denied`,
    )
  })
})
