import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { BackendError } from '../../backends/errors'
import type { HandOver } from '../../backends/registry'
import type { HandOverDocument } from '../../core/documents'
import type { Order } from '../../core/job/plan'
import { CLOCK_SLACK_MS, MINUTE_MS } from '../../core/time/time'
import { layout } from '../../storage/layout'
import { openSecrets } from '../../storage/secrets'
import { StoreError } from '../../storage/store'
import { handOvers, type HandOverDeps } from '../../service/hand-over'
import { SecretIssuer } from '../../service/secrets'
import { makeOrder } from '../backends/orders'
import { MemoryStore } from '../backends/scripted/memory-store'

const GRANT = '{"v":1}\n'
const NOW_MS = 1_000_000
const SEND = 'job-a-1-s1'

let directory: string
let store: MemoryStore
let secrets: SecretIssuer
let nowMs: number
let order: Order
let warnings: unknown[]

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'crucible-hand-over-'))
  nowMs = NOW_MS
  store = new MemoryStore(() => nowMs)
  secrets = await SecretIssuer.open(store, join(directory, 'secret.key'))
  warnings = []
  order = makeOrder({
    store,
    jobId: 'job-a',
    runnerSha256: 'f'.repeat(64),
    offers: [
      {
        backend: 'scripted',
        capacityType: 'on-demand',
        type: 'x',
        place: '',
        priceMicroUsdPerHour: 1,
        shape: { cpus: 1, memoryGiB: 1, diskGiB: 1, gpus: 0 },
        availability: 'available',
        priceSource: { kind: 'static', observedAtMs: 0 },
      },
    ],
    timing: { startWithinMs: MINUTE_MS, drainMs: 2_000, powerOffMs: 500 },
  })
})
afterEach(() => rm(directory, { recursive: true, force: true }))

const issue = (send = SEND, deps: Partial<HandOverDeps> = {}): Promise<HandOver> =>
  handOvers({
    store,
    secrets,
    now: () => nowMs,
    grants: { grantFile: async () => GRANT },
    logger: { warn: (...words: unknown[]) => void warnings.push(words) },
    ...deps,
  })(order, send)

async function open({ url, key }: HandOver): Promise<HandOverDocument | undefined> {
  const sealed = await store.ask('GET', url)
  if (sealed === undefined) return undefined
  const { handOver } = openSecrets(Buffer.from(key, 'hex'), sealed.toString())
  return JSON.parse(handOver!) as HandOverDocument
}

describe('the hand-over of a send', () => {
  it('has what its machine needs to start the runner, and a way to delete it', async () => {
    await store.put(layout.runner(order.runnerSha256), 'the runner')
    const document = await open(await issue())
    expect(document).toMatchObject({
      version: 1,
      jobId: 'job-a',
      attempt: 1,
      attemptId: 'job-a-1',
      storeUrl: store.url,
      runnerSha256: order.runnerSha256,
      key: secrets.keyOf('job-a-1'),
      grant: GRANT,
      startMs: MINUTE_MS + CLOCK_SLACK_MS,
      endMs: 2_500 + CLOCK_SLACK_MS,
      stopSeconds: 3,
    })
    expect(document?.runnerUrl).toContain(Buffer.from('the runner').toString('base64'))
    await store.ask('DELETE', document!.deleteUrl)
    expect(await store.get(layout.handOver('job-a', 1, SEND))).toBeUndefined()
  })

  it('opens with the same key however often it is asked for, and is put once', async () => {
    const first = await issue()
    const body = await store.get(layout.handOver('job-a', 1, SEND))
    expect((await issue()).key).toBe(first.key)
    expect(await store.get(layout.handOver('job-a', 1, SEND))).toEqual(body)
    expect(first.key).toMatch(/^[0-9a-f]{64}$/)
  })

  it('opens with no key of another send, and neither does anything else', async () => {
    const [first, second] = [await issue(), await issue('job-a-1-s2')]
    expect(second.key).not.toBe(first.key)
    await expect(open({ url: first.url, key: second.key })).rejects.toThrow('another key')
    expect([secrets.keyOf('job-a-1'), secrets.keyOf(SEND)]).not.toContain(first.key)
  })

  it('can be read as long as a runner may start, and no longer', async () => {
    const handOver = await issue()
    nowMs += MINUTE_MS + CLOCK_SLACK_MS
    expect(await open(handOver)).toBeDefined()
    nowMs += 1
    expect(await open(handOver)).toBeUndefined()
  })

  it.each([
    ['a machine has claimed the attempt', layout.claim('job-a', 1)],
    ['the attempt must stop', layout.drain('job-a', 1)],
  ])('is not put once %s', async (_, key) => {
    const { key: opener } = await issue()
    await store.delete(layout.handOver('job-a', 1, SEND))
    await store.put(key, '{}')
    expect((await issue()).key).toBe(opener)
    expect(await store.get(layout.handOver('job-a', 1, SEND))).toBeUndefined()
  })

  it('fails without effect while the store or its token service does not answer', async () => {
    store.isDown = true
    await expect(issue()).rejects.toMatchObject({ failure: { class: 'transient' } })
    store.isDown = false
    const refusal = new BackendError({ class: 'auth', message: 'the role is gone' })
    const grants = { grantFile: () => Promise.reject(refusal) }
    await expect(issue(SEND, { grants })).rejects.toBe(refusal)
    store.signUrls = () => Promise.reject(new StoreError('no credentials', { isTransient: false }))
    await expect(issue()).rejects.toMatchObject({ failure: { class: 'auth' } })
    expect(await store.get(layout.handOver('job-a', 1, SEND))).toBeUndefined()
  })

  it('warns once if the credentials that sign its URLs end before the last machine may start', async () => {
    const signUrls = store.signUrls.bind(store)
    const ending = (credentialsEndAtMs: number): void => {
      store.signUrls = async (...args) => ({ ...(await signUrls(...args)), credentialsEndAtMs })
    }
    ending(NOW_MS + 2 * MINUTE_MS)
    await issue()
    expect(warnings).toEqual([])
    ending(NOW_MS + MINUTE_MS)
    const issuer = handOvers({
      store,
      secrets,
      now: () => nowMs,
      logger: { warn: (...words: unknown[]) => void warnings.push(words) },
    })
    await issuer(order, SEND)
    await issuer(order, 'job-a-1-s2')
    expect(warnings).toEqual([
      [{ until: '1970-01-01T00:17:40Z' }, expect.stringContaining('credentials of this worker end')],
    ])
  })
})
