import { Dice } from '../kit/dice'
import { DISTURBANCES, DISTURBED_VERBS, type Disturbance } from './seam'

/** Everything that can befall a run, by the names that `--only` takes. */
export const FAULTS = [
  'kill-orchestrator',
  'kill-backend-worker',
  'kill-server',
  'server-outage',
  'kill-runner',
  'kill-workload',
  'kill-machine',
  'notice',
  'freeze-machine',
  'terminate-child',
  'full-store',
  'full-machines',
  'disturb-provider',
  'blackout',
  'missing-store',
] as const
export type Fault = (typeof FAULTS)[number]

/** When a fault strikes: something that is seen to happen in the run, so that the moment means the same on any machine. */
export type Moment =
  /** The workload that lives has done so many steps, those before it included. */
  | { on: 'step'; step: number }
  /** One more attempt than before has this document. */
  | { on: 'document'; document: 'order' | 'machine' | 'claim' | 'result' }
  /** One more entry of this kind than before is on record. */
  | { on: 'record'; kind: 'planned' | 'launched' | 'settled' | 'decided' }
  /** One more checkpoint than before is complete. */
  | { on: 'checkpoint' }
  /** The newest attempt's runner says that it is there. */
  | { on: 'phase'; phase: 'fetching' | 'restoring' | 'running' | 'draining' | 'finishing' }
  /** A disturbance has met its call. */
  | { on: 'taken' }
  /** At once. */
  | { on: 'now' }

export interface Strike {
  fault: Fault
  /** Index of the job that is looked at, and struck where a fault strikes only one. */
  job: number
  moment: Moment
  /** Waited after the moment, to spread over what follows it. */
  afterMs: number
  /** How long something stays down, full, frozen, or how long a notice is. */
  ms: number
  /** Which process of a machine `kill-runner` kills. */
  process?: 'runner' | 'guard' | 'both' | 'leash'
  disturbance?: Disturbance
  /** Repeated for each attempt, until the job has no more. */
  isRepeated?: boolean
}

export interface JobPlan {
  style: 'folders' | 'loose' | 'declared'
  saveEvery: number
  retries: { failures: number; interruptions: number }
  /** In dollars. */
  budget?: number
}

/** Everything about a run that its seed decides. */
export interface Plan {
  seed: number
  jobs: JobPlan[]
  strikes: Strike[]
  /** The lease is shorter than an outage may last, and than the training. */
  isLeaseShort: boolean
  stepSeconds: number
}

export const STEPS = 60
const STEP_SECONDS = 0.12
/** A blackout strikes before the middle, and what is left takes longer than the lease. */
const BLACKOUT = { untilPart: 0.4, stepSeconds: 0.25 }

const ON_ATTEMPT: readonly Fault[] = [
  'kill-runner',
  'kill-machine',
  'notice',
  'freeze-machine',
  'terminate-child',
]
/** After one of these nothing else is down for long: a run must not take minutes. */
const LONG: readonly Fault[] = ['server-outage', 'blackout']

/** The plan of a seed. The seed's own fault is always in it, so that any row of seeds has all of them. */
export function planOf(seed: number, only: readonly Fault[]): Plan {
  const dice = new Dice(seed)
  const jobs = Array.from({ length: dice.between(1, 2) }, () => jobOf(dice))
  const count = dice.between(1, 4)
  const parts = Array.from({ length: count }, () => dice.next() * 0.9).sort((a, b) => a - b)
  let allowed = only
  const strikes: Strike[] = []
  for (const [index, part] of parts.entries()) {
    const fault = index === 0 ? only[seed % only.length]! : dice.oneOf(allowed)
    if (LONG.includes(fault)) allowed = allowed.filter((other) => !LONG.includes(other))
    strikes.push(...strikesOf(dice, { fault, job: dice.between(0, jobs.length - 1), part }))
    if (allowed.length === 0) break
  }
  const doomed = strikes.find(({ isRepeated }) => isRepeated === true)
  if (doomed !== undefined) jobs[doomed.job]!.retries.failures = dice.between(0, 1)
  return { seed, jobs, strikes, ...paceOf(strikes) }
}

/** What a run's lease and training must be for its strikes. */
export function paceOf(strikes: readonly Strike[]): Pick<Plan, 'isLeaseShort' | 'stepSeconds'> {
  const isLeaseShort = strikes.some(({ fault }) => fault === 'blackout')
  return { isLeaseShort, stepSeconds: isLeaseShort ? BLACKOUT.stepSeconds : STEP_SECONDS }
}

