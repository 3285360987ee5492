import { parseCheckpointId } from '../../core/job/checkpoint'
import type { Beat, RunnerResult } from '../../core/documents'
import type { AttemptRecord } from '../../core/job/ledger'
import type { JobStatus } from '../../core/messages'
import { spend, spendOver } from '../../core/money/meter'
import { SECOND_MS } from '../../core/time/time'
import { layout } from '../../storage/layout'
import { readRecords } from '../../storage/record'
import type { ObjectStore } from '../../storage/store'
import { WEIGHTS_ARTIFACT } from '../backends/scripted/scripted-runner'
import type { ScriptedMachine } from '../backends/scripted/scripted-machine'
import type { Manners } from '../backends/scripted/world'
import { isDamaged, weightsAfter } from '../backends/scripted/checkpoints'
import {
  classified,
  explained,
  overlaps,
  resumedFromNewest,
  sameWeights,
  wholeLog,
  type Resume,
  type Stretch,
} from '../kit/invariants'
import { unlikeReplays } from '../kit/replays'
import type { Deployment } from '../workflows/harness'

/** Every breach of the invariants in a run that is over, in words; empty when all of them held. */
export async function breaches(
  deployment: Deployment,
  status: JobStatus,
  stepsTotal: number,
): Promise<string[]> {
  return [
    ...endedAsItShould(status),
    ...oneLiveAttempt(deployment),
    ...boughtOnce(deployment),
    ...noLeak(deployment),
    ...withinBudget(deployment, status),
    ...(await breachesOnRecord(deployment, status, stepsTotal)),
  ]
}

/** What store and status show on their own, whatever provider the machines came from. */
export async function breachesOnRecord(
  { store }: Stored,
  status: JobStatus,
  stepsTotal: number,
): Promise<string[]> {
  const { id: jobId, state, attempts } = status
  const artifact = WEIGHTS_ARTIFACT
  return [
    ...classified(status, attempts),
    ...(await resumedAsSaved(store, status)),
    ...bothTypesOnRecord(attempts),
    ...(await sameWeights(store, { jobId, state, artifact }, weightsAfter(stepsTotal))),
    ...(await wholeLogs(store, status)),
    ...explained(await readRecords(store, jobId), attempts),
    ...(await unlikeReplays(store, [jobId])),
  ]
}

type Stored = { store: ObjectStore }

function endedAsItShould({ state, reason }: JobStatus): string[] {
  const ends = ['succeeded', 'cancelled', 'failed']
  if (!ends.includes(state)) return [`the job is ${state}`]
  const expected = ['workload-failed', 'budget-reached', 'no-placement']
  return state === 'failed' && !expected.includes(reason)
    ? [`the job failed for no reason of its own: ${reason}`]
    : []
}

/** Two machines of a job may both be paid for a moment, but only one may ever run its workload. */
function oneLiveAttempt({ world }: Deployment): string[] {
  const worked: Stretch[] = []
  for (const machine of world.machines) {
    if (machine.workedFromMs === undefined) continue
    const { attempt } = machine.order
    worked.push({ attempt, fromMs: machine.workedFromMs, toMs: machine.endedAtMs ?? Infinity })
  }
  return overlaps(worked)
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

async function resumedAsSaved(store: ObjectStore, { id, attempts }: JobStatus): Promise<string[]> {
  const wrong: string[] = []
  const resumes: Resume[] = []
  for (const { number: attempt, restoredFrom, phases = [] } of attempts) {
    if (restoredFrom !== undefined && parseCheckpointId(restoredFrom.id) === undefined)
      wrong.push(`${restoredFrom.id} is no checkpoint`)
    // A machine that was lost has left no result, and its last beat tells.
    const last =
      (await read<RunnerResult>(store, layout.result(id, attempt))) ??
      (await read<Beat>(store, layout.beat(id, attempt)))
    // Of a machine that was lost no phases may be on record.
    const hasBegun = phases.some(({ name }) => name === 'running') || (last?.progress ?? null) !== null
    const own = last?.checkpoint?.attempt === attempt ? last.checkpoint : undefined
    // A runner cannot know that what it uploaded was damaged on the way.
    const isSaved = own !== undefined && !(await isDamaged(store, id, own))
    // What the runner did counts, not what the job has on record of it.
    const from = last === undefined ? restoredFrom : last.restoredFrom
    const fromStep = hasBegun ? (from?.step ?? 0) : null
    if (hasBegun && last !== undefined && from?.id !== restoredFrom?.id)
      wrong.push(
        `attempt ${attempt} began at ${from?.id ?? 'nothing'}, and on record is ${restoredFrom?.id ?? 'nothing'}`,
      )
    resumes.push({ attempt, fromStep, savedStep: isSaved ? own.step : 0 })
  }
  return [...wrong, ...resumedFromNewest(resumes)]
}

async function read<T>(store: ObjectStore, key: string): Promise<T | undefined> {
  const body = await store.get(key)
  return body && (JSON.parse(body.toString()) as T)
}

function bothTypesOnRecord(attempts: AttemptRecord[]): string[] {
  return attempts
    .filter(
      ({ launchedAtMs, realised, capacityType }) =>
        launchedAtMs !== undefined && realised?.capacityType !== capacityType,
    )
    .map(
      ({ number, capacityType, realised }) =>
        `attempt ${number} asked for ${capacityType} and got ${realised?.capacityType ?? 'nothing known'}`,
    )
}

async function wholeLogs(store: ObjectStore, { id: jobId, attempts }: JobStatus): Promise<string[]> {
  const wrong = await Promise.all(
    attempts.map(async ({ number: attempt }) => {
      // A result is put after the last line; of a machine that was lost the end of the log is lost too.
      const result = await read<RunnerResult>(store, layout.result(jobId, attempt))
      return wholeLog(store, { jobId, attempt, linesTotal: result?.logLines ?? 0 })
    }),
  )
  return wrong.flat()
}
