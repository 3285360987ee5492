import type { JobSpec } from '../../core/job/job'
import { microUsd } from '../../core/money/money'
import type { Behaviour } from '../backends/scripted/behaviour'
import type { Fault, Verb } from '../backends/scripted/faults'
import type { Capabilities } from '../../core/capabilities'
import type { Manners, Ware } from '../backends/scripted/world'
import { ON_DEMAND, SPOT, type Deployment, type WorldWishes } from '../workflows/harness'
import { Dice } from '../kit/dice'
import type { Happening as JobHappening } from '../proof/lived'

type Happening = JobHappening<Deployment>

/** Everything about one run that a seed decides. */
export interface SeededWorld {
  wishes: WorldWishes
  spec: Partial<JobSpec>
  faults: { verb: Verb; fault: Fault }[]
  happenings: Happening[]
  /** What was chosen, in words, for when it goes wrong. */
  story: string[]
}

export const STEPS = 100
/** A job may lose its machine and be stopped by hand this often before it must be done. */
const TROUBLES_MAX = 4
/** By when the last happening is over; a job takes two seconds of training. */
const HAPPENINGS_UNTIL_MS = 4_000

export function seededWorld(seed: number): SeededWorld {
  const dice = new Dice(seed)
  const story: string[] = []
  const behaviours = Array.from({ length: TROUBLES_MAX }, (_, index) => {
    const behaviour = behaviourOf(dice)
    if (Object.keys(behaviour).length > 0) story.push(`attempt ${index + 1}: ${JSON.stringify(behaviour)}`)
    return behaviour
  })
  const runnerStart = dice.oneOf(['with-launch', 'after-launch'] as const)
  const idempotency = dice.oneOf(['token', 'tag'] as const)
  story.push(`runner ${runnerStart}, launches known by ${idempotency}`)
  const faults = faultsOf(dice, story)
  const budget = dice.chance(0.3) ? { budgetMicroUsd: microUsd(dice.between(8, 12)) } : {}
  if (budget.budgetMicroUsd !== undefined) story.push(`budget ${budget.budgetMicroUsd}`)
  const stock = dice.between(2, 10)
  const bootMs = dice.between(0, 300)
  const happenings = happeningsOf(dice, story)
  const manners = idempotency === 'tag' ? mannersOf(dice, { faults, happenings, story }) : {}
  const claimsBy = idempotency === 'tag' ? dice.oneOf(['id', 'send'] as const) : 'id'
  const { capabilities, ware, ...terms } = termsOf(dice, story)
  return {
    wishes: {
      wares: [
        { ...SPOT, ...ware, stock },
        { ...ON_DEMAND, ...ware, stock: 10 },
      ],
      capabilities: { runnerStart, idempotency, claimsBy, ...capabilities },
      bootMs,
      behave: ({ attempt }) => ({ stepsTotal: STEPS, ...behaviours[attempt - 1] }),
      timing: { silenceMs: 1_200, drainMs: 700, leaseMs: LEASE_MS, ...QUICK_FENCE, queueMs: QUEUE_LIMIT_MS },
      sendLimitMs: SEND_LIMIT_MS,
      ...manners,
      ...terms,
    },
    spec: { retries: { failures: 3, interruptions: 20 }, ...budget },
    faults,
    happenings,
    story,
  }
}

const LEASE_MS = 20_000
const QUEUE_LIMIT_MS = 1_500
/** A lost machine whose end is not confirmed holds its job up until its lease has certainly expired. */
const QUICK_FENCE = { startWithinMs: 5_000 }

interface Terms extends Manners {
  capabilities: Partial<Capabilities>
  ware: Partial<Ware>
}

/** The provider's own terms: queues, ends that it does not confirm, one offer for each order, steps of billing. */
function termsOf(dice: Dice, story: string[]): Terms {
  const queues = dice.chance(0.4)
  // All leave the queue in time but one at most: an offer that had no capacity is avoided for longer than a world lasts.
  const stuck = dice.chance(0.4) ? dice.between(0, TROUBLES_MAX - 1) : -1
  const waits = Array.from({ length: TROUBLES_MAX }, (_, index) =>
    index === stuck ? Infinity : dice.between(0, QUEUE_LIMIT_MS / 2),
  )
  const tellsBilling = dice.chance(0.5)
  const isUncertain = dice.chance(0.1)
  const endsAfterMs = dice.between(0, 500)
  const offersPerOrder = dice.oneOf(['one', 'many'] as const)
  const billedInStepsOfMs = dice.oneOf([1_000, 5_000])
  const capabilities: Partial<Capabilities> = {
    offersPerOrder,
    queues: queues ? queues : undefined,
    ends: isUncertain ? 'requested' : undefined,
  }
  story.push(
    `terms ${JSON.stringify({ ...capabilities, billedInStepsOfMs, ...(queues && { tellsBilling, waits }) })}`,
  )
  return {
    capabilities,
    ware: { billedInStepsOfMs },
    tellsBilling,
    endsAfterMs,
    queueMs: ({ attempt }) => waits[attempt - 1] ?? 0,
  }
}

/** Twice as long as the slowest answer of these worlds takes on a busy computer. */
const SEND_LIMIT_MS = 2_000
const LATE_MAX_MS = 300

/**
 * What makes a provider hard to use where it recognises no token, and troubles that would make a second machine of an order: late effects, and
 * workers that go while one is being sent.
 */
