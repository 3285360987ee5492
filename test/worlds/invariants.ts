import { parseCheckpointId } from '../../core/checkpoint'
import type { RunnerResult } from '../../core/documents'
import type { AttemptRecord } from '../../core/ledger'
import type { JobStatus } from '../../core/messages'
import { spend } from '../../core/meter'
import { parseLogLine } from '../../intake/documents'
import { readArtifact } from '../../storage/artifacts'
import { layout } from '../../storage/layout'
import { readLines } from '../../storage/logs'
import { readRecords } from '../../storage/record'
import type { ObjectStore } from '../../storage/store'
import { WEIGHTS_ARTIFACT } from '../backends/scripted/scripted-runner'
import { weightsAfter } from '../backends/scripted/checkpoints'
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
    ...noLeak(deployment),
    ...withinBudget(deployment, status),
    ...(await breachesOnRecord(deployment, status, stepsTotal)),
  ]
}

/** What store and status tell by themselves, whatever provider the machines came from. */
export async function breachesOnRecord(at: Stored, status: JobStatus, stepsTotal: number): Promise<string[]> {
  return [
    ...(await resumedFromNewest(at, status)),
    ...bothTypesOnRecord(status.attempts),
    ...(await sameWeights(at, status, stepsTotal)),
    ...(await wholeLog(at, status)),
    ...(await explained(at, status)),
  ]
}

type Stored = { store: ObjectStore }

function endedAsItShould({ state, reason }: JobStatus): string[] {
  const ends = ['succeeded', 'cancelled', 'failed']
  if (!ends.includes(state)) return [`the job is ${state}`]
  const expected = ['workload-failed', 'budget-reached', 'no-placement', 'unclassified']
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

/** When the workload of an attempt ran on a machine. */
export interface Stretch {
  attempt: number
  fromMs: number
  toMs: number
}

/** Two machines at work at once. */
export function overlaps(stretches: Stretch[]): string[] {
  const worked = [...stretches].sort((a, b) => a.fromMs - b.fromMs)
  return worked.slice(1).flatMap((next, index) => {
    const before = worked[index]!
    return next.fromMs < before.toMs
      ? [`attempts ${before.attempt} and ${next.attempt} ran at once for ${before.toMs - next.fromMs} ms`]
      : []
  })
}

function noLeak({ world }: Deployment): string[] {
  return world.machines
    .filter(({ state }) => state !== 'gone')
    .map(({ handle }) => `${handle.attemptId} is left: ${handle.id}`)
}

function withinBudget(
  { world }: Deployment,
  { budgetMicroUsd, spentMicroUsd, attempts }: JobStatus,
): string[] {
  const spent = world.machines.reduce(
    (sum, { handle, endedAtMs }) =>
      sum +
      spend(
        {
          fromAtMs: handle.launchedAtMs,
          toAtMs: endedAtMs!,
          priceMicroUsdPerHour: handle.realised.priceMicroUsdPerHour,
        },
        endedAtMs!,
      ),
    0,
  )
  if (budgetMicroUsd !== undefined && spent > budgetMicroUsd)
    return [`spent ${spent} of a budget of ${budgetMicroUsd}`]
  // A duplicate that a provider made may have powered itself off before anybody saw it.
  const areSingle = world.machines.length === new Set(world.machines.map(({ order }) => order.attempt)).size
  if (areSingle && spentMicroUsd < 0.9 * spent)
    return [`the job says it spent ${spentMicroUsd}, it was ${spent}`]
  // A machine that nobody saw is counted at most at what its order allowed.
  const seen = new Set(attempts.filter((each) => each.launchedAtMs !== undefined).map((each) => each.number))
  const areSeen = areSingle && world.machines.every(({ order }) => seen.has(order.attempt))
  return areSeen && spentMicroUsd > 1.1 * spent
    ? [`the job says it spent ${spentMicroUsd}, it was only ${spent}`]
    : []
}

/** Each attempt began from the newest checkpoint that was whole when it began. */
async function resumedFromNewest({ store }: Stored, { id, attempts }: JobStatus): Promise<string[]> {
  const wrong: string[] = []
  let newest = 0
  for (const { number, restoredFrom } of attempts) {
    const body = await store.get(layout.result(id, number))
    const result = body === undefined ? undefined : (JSON.parse(body.toString()) as RunnerResult)
    const from = restoredFrom?.step ?? 0
    if (restoredFrom !== undefined && parseCheckpointId(restoredFrom.id) === undefined)
      wrong.push(`${restoredFrom.id} is no checkpoint`)
    if (result?.restoredFrom != null && from < newest)
      wrong.push(`attempt ${number} began at ${from} though ${newest} was saved`)
    newest = Math.max(newest, result?.checkpoint?.attempt === number ? result.checkpoint.step : 0, from)
  }
  return wrong
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

async function sameWeights(
  { store }: Stored,
  { id, state }: JobStatus,
  stepsTotal: number,
): Promise<string[]> {
  if (state !== 'succeeded') return []
  const weights = await readArtifact(store, id, WEIGHTS_ARTIFACT)
  if (weights === undefined) return ['the job succeeded and left no weights']
  return weights.equals(weightsAfter(stepsTotal)) ? [] : ['the weights are not those of an undisturbed run']
}

async function wholeLog({ store }: Stored, { id, attempts }: JobStatus): Promise<string[]> {
  const wrong: string[] = []
  for (const { number } of attempts) {
    let last = 0
    for await (const line of readLines(
      store,
      { jobId: id, attempt: number, afterLine: 0, isOver: true },
      parseLogLine,
    )) {
      if (line.s !== 'gap' && line.n !== last + 1)
        wrong.push(`attempt ${number}: line ${line.n} follows ${last}`)
      last = line.n
    }
  }
  return wrong
}

/** Every attempt's plan, order, settlement and decision can be read afterwards. */
async function explained({ store }: Stored, { id, attempts }: JobStatus): Promise<string[]> {
  const records = await readRecords(store, id)
  return attempts.flatMap(({ number }) =>
    (['planned', 'settled', 'decided'] as const)
      .filter((kind) => !records.some((entry) => entry.kind === kind && entry.attempt === number))
      .map((kind) => `attempt ${number}: nothing on record of how it was ${kind}`),
  )
}
