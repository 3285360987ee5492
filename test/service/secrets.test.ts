import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { BackendError } from '../../backends/errors'
import type { Order } from '../../core/job/plan'
import { layout } from '../../storage/layout'
import { attemptKey, ensureDeploymentKey, openSecrets, sealSecrets } from '../../storage/secrets'
import { SecretIssuer } from '../../service/secrets'
import { MemoryStore } from '../backends/scripted/memory-store'

const VALUES = { TOKEN: 'hunter2-and-more' }
const ORDER = {
  jobId: 'job-a',
  attempt: 2,
  attemptId: 'job-a-2',
  runner: { secrets: ['TOKEN'] },
} as unknown as Order

let directory: string
let keyFile: string
let store: MemoryStore

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'crucible-desk-'))
  keyFile = join(directory, 'secret.key')
  store = new MemoryStore(Date.now)
})
afterEach(() => rm(directory, { recursive: true, force: true }))

/** What a client with this key file leaves of a job's secrets. */
async function submit(file = keyFile): Promise<void> {
  const key = attemptKey(await ensureDeploymentKey(file), 'job-a')
  await store.put(layout.secrets('job-a'), sealSecrets(key, VALUES, randomBytes(16)))
}

const sealedOf = async (attempt: number): Promise<string | undefined> =>
  (await store.get(layout.attemptSecrets('job-a', attempt)))?.toString()

describe("a job's secrets", () => {
  it('are sealed anew for each attempt, with a key that opens no other', async () => {
    await submit()
    const desk = await SecretIssuer.open(store, keyFile)
    await desk.handOver(ORDER)
    const sealed = (await sealedOf(2))!
    expect(sealed).not.toContain('hunter2')
    const key = Buffer.from(desk.keyOf('job-a-2'), 'hex')
    expect(openSecrets(key, sealed)).toEqual(VALUES)
    const other = Buffer.from(desk.keyOf('job-a-3'), 'hex')
    expect(() => openSecrets(other, sealed)).toThrow('another key')
    // The runner deletes its document; a later attempt gets one of its own.
    await desk.handOver({ ...ORDER, attempt: 3, attemptId: 'job-a-3' })
    expect(openSecrets(other, (await sealedOf(3))!)).toEqual(VALUES)
  })

  it('are never sealed twice to the same text', async () => {
    await submit()
    const desk = await SecretIssuer.open(store, keyFile)
    await desk.handOver(ORDER)
    const first = await sealedOf(2)
    await desk.handOver(ORDER)
    expect(await sealedOf(2)).not.toBe(first)
  })

  it('are not asked for where the job has none', async () => {
    const desk = await SecretIssuer.open(store, keyFile)
    await desk.handOver({ ...ORDER, runner: { ...ORDER.runner, secrets: [] } })
    expect(await sealedOf(2)).toBeUndefined()
  })

  it('are handed over for a registry, too', async () => {
    await submit()
    const desk = await SecretIssuer.open(store, keyFile)
    const imageLogin = { username: 'robot', secret: 'TOKEN' }
    await desk.handOver({ ...ORDER, runner: { ...ORDER.runner, secrets: [], imageLogin } })
    expect(await sealedOf(2)).toBeDefined()
  })

  it('are masked wherever they stand in a text', async () => {
    await submit()
    const desk = await SecretIssuer.open(store, keyFile)
    expect(await desk.mask('job-a', `it said ${VALUES.TOKEN}, and ${VALUES.TOKEN} again`)).toBe(
      'it said ***, and *** again',
    )
    expect(await desk.mask('job-b', VALUES.TOKEN)).toBe(VALUES.TOKEN)
    const other = await SecretIssuer.open(store, join(directory, 'another.key'))
    await expect(other.mask('job-a', 'hunter2')).rejects.toThrow('different keys')
  })

  it('that are missing stop the job', async () => {
    const desk = await SecretIssuer.open(store, keyFile)
    await expect(desk.handOver(ORDER)).rejects.toMatchObject({
      failure: { class: 'invalid', message: 'The secrets of job-a are not in the object store.' },
    })
  })

  it('that another key has sealed stop the job, and say which file to share', async () => {
    await submit(join(directory, 'of-the-client.key'))
    const desk = await SecretIssuer.open(store, keyFile)
    const error = await desk.handOver(ORDER).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(BackendError)
    expect(error).toMatchObject({
      failure: { class: 'auth', hint: `Set both to the same CRUCIBLE_SECRET_KEY_FILE (here: ${keyFile}).` },
    })
    expect(await sealedOf(2)).toBeUndefined()
  })
})

describe('the key of a deployment', () => {
  it('is made once, and is the same for all who open the desk at the same moment', async () => {
    const desks = await Promise.all([1, 2, 3, 4].map(() => SecretIssuer.open(store, keyFile)))
    expect(new Set(desks.map((desk) => desk.keyOf('job-a-1'))).size).toBe(1)
    expect(desks[0]!.keyOf('job-a-1')).toMatch(/^[0-9a-f]{64}$/)
  })
})