function jobOf(dice: Dice): JobPlan {
  return {
    style: dice.oneOf(['folders', 'loose', 'declared'] as const),
    saveEvery: dice.oneOf([4, 8, 15]),
    retries: { failures: 8, interruptions: 20 },
    // A minute and a few seconds is the least that is worth a machine: what befalls the job may use it up.
    budget: dice.chance(0.25) ? dice.oneOf([0.0025, 0.003, 0.01]) : undefined,
  }
}

interface Wanted {
  fault: Fault
  job: number
  part: number
}

function strikesOf(dice: Dice, wanted: Wanted): Strike[] {
  const { fault, job } = wanted
  const strike: Strike = {
    fault,
    job,
    moment: momentOf(dice, wanted),
    afterMs: dice.chance(0.5) ? 0 : dice.between(0, 600),
    ms: durationOf(dice, fault),
  }
  if (fault === 'kill-runner')
    return [{ ...strike, process: dice.oneOf(['runner', 'guard', 'both', 'leash'] as const) }]
  if (fault === 'kill-workload') return [dice.chance(0.2) ? { ...strike, isRepeated: true } : strike]
  if (fault === 'disturb-provider') return disturbancesOf(dice, strike)
  return [strike]
}

/** A disturbance, and half the time something that dies while it lasts. */
function disturbancesOf(dice: Dice, strike: Strike): Strike[] {
  const disturbance: Disturbance = {
    verb: dice.oneOf([...DISTURBED_VERBS, 'launch', 'launch', 'terminate']),
    kind: dice.oneOf(DISTURBANCES),
    ms: dice.between(300, 4_000),
  }
  const disturbing: Strike = { ...strike, moment: { on: 'now' }, afterMs: 0, disturbance }
  if (dice.chance(0.5)) return [disturbing]
  const fault = dice.oneOf(['kill-backend-worker', 'kill-server', 'kill-orchestrator'] as const)
  return [
    disturbing,
    {
      fault,
      job: strike.job,
      moment: { on: 'taken' },
      afterMs: dice.between(0, 300),
      ms: durationOf(dice, fault),
    },
  ]
}

function momentOf(dice: Dice, { fault, part }: Wanted): Moment {
  const stepsUntil = STEPS * (fault === 'blackout' ? BLACKOUT.untilPart : 1)
  const step: Moment = { on: 'step', step: Math.max(1, Math.round(part * stepsUntil)) }
  if (fault === 'kill-workload' || fault === 'full-machines') return step
  if (dice.chance(0.5)) return step
  const early: Moment[] = [
    { on: 'document', document: 'machine' },
    { on: 'phase', phase: 'fetching' },
    { on: 'phase', phase: 'running' },
    { on: 'phase', phase: 'finishing' },
    { on: 'checkpoint' },
  ]
  if (ON_ATTEMPT.includes(fault)) return dice.oneOf([...early, { on: 'document', document: 'claim' }])
  return dice.oneOf<Moment>([
    ...early,
    { on: 'document', document: 'order' },
    { on: 'document', document: 'result' },
    { on: 'phase', phase: 'draining' },
    ...(['planned', 'launched', 'settled', 'decided'] as const).map((kind) => ({
      on: 'record' as const,
      kind,
    })),
  ])
}

function durationOf(dice: Dice, fault: Fault): number {
  // The SDK gives up reporting a finished activity after ten seconds.
  if (fault === 'server-outage') return dice.between(11_000, 16_000)
  if (fault === 'notice') return dice.oneOf([0, 1_500, 4_000, 8_000])
  // A machine that cannot be had for want of room is asked for again after three minutes: seldom.
  if (fault === 'full-machines') return dice.oneOf([800, 1_500, 2_000, 2_500])
  if (fault === 'missing-store') return dice.oneOf([3_000, 25_000])
  if (fault === 'full-store' || fault === 'freeze-machine') return dice.between(1_000, 5_000)
  return dice.chance(0.5) ? 0 : dice.between(0, 3_000)
}

export function inWords({ fault, job, moment, afterMs, ms, ...rest }: Strike): string {
  const { on, ...what } = moment
  const when = Object.values(what).join('')
  const details = [rest.process, rest.disturbance && JSON.stringify(rest.disturbance)].filter(
    (each) => each !== undefined,
  )
  const repeated = rest.isRepeated === true ? ', of every attempt' : ''
  return `${fault}${details.map((each) => ` ${each}`).join('')} of job ${job} at ${on} ${when} +${afterMs} ms, for ${ms} ms${repeated}`
}
