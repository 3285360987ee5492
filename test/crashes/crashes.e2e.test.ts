import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { connectTo, quietWorkers, type TestConnection } from '../support/temporal'
import { EC2 } from '../clouds/providers/ec2'
import { liveThroughBlackout, type BlackoutReport } from './blackout'
import { FLAWLESS } from './checks'
import { liveThroughCrashes } from './live'
import type { LifeName } from './lives'
import { nameOf, undisturbed, type CrashPlan } from './plan'
import type { Moment } from './process'
import type { CrashReport } from './run'
import { chosen } from '../support/selection'
import { patient } from '../support/patience'

/** One of each kind; `npm run chaos -- crashes` goes through all of them, and more than once (docs/design/chaos.md). */
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

const PLANS = chosen(CHOSEN, FEW).map(([life, moment, call, occurrence]): CrashPlan => {
  const crash = { call, occurrence, moment, lateMs: 0, isOfBoth: false }
  return {
    ...undisturbed(life),
    name: `${life}, ${nameOf(crash)}`,
    crashes: [crash],
    isSweptMeanwhile: true,
  }
})

/** However busy this computer is. */
const LIMIT_MS = 420_000
/** Longer than the heartbeat timeouts, which are what they are. */
const HOUR_MS = 21_000
const OUTLASTING = { stepsPerSecond: 2.2 }

let at: TestConnection
let reports: Promise<CrashReport[]>
let blackout: Promise<BlackoutReport>

beforeAll(async () => {
  quietWorkers()
  at = await connectTo()
  // Most of it is waiting for somebody to be missed.
  reports = liveThroughCrashes(at, PLANS, { provider: EC2, atOnce: PLANS.length })
  blackout = liveThroughBlackout({
    ...{ seed: 1, outage: 'server', downMs: [HOUR_MS], hourMs: HOUR_MS },
    jobs: [OUTLASTING, OUTLASTING, { ...OUTLASTING, submittedBeforeMs: 1_000 }],
  })
})
afterAll(() => at.close())

describe('a process that dies', () => {
  it.each(PLANS.map(({ name }, index) => [name, index] as const))(
    'costs a job nothing but time: %s',
    async (_, index) => {
      const report = (await reports)[index]!
      expect(report).toMatchObject({ verdict: FLAWLESS })
      // A crash that never came proves nothing.
      expect(report.struck).not.toEqual([])
    },
    LIMIT_MS,
  )
})

describe('a blackout', () => {
  it(
    'costs jobs nothing, and each of them is watched again within seconds',
    async () => {
      const { jobs, attachedAfterMs } = await blackout
      expect(jobs).toEqual(jobs.map(() => ({ state: 'succeeded (completed)', verdict: FLAWLESS })))
      expect(attachedAfterMs.length).toBeGreaterThanOrEqual(2)
      expect(Math.max(...attachedAfterMs)).toBeLessThan(patient(30_000))
    },
    LIMIT_MS,
  )
})
