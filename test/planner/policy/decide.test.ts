import { describe, expect, it } from '@jest/globals'
import { DRAIN_REASONS, JOB_DRAIN_REASONS, type JobDrainReason } from '../../../core/job/drain'
import { FAILURE_CLASSES, type FailureClass } from '../../../core/failure'
import {
  EMPTY_LEDGER,
  type AttemptEnd,
  type Decision,
  type Ledger,
  type Policy,
} from '../../../core/job/ledger'
import {
  AVOID_CAPACITY_MS,
  AVOID_ENDED_MS,
  AVOID_QUOTA_MS,
  AVOID_UNREACHABLE_MS,
  SHAKY_MS,
} from '../../../planner/plan/avoidance'
import { decide } from '../../../planner/policy/decide'
import { MINUTE_MS } from '../../../core/time/time'

const ENDS: AttemptEnd[] = [
  { kind: 'succeeded' },
  ...[...DRAIN_REASONS, 'lease' as const].map((by): AttemptEnd => ({ kind: 'stopped', by })),
  ...FAILURE_CLASSES.flatMap((failureClass) =>
    [true, false].map((isLaunched): AttemptEnd => failed(failureClass, isLaunched)),
  ),
]
const REQUESTED: (JobDrainReason | null)[] = [null, ...JOB_DRAIN_REASONS]
const COUNTS = [0, 1, 2, 3, 100]
const LEDGERS: Ledger[] = COUNTS.flatMap((failures) =>
  COUNTS.flatMap((interruptions) =>
    COUNTS.map((unclassified) => ({
      ...EMPTY_LEDGER,
      attempts: failures + interruptions + unclassified,
      failures,
      interruptions,
      unclassified,
      misses: unclassified,
    })),
  ),
)
const POLICIES: Policy[] = [0, 1, 3].flatMap((failuresMax) =>
  [0, 1, 3, 100].map((interruptionsMax) => ({ failuresMax, interruptionsMax, unclassifiedMax: 3 })),
)

function failed(failureClass: FailureClass, isLaunched = true): AttemptEnd {
  return { kind: 'failed', isLaunched, failure: { class: failureClass, message: `it was ${failureClass}` } }
}

/** Every combination there is, with what `decide` makes of it. */
const ALL: Case[] = ENDS.flatMap((end) =>
  REQUESTED.flatMap((drainReason) =>
    LEDGERS.flatMap((before) =>
      POLICIES.map((policy) => {
        const { ledger, decision } = decide({
          end,
          drainReason,
          ledger: before,
          policy,
          offerKeys: ['local/spot/x/y'],
        })
        return { end, drainReason, policy, before, after: ledger, decision }
      }),
    ),
  ),
)

interface Case {
  end: AttemptEnd
  drainReason: JobDrainReason | null
  policy: Policy
  before: Ledger
  after: Ledger
  decision: Decision
}

/** The first few cases for which a law does not hold; an assertion for each of the 150,000 would drown them. */
function everyVerdict(law: (each: Case) => boolean): Case[] {
  return ALL.filter((each) => !law(each)).slice(0, 3)
}

