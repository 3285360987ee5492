import { describe, expect, it } from '@jest/globals'
import type { DecideInput } from '../../core/activities'
import { EMPTY_LEDGER, type Ledger, type Policy } from '../../core/job/ledger'
import type { RecordEntryOf } from '../../core/job/record'
import { decide } from '../../planner/policy/decide'
import { explainVerdict } from '../../planner/why/why'
import { without } from './recorded'
import { NOW_MS } from './wishes'

describe('an explained decision after an attempt', () => {
  const explain = (
    end: DecideInput['end'],
    { ledger, policy }: { ledger?: Partial<Ledger>; policy?: Partial<Policy> } = {},
  ) => explainVerdict(7, entryOf(end, { ledger, policy }))
  const entryOf = (
    end: DecideInput['end'],
    { ledger, policy }: { ledger?: Partial<Ledger> | undefined; policy?: Partial<Policy> | undefined } = {},
  ): RecordEntryOf<'decided'> => {
    const facts = {
      end,
      drainReason: null,
      ledger: { ...EMPTY_LEDGER, ...ledger },
      offerKeys: ['here/spot/p4/a'],
      policy: { failuresMax: 3, interruptionsMax: 3, unclassifiedMax: 3, ...policy },
    }
    return {
      seq: 5,
      atMs: NOW_MS,
      kind: 'decided',
      attempt: 2,
      summary: 'decided',
      data: { facts, verdict: decide(facts), rules: 'r' },
    }
  }
  const failed = { class: 'workload' as const, message: 'exit code 1' }
  const FAILED: DecideInput['end'] = { kind: 'failed', isLaunched: true, failure: failed }
  const LOST: DecideInput['end'] = {
    kind: 'failed',
    isLaunched: true,
    failure: { class: 'interrupted', message: 'taken back' },
  }

  it('has the state in which the job ends, and no other possibility after a success', () => {
    const explained = explain({ kind: 'succeeded' })
    expect(explained).toMatchObject({
      kind: 'after-attempt',
      number: 7,
      seq: 5,
      attempt: 2,
      outcome: 'finish',
      rules: 'r',
      replay: 'same',
      missing: [],
      otherwise: [],
    })
    expect(explained.text).toMatch(/^The job ends as succeeded \(/)
  })

  it('names the allowance with which the job would have ended', () => {
    const { text, otherwise } = explain(FAILED)
    expect(text).toMatch(/^The job continues/)
    expect(otherwise).toEqual(['With retries.failures: 0 the job would have ended here.'])
    expect(explain(FAILED, { ledger: { failures: 1, interruptions: 2 } }).otherwise).toEqual([
      'With retries.failures: 1 the job would have ended here.',
    ])
    expect(explain(LOST, { ledger: { failures: 1, interruptions: 2 } }).otherwise).toEqual([
      'With retries.interruptions: 2 the job would have ended here.',
    ])
  })

  it('names the allowance with which the job would have continued', () => {
    expect(explain(FAILED, { policy: { failuresMax: 0 } })).toMatchObject({
      outcome: 'finish',
      otherwise: ['With retries.failures: 1 the job would have continued.'],
    })
    const spent = { ledger: { interruptions: 3 }, policy: { interruptionsMax: 3 } }
    expect(explain(LOST, spent).otherwise).toEqual([
      'With retries.interruptions: 4 the job would have continued.',
    ])
  })

  it('says how long the job pauses, if it does', () => {
    const withPause = (afterMs: number): string => {
      const entry = entryOf(FAILED)
      const { verdict } = entry.data
      const decision = { ...verdict.decision, afterMs } as typeof verdict.decision
      const data = { ...entry.data, verdict: { ...verdict, decision } }
      return explainVerdict(1, { ...entry, data }).text
    }
    expect(withPause(90_000)).toMatch(/^The job continues, after 1m 30s \(/)
    expect(withPause(1_500)).toMatch(/^The job continues, after 1\.5s \(/)
    expect(withPause(0)).toMatch(/^The job continues \(/)
  })

  it('offers no other possibility if other rules made it, or if its inputs are gone', () => {
    const entry = entryOf(FAILED)
    const { verdict, facts } = entry.data
    const other = { ...verdict, decision: { ...verdict.decision, message: 'another one' } }
    const different = { ...entry, data: { ...entry.data, verdict: other } }
    expect(explainVerdict(1, different)).toMatchObject({
      replay: 'different',
      otherwise: [],
      missing: [expect.stringMatching(/^Another version's rules decided this/)],
    })
    const gone = {
      replay: 'impossible',
      otherwise: [],
      missing: ['The inputs of this decision are not on record, so it cannot be replayed.'],
    }
    for (const some of [undefined, without(facts, 'policy'), without(facts, 'ledger')]) {
      const old = { ...without(entry, 'attempt'), data: { facts: some, verdict } }
      expect(explainVerdict(1, old as unknown as typeof entry)).toMatchObject({
        ...gone,
        attempt: null,
        rules: null,
      })
    }
  })
})
