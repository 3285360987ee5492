import { describe, expect, it } from '@jest/globals'
import { createLimiter } from '../../../backends/ec2/limiter'
import { until } from '../../support/until'

const patiently = new AbortController().signal

/** Uses up what may be sent at once. */
async function drained(limiter = createLimiter(Date.now)) {
  await Promise.all(Array.from({ length: 50 }, () => limiter.run('other', patiently, async () => undefined)))
  return limiter
}

describe('the pace of calls that change something', () => {
  it('lets a burst through at once, and what comes after it at the pace of the provider', async () => {
    const limiter = await drained()
    const startedMs = performance.now()
    await limiter.run('other', patiently, async () => undefined)
    expect(performance.now() - startedMs).toBeGreaterThan(100)
  })

  it('lets what ends machines go first', async () => {
    const limiter = await drained()
    const order: string[] = []
    const all = ['a launch', 'another launch'].map((name) =>
      limiter.run('other', patiently, async () => order.push(name)),
    )
    await Promise.all([...all, limiter.run('ending', patiently, async () => order.push('an end'))])
    expect(order).toEqual(['an end', 'a launch', 'another launch'])
  })

  it('keeps no place for a caller who has left', async () => {
    const limiter = await drained()
    const caller = new AbortController()
    let isSent = false
    const left = limiter.run('other', caller.signal, async () => (isSent = true))
    caller.abort()
    await expect(left).rejects.toMatchObject({ failure: { class: 'transient' } })
    let isServed = false
    void limiter.run('other', patiently, async () => (isServed = true))
    await until(() => isServed)
    expect(isSent).toBe(false)
  })
})