function mannersOf(
  dice: Dice,
  { faults, happenings, story }: Pick<SeededWorld, 'faults' | 'happenings' | 'story'>,
): Manners {
  const manners: Manners = {
    forgetsAfterMs: dice.chance(0.5) ? dice.oneOf([0, 300]) : undefined,
    listsLagMs: dice.chance(0.5) ? dice.between(50, 400) : undefined,
    launchEveryMs: dice.chance(0.3) ? dice.between(200, 1_500) : undefined,
    answersAfterMs: dice.chance(0.5) ? dice.between(50, 600) : undefined,
    effectWithinMs: LATE_MAX_MS,
  }
  story.push(JSON.stringify(manners))
  if (dice.chance(0.5)) {
    const effectAfterMs = dice.between(0, LATE_MAX_MS)
    const fault: Fault = { kind: 'late', effectAfterMs, findAfterMs: 0 }
    faults.push({ verb: 'launch', fault })
    story.push(`launch ${JSON.stringify(fault)}`)
  }
  if (dice.chance(0.5)) {
    const failure = { class: 'unclassified', message: '<html>' } as const
    faults.push({ verb: 'launch', fault: { kind: 'throws', failure } })
    story.push('launch answered by a page of HTML')
  }
  if (dice.chance(0.5)) {
    const name = 'workers lose the store as soon as a launch is answered'
    happenings.push({ atMs: 0, name, happen: ({ deployment }) => loseFirstAnswers(deployment) })
    story.push(name)
  }
  return manners
}

/** What a launch came to is not on record: the first write of each document that would tell it fails. */
function loseFirstAnswers({ store }: Deployment): void {
  const tried = new Set<string>()
  store.refuses = (key) => {
    const isFirst = /\/(?:machine|\d+-outcome)\.json$/.test(key) && !tried.has(key)
    tried.add(key)
    return isFirst
  }
}

/** What is wrong with one machine or its workload; most often nothing. */
export function behaviourOf(dice: Dice): Partial<Behaviour> {
  const atStep = dice.between(1, STEPS - 1)
  const troubles: Partial<Behaviour>[] = [
    { diesAtStep: atStep },
    { hangsAtStep: atStep },
    { fails: { atStep, exitCode: 1 } },
    {
      torn: {
        atStep: Math.max(10, Math.round(atStep / 10) * 10),
        how: dice.oneOf(['no-manifest', 'wrong-bytes'] as const),
      },
    },
    { neverStarts: true },
    { neverBoots: true },
    { isDeaf: true },
  ]
  return dice.chance(0.5) ? dice.oneOf(troubles) : {}
}

function faultsOf(dice: Dice, story: string[]): SeededWorld['faults'] {
  const transient = { class: 'transient', message: 'no answer' } as const
  const choices: SeededWorld['faults'] = [
    { verb: 'launch', fault: { kind: 'loses-answer', hasEffect: true, findAfterMs: 100 } },
    { verb: 'launch', fault: { kind: 'loses-answer', hasEffect: false, findAfterMs: 100 } },
    {
      verb: 'launch',
      fault: { kind: 'refuses', failure: { class: 'capacity', message: 'out of stock', retryAfterMs: 300 } },
    },
    {
      verb: 'launch',
      fault: { kind: 'throws', failure: { class: 'throttled', message: 'slow down', retryAfterMs: 50 } },
    },
    { verb: 'launch', fault: { kind: 'duplicates' } },
    { verb: 'launch', fault: { kind: 'slow', durationMs: 500 } },
    { verb: 'observe', fault: { kind: 'lies-gone' } },
    { verb: 'observe', fault: { kind: 'throws', failure: transient } },
    { verb: 'terminate', fault: { kind: 'ignored' } },
    { verb: 'terminate', fault: { kind: 'throws', failure: transient } },
    { verb: 'find', fault: { kind: 'throws', failure: transient } },
  ]
  const faults = Array.from({ length: dice.between(0, 4) }, () => dice.oneOf(choices))
  for (const { verb, fault } of faults) story.push(`${verb} ${JSON.stringify(fault)}`)
  return faults
}

function happeningsOf(dice: Dice, story: string[]): Happening[] {
  const living = ({ deployment }: { deployment: Deployment }) =>
    deployment.world.machines.find(({ state }) => state === 'running')
  const restart =
    (name: 'orchestrator' | 'verbs' | 'watches'): Happening['happen'] =>
    ({ deployment }) =>
      deployment.restart(name)
  const noticeMs = dice.between(50, 800)
  const choices: Omit<Happening, 'atMs'>[] = [
    { name: `notice of ${noticeMs} ms`, happen: (at) => living(at)?.interrupt(noticeMs) },
    { name: 'taken back without notice', happen: (at) => living(at)?.interrupt(null) },
    {
      name: 'migrate',
      happen: ({ job }) => job.executeUpdate('migrate', { args: [{}] }).catch(() => undefined),
    },
    { name: 'attempt terminated by hand', happen: ({ deployment }) => deployment.terminateAttempt() },
    { name: 'orchestrator restarted', happen: restart('orchestrator') },
    { name: 'verbs restarted', happen: restart('verbs') },
    { name: 'watches restarted', happen: restart('watches') },
    { name: 'store down for a while', happen: ({ deployment }) => deployment.storeOutage(700) },
    { name: 'cancel', happen: ({ job }) => job.cancel() },
  ]
  const happenings = Array.from({ length: dice.between(0, 3) }, () => {
    const { name, happen } = dice.oneOf(choices)
    return { name, happen, atMs: dice.between(0, HAPPENINGS_UNTIL_MS) }
  })
  for (const { atMs, name } of happenings) story.push(`at ${atMs} ms: ${name}`)
  return happenings
}
