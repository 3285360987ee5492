import { describe, expect } from '@jest/globals'
import type { ProviderName } from '../clouds/provider'
import { PROVIDER_NAMES, PROVIDERS } from '../clouds/providers'
import { itHolds } from '../kit/jest'
import { chosen, describeInAll } from '../support/selection'
import { BLACKOUTS } from './harnesses/blackouts'
import { CRASHES, type CrashCase } from './harnesses/crashes'
import type { LifeName } from './lives'
import { nameOf, undisturbed, type CrashPlan } from './plan'
import type { Moment } from './process'

/** One of each kind; `npm run proof -- crashes` goes through all of them, and more than once (docs/design/chaos.md). */
const CHOSEN: [LifeName, Moment, string, number][] = [
  ['plain', 'after', 'resolveJob: PutObject record resolved', 1],
  ['paid', 'in', 'resolveJob: promise out of the month', 1],
  ['plain', 'in', 'plan: PutObject record planned', 1],
  ['plain', 'before', 'offers: GetProducts', 1],
  ['plain', 'after', 'launch: PutObject record launched', 1],
  ['plain', 'in', 'launch: CreateLaunchTemplate', 1],
  ['plain', 'in', 'launch: CreateFleet', 2],
  ['plain', 'after', 'launch: CreateFleet', 2],
  ['unanswered', 'before', 'find: DescribeInstances', 1],
  ['unanswered', 'before', 'decide: PutObject record decided', 1],
  ['tokenless', 'after', 'launch: PutObject mark of a send', 1],
  ['tokenless', 'in', 'launch: PutObject hand-over', 1],
  ['tokenless', 'in', 'launch: CreateFleet', 2],
  ['tokenless', 'before', 'settle: DeleteObject hand-over', 1],
  ['tokenless', 'before', 'launch: PutObject outcome of a send', 1],
  ['plain', 'in', 'start: SendCommand', 2],
  ['lasting', 'before', 'watch: DescribeInstances', 2],
  ['migrated', 'after', 'drainMachine: PutObject drain.json', 1],
  ['mute', 'in', 'settle: TerminateInstances', 1],
  ['interrupted', 'after', 'settle: PutObject record settled', 1],
  ['plain', 'after', 'finishJob: PutObject record finished', 1],
  ['orphaned', 'in', 'collectGarbage: TerminateInstances', 1],
]

/** Of `npm test`: in and after a launch, in a promise of money, at the start, in a move, in a settlement. */
const FEW = CHOSEN.filter(([life, , call]) =>
  life !== 'plain'
    ? ['paid', 'migrated', 'interrupted'].includes(life) ||
      (life === 'tokenless' && call === 'launch: CreateFleet')
    : /CreateFleet|SendCommand/.test(call),
)

/** At other providers: where a send, its hand-over, an end and a settlement differ from EC2's. */
const ELSEWHERE: [ProviderName, LifeName, Moment, string, number][] = [
  ['lambda', 'plain', 'in', 'launch: launch', 1],
  ['lambda', 'plain', 'after', 'launch: PutObject mark of a send', 1],
  ['lambda', 'unanswered', 'before', 'find: instances', 1],
  ['lambda', 'cancelled', 'in', 'settle: terminate', 1],
  ['lambda', 'interrupted', 'before', 'settle: PutObject record settled', 1],
  ['lambda', 'migrated', 'after', 'drain: PutObject drain.json', 1],
  ['modal', 'plain', 'in', 'launch: submit', 1],
  ['modal', 'plain', 'after', 'launch: PutObject hand-over', 1],
  ['modal', 'cancelled', 'in', 'settle: cancel', 1],
  ['modal', 'interrupted', 'before', 'settle: PutObject record settled', 1],
  ['modal', 'migrated', 'after', 'drain: PutObject drain.json', 1],
]

const AT_EC2 = chosen(CHOSEN, FEW).map((crash) => ['ec2', ...crash] as (typeof ELSEWHERE)[number])
const CASES = [...AT_EC2, ...chosen(ELSEWHERE, [ELSEWHERE[0]!, ELSEWHERE[6]!])].map(
  ([at, life, moment, call, occurrence], index): CrashCase => {
    const crash = { call, occurrence, moment, lateMs: 0, isOfBoth: false }
    const name = `${life} at ${at}, ${nameOf(crash)}`
    const plan: CrashPlan = { ...undisturbed(life), name, crashes: [crash], isSweptMeanwhile: true }
    return { name, again: [], provider: PROVIDERS[at], plan, index: index + 1 }
  },
)

/** However busy this computer is. */
const LIMIT_MS = 420_000
/** Longer than the heartbeat timeouts, which are what they are. */
const HOUR_MS = 21_000
const OUTLASTING = { stepsPerSecond: 2.2 }

describe('a process that dies', () => {
  itHolds('costs a job nothing but time: %s', CRASHES, {
    cases: CASES,
    limitMs: LIMIT_MS,
    // A crash that never came proves nothing.
    also: ({ struck }) => expect(struck).not.toEqual([]),
  })
})

// In npm test, test/workflows/outages.e2e.test.ts and test/cli/dev/temporal.e2e.test.ts keep its promise.
describeInAll('a blackout', () => {
  const jobs = [OUTLASTING, OUTLASTING, { ...OUTLASTING, submittedBeforeMs: 1_000 }]
  itHolds('costs jobs nothing at %s, and each of them is watched again within seconds', BLACKOUTS, {
    cases: chosen(PROVIDER_NAMES, []).map((name) => ({
      name,
      again: [],
      plan: {
        seed: 1,
        provider: PROVIDERS[name],
        outage: 'server',
        hourMs: HOUR_MS,
        downMs: [HOUR_MS],
        jobs,
      },
    })),
    limitMs: LIMIT_MS,
    also: ({ jobs: lived, attachedAfterMs }) => {
      expect(lived.map(({ state }) => state)).toEqual(jobs.map(() => 'succeeded (completed)'))
      expect(attachedAfterMs.length).toBeGreaterThanOrEqual(2)
    },
  })
})
