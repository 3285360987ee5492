import { describe, expect, it } from '@jest/globals'
import { EMPTY_LEDGER, type AttemptEnd } from '../../core/job/ledger'
import { microUsd } from '../../core/money/money'
import { decide } from '../../planner/policy/decide'

type Facts = Parameters<typeof decide>[0]

const decided = (end: AttemptEnd, changes: Partial<Facts> = {}) =>
  decide({
    end,
    drainReason: null,
    ledger: EMPTY_LEDGER,
    offerKeys: ['here/spot/x/a'],
    policy: { failuresMax: 1, interruptionsMax: 1, unclassifiedMax: 3 },
    ...changes,
  })
const failed = (failureClass: 'transient' | 'unreachable'): AttemptEnd => ({
  kind: 'failed',
  isLaunched: true,
  failure: { class: failureClass, message: 'It failed.' },
})

describe('the verdict on an attempt', () => {
  it.each([
    ['cancelled', 'cancelled', 'cancelled'],
    ['deadline', 'failed', 'deadline-reached'],
  ] as const)('that the runner stopped as %s is %s, with the reason %s', (by, state, reason) => {
    expect(decided({ kind: 'stopped', by }).decision).toMatchObject({ kind: 'finish', state, reason })
  })

  it('that used little of its budget names what it used, and of how much', () => {
    const budget = {
      leftMicroUsd: microUsd(9.9),
      costMicroUsd: microUsd(0.1),
      priceMaxMicroUsdPerHour: microUsd(1),
    }
    expect(decided({ kind: 'stopped', by: 'budget' }, { budget }).decision).toMatchObject({
      message:
        'The machine stopped at $0.10 of its $10.00 budget, which suggests clock skew. Run `crucible doctor`.',
    })
  })

  it('whose machine was unreachable avoids its place, and none if it had no machine', () => {
    const machine = { offerKey: 'here/spot/x/a', placeKey: 'here/*/*/a' }
    const avoided = (changes: Partial<Facts>) => decided(failed('unreachable'), changes).decision
    expect(avoided({})).toMatchObject({ kind: 'again', avoid: [] })
    expect(avoided({ machine })).toMatchObject({ avoid: [{ offerKey: 'here/*/*/a' }] })
  })

  it('whose paid machine waited in vain is the last one after as many as are allowed', () => {
    const after = (unclassified: number) =>
      decided(failed('transient'), { ledger: { ...EMPTY_LEDGER, unclassified } }).decision
    expect(after(2)).toMatchObject({ kind: 'again', reason: 'unreachable', afterMs: 8_000 })
    expect(after(3)).toMatchObject({ kind: 'finish', state: 'failed', reason: 'unreachable' })
  })

  it('that reached an end without a known offer counts as a run limit, not as the end of a reservation', () => {
    const reasonOf = (offerKeys: string[]) =>
      decided({ kind: 'stopped', by: 'expired' }, { offerKeys }).decision.reason
    expect([[], ['here/spot/x/a'], ['here/reserved/x/a/r-1']].map(reasonOf)).toEqual([
      'run-limit-reached',
      'run-limit-reached',
      'reservation-ended',
    ])
  })
})
