/** Steps that must happen: how long they wait between tries, and what the page shows meanwhile. */
import { beforeEach, describe, expect, it, jest } from '@jest/globals'
import { ApplicationFailure } from '@temporalio/common'
import type { Failure } from '../../core/failure'
import { DAY_MS, MINUTE_MS } from '../../core/time/time'
import type * as Forever from '../../workflows/forever'

let isCancelled: boolean
let signal: () => void
/** The pauses that began to wait. */
let waits: number[]

jest.mock('@temporalio/workflow', () => ({
  CancellationScope: { current: () => ({ consideredCancelled: isCancelled }) },
  defineSignal: (name: string) => name,
  setHandler: (_: string, handler: () => void) => void (signal = handler),
  condition: async (isSo: () => boolean, forMs: number) => void (isSo() || waits.push(forMs)),
}))
const { forever, localThenOrdinary, Retries } = jest.requireActual<typeof Forever>('../../workflows/forever')

let pauses: number[]
/** The reports to the page: the class of a trouble, or that it is over. */
let shown: string[]
const PAGE = {
  trouble: (failure: Failure | undefined) => void shown.push(failure?.class ?? 'over'),
  retries: { pause: async (forMs: number) => void pauses.push(forMs) },
} as unknown as Forever.TroublePage

beforeEach(() => {
  isCancelled = false
  waits = []
  pauses = []
  shown = []
})

/** Work that fails this often before it is done. */
function failing(times: number): () => Promise<string> {
  let left = times
  return async () => {
    if (left-- > 0) throw ApplicationFailure.create({ type: 'transient', message: 'not yet' })
    return 'done'
  }
}

describe('a step that must happen', () => {
  it('shows nothing where it succeeds at once', async () => {
    expect(await forever(failing(0), PAGE)).toBe('done')
    expect([pauses, shown]).toEqual([[], []])
  })

  it('is tried again soon at first, then rarely, and shows its trouble until it is over', async () => {
    expect(await forever(failing(5), PAGE)).toBe('done')
    expect(pauses).toEqual([10_000, MINUTE_MS, 10 * MINUTE_MS, 10 * MINUTE_MS, 10 * MINUTE_MS])
    expect(shown).toEqual([...Array<string>(5).fill('transient'), 'over'])
  })

  it('is tried rarely after about a day, so that a year of trouble fits into a history', async () => {
    await forever(failing(2_000), PAGE)
    expect(pauses.reduce((sum, one) => sum + one, 0)).toBeGreaterThan(366 * DAY_MS)
    expect(pauses.slice(0, 150).reduce((sum, one) => sum + one, 0)).toBeGreaterThan(DAY_MS)
    expect(pauses.slice(149, 152)).toEqual([10 * MINUTE_MS, DAY_MS / 4, DAY_MS / 4])
    // Eleven events for each try, of 51,200 that the server keeps.
    const ofYear = pauses.findIndex((_, at) => pauses.slice(0, at).reduce((a, b) => a + b, 0) > 366 * DAY_MS)
    expect(ofYear * 11).toBeLessThan(51_200 / 2)
  })

  it('may continue in a fresh history before each pause', async () => {
    const page = { ...PAGE, continueFresh: () => Promise.reject(new Error('continued')) }
    await expect(forever(failing(1), page)).rejects.toThrow('continued')
    expect(pauses).toEqual([])
  })

  it('ends with its scope', async () => {
    isCancelled = true
    await expect(forever(failing(1), PAGE)).rejects.toThrow('not yet')
    expect(shown).toEqual([])
  })
})

describe('a wish to retry now', () => {
  it('that comes between two pauses ends the next one, and no other', async () => {
    const retries = new Retries()
    await retries.pause(1, { summary: 'before' })
    signal()
    signal()
    await retries.pause(2, { summary: 'asked for while no pause was on' })
    await retries.pause(3, { summary: 'after' })
    expect(waits).toEqual([1, 3])
  })
})

describe('a step with a local activity', () => {
  it('needs the ordinary one only where the local one failed', async () => {
    const ordinary = jest.fn(failing(1))
    expect(await localThenOrdinary({ local: failing(0), ordinary }, PAGE)).toBe('done')
    expect([ordinary.mock.calls.length, shown]).toEqual([0, []])
    expect(await localThenOrdinary({ local: failing(1), ordinary }, PAGE)).toBe('done')
    expect(ordinary).toHaveBeenCalledTimes(2)
    expect(shown.slice(0, 2)).toEqual(['transient', 'transient'])
    expect(shown.at(-1)).toBe('over')
  })

  it('is over where the ordinary one succeeds at once', async () => {
    await localThenOrdinary({ local: failing(1), ordinary: failing(0) }, PAGE)
    expect(shown).toEqual(['transient', 'over'])
  })
})