describe('decide, over every end, request, ledger and policy', () => {
  it('looks at a full cross product', () => {
    expect(ALL).toHaveLength(ENDS.length * REQUESTED.length * LEDGERS.length * POLICIES.length)
    expect(ALL.length).toBeGreaterThan(100_000)
  })

  it('counts each attempt once and takes no allowance back', () => {
    const wrong = everyVerdict(({ before, after }) => {
      const isCounted = after.attempts === before.attempts + 1
      return isCounted && after.failures >= before.failures && after.interruptions >= before.interruptions
    })
    expect(wrong).toEqual([])
  })

  it('never ends a job that succeeded as anything else', () => {
    const wrong = everyVerdict(({ end, decision }) => {
      if (end.kind !== 'succeeded') return true
      return decision.kind === 'finish' && decision.state === 'succeeded'
    })
    expect(wrong).toEqual([])
  })

  it('says "succeeded" of nothing else', () => {
    const wrong = everyVerdict(
      ({ end, decision }) =>
        end.kind === 'succeeded' || decision.kind !== 'finish' || decision.state !== 'succeeded',
    )
    expect(wrong).toEqual([])
  })

  it('finishes whatever is to be cancelled, past its deadline or out of money, and as that', () => {
    const wrong = everyVerdict(({ end, drainReason, decision }) => {
      if (end.kind === 'succeeded' || drainReason === null || drainReason === 'migrated') return true
      if (decision.kind !== 'finish') return false
      return decision.state === (drainReason === 'cancelled' ? 'cancelled' : 'failed')
    })
    expect(wrong).toEqual([])
  })

  it('cancels only what was to be cancelled', () => {
    const wrong = everyVerdict(({ end, drainReason, decision }) => {
      const isAsked = drainReason === 'cancelled' || (end.kind === 'stopped' && end.by === 'cancelled')
      return isAsked || decision.kind !== 'finish' || decision.state !== 'cancelled'
    })
    expect(wrong).toEqual([])
  })

  it.each([
    ['workload', 'failures', 'failuresMax'],
    ['interrupted', 'interruptions', 'interruptionsMax'],
    ['unclassified', 'unclassified', 'unclassifiedMax'],
  ] as const)(
    'spends one of the allowance on %s and stops exactly when it is used up',
    (failureClass, count, max) => {
      const wrong = everyVerdict(({ end, drainReason, before, after, policy, decision }) => {
        if (end.kind !== 'failed' || end.failure.class !== failureClass) return true
        if (drainReason !== null && drainReason !== 'migrated') return true
        const isUsedUp = before[count] + 1 > policy[max]
        return after[count] === before[count] + 1 && (decision.kind === 'finish') === isUsedUp
      })
      expect(wrong).toEqual([])
    },
  )

  it.each(['throttled', 'transient', 'capacity', 'quota', 'expired'] as const)(
    'spends no allowance on %s',
    (failureClass) => {
      const wrong = everyVerdict(({ end, drainReason, before, after, decision }) => {
        if (end.kind !== 'failed' || end.failure.class !== failureClass) return true
        if (drainReason !== null && drainReason !== 'migrated') return true
        const isSpent = after.failures !== before.failures || after.interruptions !== before.interruptions
        // A machine that waited in vain is paid for: there is an end to that.
        const isPaid = failureClass === 'transient' && end.isLaunched
        return !isSpent && (isPaid || decision.kind === 'again')
      })
      expect(wrong).toEqual([])
    },
  )

  it.each(['auth', 'invalid'] as const)('stops at once for %s', (failureClass) => {
    const wrong = everyVerdict(({ end, drainReason, decision }) => {
      if (end.kind !== 'failed' || end.failure.class !== failureClass) return true
      if (drainReason !== null && drainReason !== 'migrated') return true
      return decision.kind === 'finish' && decision.state === 'failed' && decision.reason === failureClass
    })
    expect(wrong).toEqual([])
  })

  it('never waits longer than its longest pause, and never less than nothing', () => {
    const wrong = everyVerdict(
      ({ decision }) =>
        decision.kind === 'finish' || (decision.afterMs >= 0 && decision.afterMs <= 5 * MINUTE_MS),
    )
    expect(wrong).toEqual([])
  })
})

