import { describe, expect, it } from '@jest/globals'
import { judgeLife, type LifeFacts } from './judge'
import type { Note } from './notes'
import type { Struck } from './strikes'

type Said = Note extends infer N ? (N extends Note ? Omit<N, 'attempt' | 'pid'> : never) : never

/** The notes of one attempt. */
const attempt = (number: number, ...said: Said[]): Note[] =>
  said.map((each) => ({ ...each, attempt: number, pid: number }))
const started = (atMs: number): Said => ({ event: 'started', atMs })
const fresh = (atMs: number): Said => ({ event: 'fresh', atMs })
const step = (atMs: number): Said => ({ event: 'step', step: 1, atMs })
const resumed = (atMs: number, step: number, state = `state ${step}`): Said => ({
  event: 'resumed',
  step,
  state,
  atMs,
})
const save = (atMs: number, step: number): Said[] => [
  { event: 'saving', step, state: `state ${step}`, atMs: atMs - 100 },
  { event: 'saved', step, state: `state ${step}`, files: ['a'], atMs },
]
const struck = (attempt: number, atMs: number, over: Partial<Struck> = {}): Struck => ({
  attempt,
  manner: 'kill',
  atMs,
  untilMs: atMs,
  settleMs: 2_000,
  ...over,
})
const kinds = (facts: LifeFacts): string[] => judgeLife(facts).breaches.map(({ kind }) => kind)

/** Saves 10 and 20 are complete when its machine is lost at 9 s; 30 came too late to count. */
const FIRST = attempt(1, started(0), fresh(0), ...save(2_000, 10), ...save(5_000, 20), ...save(8_000, 30))
const KILL = struck(1, 9_000)

describe('the judge of habits', () => {
  it('is content with the newest complete checkpoint, with the one before, and with one that came just in time', () => {
    for (const from of [10, 20, 30])
      expect(
        kinds({ notes: [...FIRST, ...attempt(2, started(10_000), resumed(10_100, from))], struck: [KILL] }),
      ).toEqual([])
  })

  it('finds a mixture of two saves', () => {
    const notes = [...FIRST, ...attempt(2, started(10_000), resumed(10_100, 20, 'state of both'))]
    expect(kinds({ notes, struck: [KILL] })).toEqual(['torn'])
  })

  it('finds a beginning from scratch, but not where nothing was complete', () => {
    const notes = [...FIRST, ...attempt(2, started(10_000), fresh(10_100))]
    expect(kinds({ notes, struck: [KILL] })).toEqual(['scratch'])
    expect(kinds({ notes, struck: [struck(1, 3_000)] })).toEqual([])
  })

  it('finds a resume that passes over two complete checkpoints', () => {
    const first = attempt(1, started(0), fresh(0), ...save(1_000, 10), ...save(2_000, 20), ...save(3_000, 30))
    const notes = [...first, ...attempt(2, started(10_000), resumed(10_100, 10))]
    expect(judgeLife({ notes, struck: [KILL] })).toMatchObject({
      breaches: [{ kind: 'lost' }],
      savesLostMax: 2,
    })
  })

  it('counts what was complete before a start that failed and had been given a torn checkpoint', () => {
    const notes = [...FIRST, ...attempt(2, started(10_000)), ...attempt(2, started(11_000), fresh(11_100))]
    expect(kinds({ notes, struck: [KILL] })).toEqual(['scratch'])
    const good = [
      ...FIRST,
      ...attempt(2, started(10_000)),
      ...attempt(2, started(11_000), resumed(11_100, 20)),
    ]
    expect(kinds({ notes: good, struck: [KILL] })).toEqual([])
  })

  it('does not count what was lost once before as lost again', () => {
    const second = attempt(2, started(10_000), resumed(10_100, 10), step(10_200))
    const notes = [...FIRST, ...second, ...attempt(3, started(20_000), resumed(20_100, 10))]
    expect(judgeLife({ notes, struck: [KILL, struck(2, 11_000)] })).toEqual({
      breaches: [],
      savesLostMax: 1,
      resumes: 2,
    })
  })

  it('finds a job that failed for good', () => {
    expect(kinds({ notes: FIRST, struck: [KILL], failure: { attempt: 2, words: 'exit code 1' } })).toEqual([
      'failed',
    ])
  })

  it('finds a program that was ended although its next save was due in its window', () => {
    const notice = (windowMs: number): Struck =>
      struck(1, 9_000, { manner: 'notice', untilMs: 9_000 + windowMs })
    // Every 3 s, a quarter more allowed for: due at 11.75 s.
    expect(kinds({ notes: FIRST, struck: [notice(8_000)] })).toEqual(['window'])
    expect(kinds({ notes: FIRST, struck: [notice(4_000)] })).toEqual([])
    // At 17 s the machine is gone: a save that was over at 11.75 s has 5.25 s left to arrive.
    expect(kinds({ notes: FIRST, struck: [{ ...notice(8_000), settleMs: 5_200 }] })).toEqual(['window'])
    expect(kinds({ notes: FIRST, struck: [{ ...notice(8_000), settleMs: 5_300 }] })).toEqual([])
    const irregular = [...FIRST, ...attempt(1, ...save(8_250, 40))]
    expect(kinds({ notes: irregular, struck: [notice(8_000)] })).toEqual([])
    const saves = [...FIRST, ...attempt(1, ...save(11_500, 40))]
    expect(kinds({ notes: saves, struck: [notice(8_000)] })).toEqual([])
  })

  it('asks nothing of the saves of a program that are not looked for', () => {
    const notes = [...FIRST, ...attempt(2, started(10_000), fresh(10_100))]
    expect(kinds({ notes, struck: [KILL], isSavedElsewhere: true })).toEqual([])
  })
})
