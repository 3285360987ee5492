import { describe, expect, it } from '@jest/globals'
import { layout } from '../../storage/layout'
import { keepMarket, listMarket, readMarket, UNUSED_MARKET_KEPT_MS } from '../../storage/market'
import { MemoryStore } from '../backends/scripted/memory-store'
import { answer, offer } from '../planner/wishes'

const NOW = 1_000_000
const at = (observedAtMs: number) => answer([offer({ priceSource: { kind: 'live', observedAtMs } })])

describe('the market documents of a store', () => {
  it('hold equal readings once, with every job that uses them', async () => {
    const store = new MemoryStore(() => NOW)
    const [first] = await keepMarket(store, [at(5)], { jobId: 'job-a', nowMs: NOW })
    const [second] = await keepMarket(store, [at(6)], { jobId: 'job-b', nowMs: NOW })
    expect(second!.sha256).toBe(first!.sha256)
    expect(await listMarket(store)).toMatchObject([{ backend: 'here', jobIds: ['job-a', 'job-b'] }])
    expect(await readMarket(store, first!)).toEqual(at(5))
    expect(await readMarket(store, second!)).toEqual(at(6))
  })

  it('are written again when a plan uses an old one, so that none is deleted before it is on record', async () => {
    let nowMs = NOW
    const store = new MemoryStore(() => nowMs)
    const key = async () => (await listMarket(store))[0]!.keys[0]!
    await keepMarket(store, [at(5)], { jobId: 'job-a', nowMs })
    nowMs += UNUSED_MARKET_KEPT_MS / 2
    await keepMarket(store, [at(5)], { jobId: 'job-a', nowMs })
    expect((await store.head(await key()))!.modifiedAtMs).toBe(NOW)
    nowMs += 1
    await keepMarket(store, [at(5)], { jobId: 'job-a', nowMs })
    expect((await store.head(await key()))!.modifiedAtMs).toBe(nowMs)
  })

  it('are proven by their digest, and may be gone', async () => {
    const store = new MemoryStore(() => NOW)
    const [reading] = await keepMarket(store, [at(5)], { jobId: 'job-a', nowMs: NOW })
    const key = layout.market('here', reading!.sha256)
    await store.put(key, (await store.get(key))!.toString().replace('small', 'large'))
    await expect(readMarket(store, reading!)).rejects.toThrow('its content does not match its digest')
    await store.delete(key)
    expect(await readMarket(store, reading!)).toBeUndefined()
  })
})
