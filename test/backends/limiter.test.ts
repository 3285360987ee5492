import { describe, expect, it } from '@jest/globals'
import { createLimiter, type Limiter } from '../../backends/limiter'
import { until } from '../support/until'

const patiently = new AbortController().signal

describe('the pace of requests', () => {
  it('spaces launches further apart than other requests, which they do not hold up', async () => {
    const atMs: Record<string, number[]> = { launch: [], other: [] }
    const limiter = createLimiter({ size: 1, perSecond: 100 }, () => performance.now(), {
      size: 1,
      perSecond: 4,
    })
    const ask = (rank: 'launch' | 'other'): Promise<unknown> =>
      limiter.run(rank, patiently, async () => atMs[rank]!.push(performance.now()))
    const launches = Promise.all([ask('launch'), ask('launch'), ask('launch')])
    await Promise.all(Array.from({ length: 10 }, () => ask('other')))
    expect(atMs['launch']).toHaveLength(1)
    await launches
    const [first, second, third] = atMs['launch']!
    // A call runs a moment after its turn.
    expect(Math.min(second! - first!, third! - second!)).toBeGreaterThanOrEqual(225)
  })

  it('lets the end of a machine go before a launch, and a launch before the rest', async () => {
    const order: string[] = []
    const limiter = createLimiter({ size: 1, perSecond: 50 }, () => performance.now())
    const ask = (rank: Parameters<Limiter['run']>[0], name: string): Promise<unknown> =>
      limiter.run(rank, patiently, async () => order.push(name))
    await Promise.all([
      ask('other', 'first'),
      ask('other', 'read'),
      ask('launch', 'launch'),
      ask('ending', 'end'),
    ])
    expect(order).toEqual(['first', 'end', 'launch', 'read'])
  })

  it('gives the place of a launch whose caller left to the next', async () => {
    const limiter = createLimiter({ size: 1, perSecond: 100 }, () => performance.now(), {
      size: 1,
      perSecond: 5,
    })
    await limiter.run('launch', patiently, async () => undefined)
    const caller = new AbortController()
    let isSent = false
    const left = limiter.run('launch', caller.signal, async () => (isSent = true))
    caller.abort()
    await expect(left).rejects.toMatchObject({ failure: { class: 'transient' } })
    let isServed = false
    void limiter.run('launch', patiently, async () => (isServed = true))
    await until(() => isServed)
    expect(isSent).toBe(false)
  })
})