describe('decide, word by word', () => {
  const policy: Policy = { failuresMax: 2, interruptionsMax: 5, unclassifiedMax: 3 }
  const offerKey = 'local/spot/process/here'
  const after = (end: AttemptEnd, ledger: Ledger = EMPTY_LEDGER, drainReason: JobDrainReason | null = null) =>
    decide({ end, drainReason, ledger, policy, offerKeys: [offerKey] }).decision

  it('leaves an offer without a machine alone for a few minutes, one without quota for an hour', () => {
    expect(after(failed('capacity', false))).toMatchObject({
      avoid: [{ offerKey, why: 'capacity', forMs: AVOID_CAPACITY_MS }],
    })
    expect(after(failed('quota', false))).toMatchObject({
      avoid: [{ offerKey, why: 'quota', forMs: AVOID_QUOTA_MS }],
    })
  })

  it('leaves every offer of a refused order alone, and of one that came to a machine only that one', () => {
    const offerKeys = ['cloud/spot/v100/a', 'cloud/spot/v100/b']
    const machine = { offerKey: 'cloud/spot/v100/b', placeKey: 'cloud/*/*/b' }
    const facts = { drainReason: null, ledger: EMPTY_LEDGER, policy, offerKeys }
    const refused = decide({ ...facts, end: failed('capacity', false) })
    expect(refused.decision).toMatchObject({
      avoid: offerKeys.map((key) => ({ offerKey: key, why: 'capacity' })),
    })
    const late = decide({ ...facts, machine, end: failed('capacity') })
    expect(late.decision).toMatchObject({ avoid: [{ offerKey: machine.offerKey, why: 'capacity' }] })
  })

  it('tries once more in another place when a machine is unreachable, and then says so', () => {
    const machine = { offerKey: 'cloud/spot/v100/a', placeKey: 'cloud/*/*/a' }
    const unreachable: AttemptEnd = {
      kind: 'failed',
      isLaunched: true,
      failure: { class: 'unreachable', message: 'The agent never came.', hint: 'The subnet has no way out.' },
    }
    const facts = { drainReason: null, policy, machine, offerKeys: [machine.offerKey] }
    const first = decide({ ...facts, end: unreachable, ledger: EMPTY_LEDGER })
    expect(first.decision).toMatchObject({
      kind: 'again',
      reason: 'unreachable',
      avoid: [{ offerKey: machine.placeKey, why: 'preference', forMs: AVOID_UNREACHABLE_MS }],
    })
    expect(decide({ ...facts, end: unreachable, ledger: first.ledger }).decision).toEqual({
      kind: 'finish',
      state: 'failed',
      reason: 'unreachable',
      message: 'The agent never came. The subnet has no way out.',
    })
    const reached = decide({ ...facts, end: failed('interrupted'), ledger: first.ledger })
    expect(decide({ ...facts, end: unreachable, ledger: reached.ledger }).decision.kind).toBe('again')
    const refused = decide({ ...facts, end: failed('capacity', false), ledger: first.ledger })
    expect(decide({ ...facts, end: unreachable, ledger: refused.ledger }).decision.kind).toBe('finish')
  })

  it('tries a few times in a row when a machine waited in vain, and as late as requested', () => {
    const vain: AttemptEnd = {
      kind: 'failed',
      isLaunched: true,
      failure: { class: 'transient', message: 'The registry is away.', retryAfterMs: 9_000 },
    }
    const facts = { drainReason: null, policy, offerKeys: [offerKey], end: vain }
    const first = decide({ ...facts, ledger: EMPTY_LEDGER })
    expect(first).toMatchObject({
      decision: { kind: 'again', reason: 'unreachable', afterMs: 9_000 },
      ledger: { unclassified: 1 },
    })
    expect(decide({ ...facts, ledger: { ...first.ledger, unclassified: 3 } }).decision).toMatchObject({
      kind: 'finish',
      reason: 'unreachable',
      message: 'The registry is away.',
    })
    expect(decide({ ...facts, end: failed('interrupted'), ledger: first.ledger }).ledger.unclassified).toBe(0)
  })

  it('keeps away, when it can, from where a migration came', () => {
    expect(after({ kind: 'stopped', by: 'migrated' }, EMPTY_LEDGER, 'migrated')).toMatchObject({
      kind: 'again',
      reason: 'migrating',
      avoid: [{ offerKey, why: 'preference' }],
    })
  })

  it('waits longer each time a workload fails, and as long as a provider asks', () => {
    const pauses = [0, 1].map((failures) => after(failed('workload'), { ...EMPTY_LEDGER, failures }))
    expect(pauses).toMatchObject([{ afterMs: 2_000 }, { afterMs: 4_000 }])
    const throttled: AttemptEnd = {
      kind: 'failed',
      isLaunched: false,
      failure: { class: 'throttled', message: 'slow down', retryAfterMs: 7_000 },
    }
    expect(after(throttled)).toMatchObject({ afterMs: 7_000 })
  })

  it('waits longer than a provider asks where the launch has failed so many times', () => {
    const end: AttemptEnd = {
      kind: 'failed',
      isLaunched: false,
      failure: { class: 'transient', message: 'not yet', retryAfterMs: 10_000 },
    }
    expect(after(end, { ...EMPTY_LEDGER, misses: 4 })).toMatchObject({ afterMs: 32_000 })
  })

  it('counts launches without a machine, in a row', () => {
    const missed = (end: AttemptEnd) =>
      decide({
        end,
        drainReason: null,
        ledger: { ...EMPTY_LEDGER, misses: 4 },
        policy,
        offerKeys: [offerKey],
      }).ledger.misses
    expect([failed('capacity', false), failed('unclassified', false)].map(missed)).toEqual([5, 5])
    expect([failed('transient'), failed('workload'), failed('interrupted')].map(missed)).toEqual([0, 0, 0])
    expect(missed({ kind: 'stopped', by: 'lease' })).toBe(0)
  })

  it('counts failures without a class in a row, and a machine that waited in vain among them', () => {
    const before = { ...EMPTY_LEDGER, unclassified: 2 }
    const counted = (end: AttemptEnd) =>
      decide({ end, drainReason: null, ledger: before, policy, offerKeys: [offerKey] }).ledger.unclassified
    expect([failed('unclassified'), failed('unclassified', false), failed('transient')].map(counted)).toEqual(
      [3, 3, 3],
    )
    expect([failed('transient', false), failed('workload'), failed('capacity', false)].map(counted)).toEqual([
      0, 0, 0,
    ])
  })

  it('pauses before a retry of the same: 2 s, 4 s, and so on, up to five minutes', () => {
    const pauses = [0, 1, 2, 7, 8, 50].map((misses) =>
      after(failed('throttled', false), { ...EMPTY_LEDGER, misses }),
    )
    expect(pauses).toMatchObject(
      [2, 4, 8, 256, 300, 300].map((seconds) => ({ afterMs: seconds * 1_000, avoid: [] })),
    )
    expect(after(failed('unclassified'), { ...EMPTY_LEDGER, unclassified: 1 })).toMatchObject({
      reason: 'machine-lost',
      afterMs: 4_000,
    })
  })

  it('leaves an offer alone for as long as its provider says', () => {
    const end: AttemptEnd = {
      kind: 'failed',
      isLaunched: false,
      failure: { class: 'capacity', message: 'no capacity', retryAfterMs: 9_000 },
    }
    expect(after(end)).toMatchObject({ avoid: [{ offerKey, why: 'capacity', forMs: 9_000 }] })
  })

  it('resumes at once after an interruption, a lapsed lease, and an attempt ended by hand', () => {
    expect(after(failed('interrupted'))).toMatchObject({
      kind: 'again',
      reason: 'interrupted',
      afterMs: 0,
    })
    expect(after({ kind: 'stopped', by: 'lease' })).toMatchObject({
      kind: 'again',
      reason: 'lease-lapsed',
      afterMs: 0,
      avoid: [],
    })
    expect(after({ kind: 'stopped', by: 'superseded' })).toMatchObject({
      kind: 'again',
      reason: 'attempt-ended-by-hand',
    })
  })

  it('leaves a reservation that has ended alone for an hour, and continues elsewhere at once', () => {
    const reserved = 'ec2/reserved/p5.48xlarge/a/cr-1'
    const facts = { drainReason: null, ledger: EMPTY_LEDGER, policy, offerKeys: [reserved] }
    const elsewhere = {
      kind: 'again',
      afterMs: 0,
      avoid: [{ offerKey: reserved, why: 'capacity', forMs: AVOID_ENDED_MS }],
    }
    expect(decide({ ...facts, end: failed('expired', false) }).decision).toMatchObject({
      ...elsewhere,
      reason: 'launch-refused',
    })
    const ended: AttemptEnd = { kind: 'stopped', by: 'expired' }
    expect(decide({ ...facts, end: ended }).decision).toMatchObject({
      ...elsewhere,
      reason: 'reservation-ended',
    })
    const { ledger } = decide({ ...facts, end: ended })
    expect(ledger).toMatchObject({ interruptions: 0, failures: 0, misses: 0 })
    expect(after(ended, EMPTY_LEDGER, 'cancelled')).toMatchObject({ kind: 'finish', state: 'cancelled' })
  })

  it('continues at once after the longest run that a provider allows, on the same offer, and not for ever', () => {
    const ended: AttemptEnd = { kind: 'stopped', by: 'expired' }
    const facts = { end: ended, drainReason: null, offerKeys: ['modal/on-demand/h100/'] }
    const allowed: Policy = { failuresMax: 0, interruptionsMax: 1, unclassifiedMax: 3 }
    const first = decide({ ...facts, ledger: EMPTY_LEDGER, policy: allowed })
    expect(first.decision).toMatchObject({
      kind: 'again',
      reason: 'run-limit-reached',
      afterMs: 0,
      avoid: [],
    })
    const second = decide({ ...facts, ledger: first.ledger, policy: allowed })
    expect(second.decision).toMatchObject({ kind: 'finish', state: 'failed', reason: 'interrupted' })
    expect(
      decide({ ...facts, drainReason: 'deadline', ledger: EMPTY_LEDGER, policy: allowed }).decision,
    ).toMatchObject({
      reason: 'deadline-reached',
    })
  })

  it('counts the longest run that a provider allows as no interruption where the attempt has saved', () => {
    const ended: AttemptEnd = { kind: 'stopped', by: 'expired' }
    const facts = { end: ended, drainReason: null, offerKeys: ['modal/on-demand/h100/'], hasSaved: true }
    const none: Policy = { failuresMax: 0, interruptionsMax: 0, unclassifiedMax: 3 }
    const { decision, ledger } = decide({ ...facts, ledger: EMPTY_LEDGER, policy: none })
    expect(decision).toMatchObject({ kind: 'again', reason: 'run-limit-reached', afterMs: 0, avoid: [] })
    expect(ledger.interruptions).toBe(0)
  })

  it('remembers of an interruption which pool it was, and leaves none alone for it', () => {
    const machine = { offerKey: 'cloud/spot/v100/b', placeKey: 'cloud/*/*/b' }
    const facts = { drainReason: null, policy, machine, offerKeys: ['cloud/spot/v100/a', machine.offerKey] }
    expect(decide({ ...facts, end: failed('interrupted'), ledger: EMPTY_LEDGER }).decision).toMatchObject({
      avoid: [{ offerKey: machine.offerKey, why: 'interruption', forMs: SHAKY_MS }],
    })
  })

  it('shows the raw code of an unclassified failure, and the hint for one that needs an operator', () => {
    const unclassified: AttemptEnd = {
      kind: 'failed',
      isLaunched: false,
      failure: { class: 'unclassified', message: 'Something odd.', code: 'OddThing' },
    }
    expect(after(unclassified, { ...EMPTY_LEDGER, unclassified: 3 })).toMatchObject({
      kind: 'finish',
      state: 'failed',
      message: 'Something odd. (OddThing)',
    })
    const auth: AttemptEnd = {
      kind: 'failed',
      isLaunched: false,
      failure: { class: 'auth', message: 'Denied.', hint: 'Ask for the role.' },
    }
    expect(after(auth)).toMatchObject({ message: 'Denied. Ask for the role.' })
    const open = { ...auth, failure: { ...auth.failure, message: 'denied in a policy' } }
    expect(after(open)).toMatchObject({ message: 'denied in a policy. Ask for the role.' })
    const said = (code: string) =>
      after({ kind: 'failed', isLaunched: false, failure: { class: 'auth', message: 'Denied: E1.', code } })
    // A code that is in the message, or is the class, would be told twice.
    expect(['E1', 'auth', 'E2'].map(said)).toMatchObject([
      { message: 'Denied: E1.' },
      { message: 'Denied: E1.' },
      { message: 'Denied: E1. (E2)' },
    ])
  })

  describe('of an attempt that its budget has ended', () => {
    const verdict = (costMicroUsd: number, ledger = EMPTY_LEDGER): ReturnType<typeof decide> =>
      decide({
        end: { kind: 'stopped', by: 'budget' },
        drainReason: null,
        policy,
        offerKeys: ['here/spot/x/a'],
        ledger,
        budget: { leftMicroUsd: 10_000_000 - costMicroUsd, priceMaxMicroUsdPerHour: 1_000_000, costMicroUsd },
      })

    it('continues at once with the money that the machine did not cost', () => {
      expect(verdict(3_000_000).decision).toMatchObject({ kind: 'again', afterMs: 0 })
    })

    it('ends where the rest buys nothing that is worth it: less than ten minutes of the machine', () => {
      expect(verdict(9_900_000).decision).toMatchObject({ kind: 'finish', reason: 'budget-reached' })
      const tenMinutesMicroUsd = Math.ceil(1_000_000 / 6)
      expect(verdict(10_000_000 - tenMinutesMicroUsd).decision.kind).toBe('again')
      expect(verdict(10_000_000 - tenMinutesMicroUsd + 300).decision.kind).toBe('finish')
    })

    it('suspects a clock only where less than a twentieth was used', () => {
      const message = (costMicroUsd: number) =>
        (verdict(costMicroUsd).decision as { message: string }).message
      expect(message(499_999)).toContain('suggests clock skew')
      expect(message(500_000)).not.toContain('clock')
    })

    it('ends if the budget is unknown', () => {
      const { decision } = decide({
        end: { kind: 'stopped', by: 'budget' },
        drainReason: null,
        policy,
        offerKeys: [offerKey],
        ledger: EMPTY_LEDGER,
      })
      expect(decision).toMatchObject({ kind: 'finish', reason: 'budget-reached' })
    })

    it('pauses, and stops after a few, if barely any of it was used: suggests clock skew', () => {
      const first = verdict(10_000)
      expect(first).toMatchObject({ decision: { kind: 'again' }, ledger: { unclassified: 1 } })
      expect(first.decision).toMatchObject({ message: expect.stringContaining('suggests clock skew') })
      expect((first.decision as { afterMs: number }).afterMs).toBeGreaterThan(0)
      expect(verdict(10_000, { ...EMPTY_LEDGER, unclassified: 2 }).decision.kind).toBe('again')
      expect(verdict(10_000, { ...EMPTY_LEDGER, unclassified: 3 }).decision).toMatchObject({
        kind: 'finish',
        state: 'failed',
        reason: 'budget-reached',
      })
    })
  })
})
