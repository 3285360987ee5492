import { describe, expect, it } from '@jest/globals'
import { Sends } from '../../storage/sends'
import { MemoryStore } from '../backends/scripted/memory-store'

const NOW_MS = 1_795_000_000_000
const LIMIT_MS = 180_000
const AT = { jobId: 'j-1', attempt: 1, attemptId: 'j-1-1' }

/** The sends of one attempt as two workers see them: each has its own clock. */
function workers(): { sender: Sends; other: Sends; pass: (durationMs: number) => void } {
  let nowMs = NOW_MS
  const store = new MemoryStore(() => nowMs)
  const sends = (): Sends => new Sends(store, AT, () => nowMs)
  return { sender: sends(), other: sends(), pass: (durationMs) => (nowMs += durationMs) }
}

describe('a send that another worker has begun', () => {
  it('may reach the provider until its limit is over, whether its worker lives or not', async () => {
    const { sender, other, pass } = workers()
    expect(await other.sentUntilMs(LIMIT_MS)).toBeUndefined()
    await sender.begin()
    pass(LIMIT_MS - 1)
    expect(await other.begin()).toBeUndefined()
    expect(await other.sentUntilMs(LIMIT_MS)).toBe(NOW_MS + LIMIT_MS)
  })

  it('can have no effect after the time at which its worker gave it up', async () => {
    const { sender, other, pass } = workers()
    const mark = await sender.begin()
    pass(5_000)
    await sender.conclude(mark!, { kind: 'unconfirmed' })
    pass(LIMIT_MS)
    expect(await other.sentUntilMs(LIMIT_MS)).toBe(NOW_MS + 5_000)
    expect(await other.begin()).toBeUndefined()
  })

  it('can no longer have an effect once it was refused, and another may begin', async () => {
    const { sender, other } = workers()
    const mark = await sender.begin()
    const failure = { class: 'throttled', message: 'slow down' } as const
    await sender.conclude(mark!, { kind: 'no-effect', failure })
    expect(await other.sentUntilMs(LIMIT_MS)).toBeUndefined()
    expect(await other.begin()).toMatchObject({ seq: 2, name: 'j-1-1-s2' })
  })

  it('counts as before when no further one may begin', async () => {
    const { sender, other } = workers()
    await sender.begin()
    await other.seal()
    expect(await other.sentUntilMs(LIMIT_MS)).toBe(NOW_MS + LIMIT_MS)
  })
})
