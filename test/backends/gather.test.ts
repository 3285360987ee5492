import { describe, expect, it } from '@jest/globals'
import { gathered } from '../../backends/gather'

const patiently = new AbortController().signal

/** A provider that answers when it is let go, and records what it was asked. */
class Slow {
  readonly asked: string[][] = []
  readonly signals: AbortSignal[] = []
  private readonly answers: (() => void)[] = []

  readonly ask = async (keys: string[], signal: AbortSignal): Promise<string[]> => {
    this.asked.push(keys)
    this.signals.push(signal)
    await new Promise<void>((resolve) => this.answers.push(resolve))
    if (keys.includes('bad')) throw new Error('refused')
    return keys.map((key) => `about ${key}`)
  }

  async answer(): Promise<void> {
    this.answers.shift()!()
    // The next call begins when the callers of this one have their answers.
    await new Promise((resolve) => setImmediate(resolve))
  }
}

describe('gathered questions', () => {
  it('wait for nothing when few are asked, and go together in one call when many are', async () => {
    const slow = new Slow()
    const look = gathered({ ask: slow.ask, callsMax: 1, keysMax: 3 })
    const answers = Promise.all(['a', 'b', 'c', 'd', 'e'].map((key) => look(key, patiently)))
    expect(slow.asked).toEqual([['a']])
    for (let call = 1; call <= 3; call++) await slow.answer()
    expect(slow.asked).toEqual([['a'], ['b', 'c', 'd'], ['e']])
    expect(await answers).toEqual(['about a', 'about b', 'about c', 'about d', 'about e'])
  })

  it('share the error of their call, and no other', async () => {
    const slow = new Slow()
    const look = gathered({ ask: slow.ask, callsMax: 2, keysMax: 1 })
    const results = Promise.allSettled([look('bad', patiently), look('good', patiently)])
    await slow.answer()
    await slow.answer()
    expect(await results).toMatchObject([
      { status: 'rejected', reason: { message: 'refused' } },
      { status: 'fulfilled', value: 'about good' },
    ])
  })

  it('are not asked for a caller who has left, and are given up when all have left', async () => {
    const slow = new Slow()
    const look = gathered({ ask: slow.ask, callsMax: 1, keysMax: 10 })
    const [first, second] = [new AbortController(), new AbortController()]
    const left = { class: 'transient', message: 'the caller stopped waiting' }
    const asked = [look('a', first.signal), look('b', second.signal), look('c', patiently)]
    const results = Promise.allSettled(asked)
    second.abort()
    expect(slow.signals[0]!.aborted).toBe(false)
    first.abort()
    expect(slow.signals[0]!.aborted).toBe(true)
    await slow.answer()
    await slow.answer()
    expect(slow.asked).toEqual([['a'], ['c']])
    expect(await results).toMatchObject([
      { status: 'rejected', reason: { failure: left } },
      { status: 'rejected', reason: { failure: left } },
      { status: 'fulfilled', value: 'about c' },
    ])
    await expect(look('d', AbortSignal.abort())).rejects.toMatchObject({ failure: left })
  })
})
