import type { JobReason } from '../../core/job/job'
import type { JobStatus } from '../../core/messages'
import { spend, spendOver } from '../../core/money/meter'
import { SECOND_MS } from '../../core/time/time'
import type { ScriptedMachine } from '../backends/scripted/scripted-machine'
import type { Manners } from '../backends/scripted/world'
import { breachesOnRecord, endedAs, oneAtWork, type AtWork } from '../kit/invariants'
import type { Deployment } from '../workflows/harness'

const MAY_END: readonly JobReason[] = [
  'completed',
  'cancelled',
  'workload-failed',
  'budget-reached',
  'no-placement',
]

/** Every breach of the invariants in a run that is over, in words; empty when all of them held. */
export async function breaches(
  deployment: Deployment,
  status: JobStatus,
  stepsTotal: number,
): Promise<string[]> {
  return [
    ...endedAs(status, MAY_END),
    ...oneAtWork(deployment.world.machines.map(atWork)),
    ...boughtOnce(deployment),
    ...noLeak(deployment),
    ...withinBudget(deployment, status),
    ...(await breachesOnRecord(deployment.store, status, stepsTotal)),
  ]
}

function atWork({ order: { attempt }, workedFromMs, endedAtMs }: ScriptedMachine): AtWork {
  return { attempt, workedFromMs, workedToMs: endedAtMs }
}

/** One machine for each attempt, but for those that the provider made twice of one request. */
function boughtOnce({ world }: Deployment): string[] {
  const attempts = new Set(world.machines.map(({ order }) => order.attempt))
  const extra = world.machines.length - attempts.size - world.duplicates
  return extra > 0 ? [`${extra} more machines than the ${attempts.size} attempts that have any`] : []
}

/** Where ends are only requested, the provider certainly carries out each request, a moment after it shows the machine as gone. */
function noLeak({ world }: Deployment): string[] {
  return world.machines
    .filter(({ state, isShownGone }) => state !== 'gone' && !isShownGone)
    .map(({ handle }) => `${handle.attemptId} is left: ${handle.id}`)
}

function withinBudget(
  { world }: Deployment,
  { budgetMicroUsd, spentMicroUsd, attempts }: JobStatus,
): string[] {
  const spent = spendOn(world.machines)
  if (budgetMicroUsd !== undefined && spent > budgetMicroUsd)
    return [`spent ${spent} of a budget of ${budgetMicroUsd}`]
  const seen = new Set(attempts.filter((each) => each.launchedAtMs !== undefined).map((each) => each.number))
  const isSeen = ({ order }: ScriptedMachine): boolean => seen.has(order.attempt)
  // A duplicate that a provider made may have powered itself off before anybody saw it.
  const areSingle = world.machines.length === new Set(world.machines.map(({ order }) => order.attempt)).size
  // The cost of an unseen machine that never spoke is unknown.
  const told = spendOn(world.machines.filter((one) => isSeen(one) || one.workedFromMs !== undefined))
  // A moment more or less is a whole step where billing is in longer ones, or where the provider does not report when it began.
  const step = world.machines.reduce((sum, machine) => sum + stepOf(machine, world.manners), 0)
  if (areSingle && spentMicroUsd < 0.9 * told - step)
    return [`the job says it spent ${spentMicroUsd}, it was ${told}`]
  // An unseen machine is counted at most at what its order allowed, and a forgotten one until it was missed.
  const isExact = areSingle && world.machines.every(isSeen) && world.manners.forgetsAfterMs === undefined
  return isExact && spentMicroUsd > 1.1 * spent + step
    ? [`the job says it spent ${spentMicroUsd}, it was only ${spent}`]
    : []
}

/** What a machine can cost more or less than it was metered for. */
function stepOf(
  { handle: { realised }, order }: ScriptedMachine,
  { tellsBilling = true }: Pick<Manners, 'tellsBilling'>,
): number {
  const { billedInStepsOfMs = SECOND_MS, priceMicroUsdPerHour } = realised
  const isUntold = order.runner.queueMs !== undefined && !tellsBilling
  const isExact = billedInStepsOfMs === SECOND_MS && !isUntold
  return isExact ? 0 : spendOver(billedInStepsOfMs, priceMicroUsdPerHour)
}

function spendOn(machines: ScriptedMachine[]): number {
  return machines.reduce(
    (sum, { handle: { realised }, billedFromMs, billedToMs, endedAtMs }) =>
      // One that never left the queue is not billed.
      sum +
      (billedFromMs === undefined
        ? 0
        : spend({ ...realised, fromAtMs: billedFromMs, toAtMs: (billedToMs ?? endedAtMs)! }, endedAtMs!)),
    0,
  )
}
