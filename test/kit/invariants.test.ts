/** The judges themselves: each refuses what it is there to refuse. */
import { beforeEach, describe, expect, it } from '@jest/globals'
import type { LogLine } from '../../core/documents'
import { layout } from '../../storage/layout'
import { MemoryStore } from '../backends/scripted/memory-store'
import {
  classified,
  coveredMs,
  explained,
  overlaps,
  resumedFromNewest,
  sameWeights,
  wholeLog,
} from './invariants'

const JOB = 'job-1'
let store: MemoryStore

beforeEach(() => {
  store = new MemoryStore(Date.now)
})

describe('the judge of ends', () => {
  it('refuses a job and an attempt that failed for an unclassified reason', () => {
    const attempts = [
      { number: 1, state: 'interrupted', reason: 'interrupted: taken back' },
      { number: 2, state: 'failed', reason: 'unclassified: boom' },
    ]
    expect(classified({ state: 'succeeded', reason: 'completed' }, attempts)).toEqual([
      'attempt 2 failed (unclassified: boom)',
    ])
    expect(classified({ state: 'failed', reason: 'unclassified', message: 'boom' }, [])).toEqual([
      'the job failed (unclassified): boom',
    ])
    expect(classified({ state: 'failed', reason: 'workload-failed' }, attempts.slice(0, 1))).toEqual([])
    const atLaunch = 'unclassified: The machine never started (Client.InternalError: the launch has failed).'
    const job = { state: 'succeeded', reason: 'completed' }
    expect(classified(job, [{ number: 1, state: 'failed', reason: atLaunch }])).toEqual([])
  })
})

describe('the part of a span that others cover', () => {
  it('counts what several cover once, and nothing outside', () => {
    const span = { fromMs: 100, toMs: 200 }
    const by = [
      { fromMs: 150, toMs: 170 },
      { fromMs: 50, toMs: 120 },
      { fromMs: 110, toMs: 130 },
      { fromMs: 155, toMs: 160 },
      { fromMs: 195, toMs: 900 },
      { fromMs: 300, toMs: 400 },
    ]
    expect(coveredMs(span, by)).toBe(30 + 20 + 5)
    expect(coveredMs(span, [])).toBe(0)
  })
})

describe('the judge of restores', () => {
  const resume = (attempt: number, fromStep: number | null, savedStep = 0) => ({
    attempt,
    fromStep,
    savedStep,
  })

  it('refuses a restore of nothing, or of something older, where more was saved', () => {
    expect(resumedFromNewest([resume(1, 0, 20), resume(2, 0)])).toEqual([
      'attempt 2 began at 0 though 20 was saved',
    ])
    expect(resumedFromNewest([resume(1, 0, 20), resume(2, 20, 40), resume(3, 20)])).toEqual([
      'attempt 3 began at 20 though 40 was saved',
    ])
  })

  it('accepts the newest, and attempts whose workload never began', () => {
    expect(resumedFromNewest([resume(1, 0, 20), resume(2, null), resume(3, 20, 40), resume(4, 40)])).toEqual(
      [],
    )
  })
})

describe('the judge of logs', () => {
  const put = (from: number, lines: Partial<LogLine>[]): Promise<unknown> => {
    const digits = (n: number): string => String(n).padStart(12, '0')
    const numbered = lines.map((line, index) => ({ n: from + index, t: 1, s: 'out', m: 'line', ...line }))
    const key = `${layout.logs(JOB, 1)}${digits(from)}-${digits(numbered.at(-1)!.n)}.ndjson`
    return store.put(key, numbered.map((line) => `${JSON.stringify(line)}\n`).join(''))
  }
  const log = { jobId: JOB, attempt: 1 }

  it('refuses a gap of any size, unless its harness knows what may be lost', async () => {
    await put(1, [{}, {}])
    await put(1_000, [{}])
    expect(await wholeLog(store, log)).toEqual(['attempt 1: 997 lines lost after line 2'])
    const seen: number[] = []
    expect(await wholeLog(store, { ...log, mayHaveGaps: true }, ({ n }) => seen.push(n))).toEqual([])
    expect(seen).toEqual([1, 2, 999, 1_000])
  })

  it('refuses a gap that the runner itself has noted', async () => {
    await put(1, [{}])
    await put(2, [{ s: 'gap', m: '1 line lost', lost: 1 }, {}])
    expect(await wholeLog(store, log)).toEqual(['attempt 1: 1 line lost after line 1'])
  })

  it('accepts a whole log in several files', async () => {
    await put(1, [{}, {}])
    await put(3, [{}, {}, {}])
    expect(await wholeLog(store, log)).toEqual([])
  })
})

describe('the judge of machines', () => {
  it('refuses two attempts at work at once', () => {
    const one = { attempt: 1, fromMs: 0, toMs: 100 }
    expect(overlaps([{ attempt: 2, fromMs: 60, toMs: 200 }, one])).toEqual([
      'attempts 1 and 2 ran at once for 40 ms',
    ])
    expect(overlaps([one, { attempt: 2, fromMs: 100, toMs: 200 }])).toEqual([])
  })
})

describe('the judge of records', () => {
  it('refuses an attempt with a step that is not on record', () => {
    const records = (['planned', 'decided'] as const).map((kind) => ({ kind, attempt: 1 }))
    expect(explained(records, [{ number: 1 }])).toEqual([
      'attempt 1: nothing on record of how it was settled',
    ])
    expect(explained([...records, { kind: 'settled', attempt: 1 }], [{ number: 1 }])).toEqual([])
  })
})

describe('the judge of weights', () => {
  const job = { jobId: JOB, state: 'succeeded', artifact: 'weights.bin' }

  it('refuses a success that left none, or others', async () => {
    const expected = Buffer.from('weights')
    expect(await sameWeights(store, job, expected)).toEqual(['the job succeeded and left no weights'])
    expect(await sameWeights(store, { ...job, state: 'failed' }, expected)).toEqual([])
  })
})
