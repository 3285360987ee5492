import { describe, expect, it } from '@jest/globals'
import { recoveriesOf } from '../../../client/job/recovery'
import type { AttemptTimes, Settlement } from '../../../core/activities'
import type { Phase, RunnerPhase } from '../../../core/documents'
import type { AttemptEnd } from '../../../core/job/ledger'
import type { RecordEntry, RecordKind } from '../../../core/job/record'
import { beatOf, machineOf } from '../world'
import { partialEntry } from '../../support/record'

let seq = 0
const entry = (kind: RecordKind, attempt: number, data: unknown): RecordEntry =>
  partialEntry({ seq: seq++, atMs: 0, kind, attempt, summary: '', data }) as RecordEntry
const decided = (attempt: number, kind: 'again' | 'finish'): RecordEntry =>
  entry('decided', attempt, { verdict: { decision: { kind } } })

/** Stages that begin at these instants; the last one lasts 10 ms. */
function phases(starts: Partial<Record<RunnerPhase, number>>): Phase[] {
  const begun = Object.entries(starts) as [RunnerPhase, number][]
  return begun.map(([name, startedAtMs], index) => ({
    name,
    startedAtMs,
    durationMs: (begun[index + 1]?.[1] ?? startedAtMs + 10) - startedAtMs,
  }))
}

const NEVER: AttemptTimes = {
  firstStepAtMs: null,
  noNoticeAtMs: null,
  lastBeatAtMs: null,
  finishedAtMs: null,
  drain: null,
}
const INTERRUPTED: AttemptEnd = {
  kind: 'failed',
  isLaunched: true,
  failure: { class: 'interrupted', message: 'x' },
}

function settled(attempt: number, settlement: Partial<Settlement>): RecordEntry {
  const handle = { ...machineOf(attempt), launchedAtMs: attempt * 10_000 }
  const whole: Settlement = { end: INTERRUPTED, handle, costMicroUsd: 0, artifacts: [], phases: [] }
  return entry('settled', attempt, { ...whole, ...settlement })
}

/** Worked from 2 s after its launch on, with its first step half a second later. */
const next = settled(2, {
  end: { kind: 'succeeded' },
  phases: phases({ starting: 21_000, restoring: 21_400, running: 22_000, finishing: 29_000 }),
  times: { ...NEVER, firstStepAtMs: 22_500 },
})

describe('a recovery', () => {
  it('after a notice begins with the last look that found none, and its parts make up the whole', () => {
    const first = settled(1, {
      phases: phases({ starting: 11_000, running: 12_000, draining: 15_000, finishing: 15_800 }),
      times: { ...NEVER, noNoticeAtMs: 14_300, finishedAtMs: 16_000, lastBeatAtMs: 15_900 },
      stepsLost: 1,
    })
    expect(recoveriesOf([first, decided(1, 'again'), next, decided(2, 'finish')], undefined)).toEqual([
      {
        from: 1,
        to: 2,
        cause: 'interrupted',
        stepsLost: 1,
        detectMs: 700,
        drainMs: 1_000,
        acquireMs: 4_000,
        bootMs: 1_000,
        restoreMs: 1_000,
        firstStepMs: 500,
        totalMs: 8_200,
        overheadMs: 7_200,
      },
    ])
  })

  it('after a silent loss begins with the last beat; there was no drain', () => {
    const first = settled(1, {
      phases: phases({ starting: 11_000, running: 12_000 }),
      times: { ...NEVER, lastBeatAtMs: 15_000, drain: { reason: 'superseded', atMs: 18_000 } },
    })
    expect(recoveriesOf([first, decided(1, 'again'), next], undefined)).toMatchObject([
      { detectMs: 3_000, drainMs: 0, acquireMs: 2_000, totalMs: 7_500 },
    ])
  })

  it("after an owner's order begins with the order", () => {
    const first = settled(1, {
      end: { kind: 'stopped', by: 'migrated' },
      phases: phases({ starting: 11_000, running: 12_000, draining: 15_000, finishing: 15_800 }),
      times: {
        ...NEVER,
        noNoticeAtMs: 14_900,
        finishedAtMs: 16_000,
        drain: { reason: 'migrated', atMs: 12_500 },
      },
    })
    expect(recoveriesOf([first, decided(1, 'again'), next], undefined)).toMatchObject([
      { cause: 'migrated', detectMs: 2_500, drainMs: 1_000 },
    ])
  })

  it('after a program that failed has nothing to detect', () => {
    const first = settled(1, {
      end: { kind: 'failed', isLaunched: true, failure: { class: 'workload', message: 'x' } },
      phases: phases({ running: 12_000, finishing: 15_800 }),
      times: { ...NEVER, finishedAtMs: 16_000, drain: { reason: 'superseded', atMs: 17_000 } },
    })
    expect(recoveriesOf([first, decided(1, 'again'), next], undefined)).toMatchObject([
      { cause: 'workload', detectMs: 0, drainMs: 200 },
    ])
  })

  it('goes over attempts that never worked, which are nothing to recover from themselves', () => {
    const first = settled(1, {
      phases: phases({ running: 12_000 }),
      times: { ...NEVER, lastBeatAtMs: 15_000, drain: { reason: 'superseded', atMs: 16_000 } },
    })
    const refused = { ...settled(2, { handle: null }), attempt: 2 }
    const third = { ...next, attempt: 3 }
    const entries = [first, decided(1, 'again'), refused, decided(2, 'again'), third]
    expect(recoveriesOf(entries, undefined)).toMatchObject([{ from: 1, to: 3, acquireMs: 4_000 }])
  })

  it('shows as much as is known while it lasts, from the documents of the attempt that is on its way', () => {
    const first = settled(1, {
      phases: phases({ running: 12_000 }),
      times: { ...NEVER, lastBeatAtMs: 15_000, drain: { reason: 'superseded', atMs: 16_000 } },
    })
    const entries = [first, decided(1, 'again')]
    expect(recoveriesOf(entries, undefined)).toMatchObject([
      { from: 1, to: null, detectMs: 1_000, acquireMs: null, totalMs: null, overheadMs: null },
    ])
    const machine = { ...machineOf(2), launchedAtMs: 20_000 }
    const beat = { ...beatOf(2), phases: phases({ starting: 21_000 }), firstStepAtMs: null }
    expect(recoveriesOf(entries, { attempt: 2, machine, beat })).toMatchObject([
      { to: 2, acquireMs: 4_000, bootMs: 1_000, restoreMs: null, firstStepMs: null, totalMs: null },
    ])
  })

  it('is unknown part by part where a runner wrote nothing down, or clocks disagree', () => {
    const old = settled(1, { phases: phases({ running: 12_000, draining: 15_000 }) })
    const unknown = { detectMs: null, drainMs: null, acquireMs: null, totalMs: null }
    expect(recoveriesOf([old, decided(1, 'again'), next], undefined)).toMatchObject([
      { ...unknown, bootMs: 1_000 },
    ])
    const ahead = settled(1, {
      phases: phases({ running: 12_000 }),
      times: { ...NEVER, lastBeatAtMs: 99_000, drain: { reason: 'superseded', atMs: 16_000 } },
    })
    expect(recoveriesOf([ahead, decided(1, 'again'), next], undefined)).toMatchObject([
      { ...unknown, drainMs: 0, acquireMs: 4_000 },
    ])
  })

  it('is absent if the job ended instead', () => {
    expect(
      recoveriesOf([settled(1, { phases: phases({ running: 1 }) }), decided(1, 'finish')], undefined),
    ).toEqual([])
  })
})
