import type { Settlement } from '../../core/activities'
import { byNewest } from '../../core/job/checkpoint'
import type { Drain, RunnerResult } from '../../core/documents'
import type { JobStatus } from '../../core/messages'
import { HOUR_MS, SECOND_MS } from '../../core/time/time'
import { layout } from '../../storage/layout'
import { readRecords } from '../../storage/record'
import { STEADY } from '../backends/scripted/behaviour'
import { breachesOnRecord, coveredMs, endedAs, oneAtWork, readDocument, type Span } from '../kit/invariants'
import { sum } from '../kit/table'
import type { CloudGround } from './cloud'
import type { CloudMachine } from './machine'
import { patient } from '../support/patience'
import { PATIENCE_MS, type CloudProvider, type Instance } from './provider'
import { TIMING, type CloudWorld } from './world'

/** What is known of a run that is over. */
export interface Aftermath {
  deployment: CloudGround
  world: Pick<CloudWorld, 'mayEnd' | 'isSureToStrike' | 'isEndedByHand' | 'lagMs'>
  status: JobStatus
  /** As the cloud knew them when the job was over, before any sweep. */
  left: Instance[]
  /** As the cloud knows them at last. */
  instances: Instance[]
  /** When nothing could ask the provider: everything that asks was dead, or had no server that gives it its tasks. */
  downtimes?: readonly Span[]
}

/** Every breach of the invariants, in words, by what really ran and what it cost; empty when all of them held. */
export async function breaches(after: Aftermath): Promise<string[]> {
  return [
    ...machinesAtWork(after),
    ...leftToSweep(after),
    ...leftAtLast(after),
    ...boughtOnce(after),
    ...(await onlyTheIllEnded(after)),
    ...endsSeen(after),
    ...(await otherBreaches(after)),
  ]
}

/** Breaches of what is neither about machines beyond the one that there should be, nor about the end of one that was well. */
export async function otherBreaches(after: Aftermath): Promise<string[]> {
  return [
    ...endedAs(after.status, after.world.mayEnd),
    ...struck(after),
    ...withinBudget(after),
    ...costAgrees(after),
    ...realisedOnRecord(after),
    ...newestOnRecord(after),
    ...(await breachesOnRecord(after.deployment.storage.store, after.status, STEADY.stepsTotal)),
  ]
}

/** A fault that never had its occasion proves nothing. */
function struck({ deployment: { cloud }, world: { isSureToStrike } }: Aftermath): string[] {
  if (!isSureToStrike) return []
  return cloud.faults().flatMap(({ rule, struck }) => (struck > 0 ? [] : [`${rule.fault} never struck`]))
}

export function machinesAtWork({ deployment: { machines } }: Aftermath): string[] {
  return oneAtWork(
    machines.map(({ attempt, workedFromMs, workedToMs }) => ({
      attempt: attempt!,
      workedFromMs,
      workedToMs,
    })),
  )
}

/** The sweep after a job has nothing to find, since every attempt has settled. */
export function leftToSweep({ left, deployment: { provider } }: Aftermath): string[] {
  return leaksIn(left, provider).map(
    (one) => `${attemptOf(one, provider)} was left to garbage collection: ${one.id}`,
  )
}

/** After the sweep nothing is there at all. */
export function leftAtLast({ instances, deployment: { provider } }: Aftermath): string[] {
  return leaksIn(instances, provider).map(
    (one) => `${attemptOf(one, provider)} is left: ${one.id}, ${one.state}`,
  )
}

function leaksIn(instances: Instance[], { leaking }: CloudProvider): Instance[] {
  return instances.filter(({ state }) => leaking.includes(state))
}

function attemptOf({ tags }: Instance, provider: CloudProvider): string {
  return provider.attemptOf(tags) ?? 'something without an owner'
}

/** One machine for each attempt, and the same unchanged order however often it was sent. */
export function boughtOnce(after: Aftermath): string[] {
  return [...oneForEach(after), ...sentUnchanged(after)]
}

export function oneForEach({ instances, deployment: { provider } }: Aftermath): string[] {
  return [...groupBy(instances, (one) => attemptOf(one, provider))].flatMap(([attemptId, bought]) =>
    bought.length > 1 ? [`${attemptId} got ${bought.map(({ id }) => id).join(' and ')}`] : [],
  )
}

/** What each send must have of its own, such as its name, does not belong to the order. */
function sentUnchanged({ deployment: { cloud, provider } }: Aftermath): string[] {
  // What a provider throttles it does not even read.
  const sent = cloud.journal
    .calls(provider.calls.launch)
    .filter(({ parameters }) => parameters !== undefined)
    .map(provider.orderIn)
  return [...groupBy(sent, ({ attemptId }) => attemptId ?? 'something')].flatMap(([attemptId, orders]) =>
    new Set(orders.map(({ order }) => JSON.stringify(order))).size > 1
      ? [`${attemptId} was ordered in different words`]
      : [],
  )
}

function groupBy<T>(all: T[], keyOf: (one: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>()
  for (const one of all) groups.set(keyOf(one), [...(groups.get(keyOf(one)) ?? []), one])
  return groups
}

function withinBudget({ instances, status: { budgetMicroUsd = Infinity } }: Aftermath): string[] {
  const spent = sum(instances.map(microUsdOf))
  return spent <= budgetMicroUsd ? [] : [`the cloud's bill is ${spent} of a budget of ${budgetMicroUsd}`]
}

/** What no provider reports to the millisecond: an end comes in whole seconds, and a bill by the started one. */
const ROUNDING_MS = 2 * SECOND_MS

/**
 * Ours is the bill for the time from a machine's launch to its end, as the cloud's, which begins when it runs: they differ by what that
 * takes, by how late an end is seen, and by what each rounds up. A machine with unreported prices counts as what it can cost at most.
 */
function costAgrees({ deployment, status: { attempts }, instances, world }: Aftermath): string[] {
  const { provider } = deployment
  const { atLeastMs, stepMs, dearestMicroUsd } = provider.billing
  return attempts.flatMap(({ attemptId, launchedAtMs, costMicroUsd, costBasis, endedAtMs }) => {
    const bought = instances.filter((one) => attemptOf(one, provider) === attemptId)
    const billed = sum(bought.map(microUsdOf))
    const [one] = bought
    if (one === undefined)
      return costMicroUsd > 0 ? [`${attemptId} cost ${costMicroUsd} without a machine`] : []
    const { fromMs, untilMs = Infinity } = one.bill
    if (fromMs === undefined) return []
    const dearest = dearestMicroUsd / HOUR_MS
    const earlyMs = fromMs - one.launchedAtMs
    const billedMs = Math.max(atLeastMs, untilMs - fromMs)
    const slackMs = earlyMs + seenLateMs(one, deployment) + ROUNDING_MS + world.lagMs
    const most = costBasis === 'dearest' ? Math.max(billed, dearest * billedMs) : billed
    const isOver = costMicroUsd > most + dearest * Math.ceil(slackMs / stepMs) * stepMs
    const isUnseen = provider.losesMachines && launchedAtMs === undefined && untilMs - fromMs <= world.lagMs
    const isUnder = !isUnseen && costMicroUsd < billed - dearest * ROUNDING_MS
    const words = `${attemptId} cost ${costMicroUsd} by our meter and ${billed} by the cloud's`
    return isOver || isUnder ? [`${words} (${fromMs} to ${untilMs}, we saw its end at ${endedAtMs})`] : []
  })
}

/** How much later than its end a machine was seen to have ended, where its provider does not date ends. */
function seenLateMs(instance: Instance, { cloud, provider }: CloudGround): number {
  const { untilMs = Infinity } = instance.bill
  return untilMs === Infinity ? 0 : provider.toldEndMs(instance, cloud) - untilMs
}

/** However busy this computer is. */
const SEEN_WITHIN_MS = 20_000

/** Only questions without an answer may hide an end for long, or an outage of all that asks. */
export function endsSeen({ deployment, instances, downtimes = [] }: Aftermath): string[] {
  const { cloud, provider } = deployment
  const calls = cloud.journal.calls({ service: provider.name })
  return instances.flatMap((one) => {
    const { untilMs = Infinity } = one.bill
    const lateMs = seenLateMs(one, deployment)
    const unaskedMs = coveredMs({ fromMs: untilMs, toMs: untilMs + lateMs }, downtimes)
    if (lateMs - unaskedMs <= patient(SEEN_WITHIN_MS)) return []
    // One that was not answered may have been asked before the end.
    const sinceMs = untilMs - patient(PATIENCE_MS)
    const isHidden = calls.some(
      ({ outcome, isAnswerLost, atMs }) =>
        (outcome !== 'ok' || isAnswerLost) && atMs >= sinceMs && atMs <= untilMs + lateMs,
    )
    return isHidden ? [] : [`the end of ${one.id} was seen ${lateMs} ms late`]
  })
}

function microUsdOf({ bill: { usd } }: Instance): number {
  return Math.round(usd * 1e6)
}

/** What was got is on record as the cloud knows it, and was what was asked for. */
function realisedOnRecord({
  deployment: { provider },
  status: { attempts },
  instances,
}: Aftermath): string[] {
  return attempts.flatMap(({ attemptId, capacityType, realised }) => {
    const one = instances.find((each) => attemptOf(each, provider) === attemptId)
    if (one === undefined || realised === undefined) return []
    const really = `${one.capacity} ${one.type} ${one.zone}`
    const told = `${realised.capacityType} ${provider.typeOf(realised.type)} ${realised.place}`
    return [
      ...(really === told ? [] : [`${attemptId} got ${really}, and on record is ${told}`]),
      ...(one.capacity === capacityType
        ? []
        : [`${attemptId} asked for ${capacityType} and got ${one.capacity}`]),
    ]
  })
}

/** An ill machine that is silent for that long: it misses its beats, and two looks are as far apart as lists may be late. */
function givenUpAfterMs({ lagMs }: CloudProvider): number {
  return Math.max(lagMs, BEATS_MISSED * TIMING.beatMs)
}

const BEATS_MISSED = 3

/** A machine that was well and at work ends by its owner's wish, or by the cloud, and not by Crucible. */
export async function onlyTheIllEnded(after: Aftermath): Promise<string[]> {
  const { deployment, instances, status } = after
  const wrong: string[] = []
  const { store } = deployment.storage
  const settled = (await readRecords(store, status.id)).filter(({ kind }) => kind === 'settled')
  const { provider, cloud } = deployment
  for (const machine of deployment.machines) {
    const instance = instances.find(({ id }) => id === machine.id)
    if (instance === undefined) continue
    const drain = await readDocument<Drain>(store, layout.drain(status.id, machine.attempt ?? 0))
    const result = await readDocument<RunnerResult>(store, layout.result(status.id, machine.attempt ?? 0))
    const isOurs = machine.shutDownAtWorkAtMs !== undefined && provider.isOurEnd(instance, cloud)
    const isGivenUp =
      machine.workedFromMs !== undefined && ['superseded', 'lease'].includes(result?.reason ?? '')
    if (!isOurs && !isGivenUp) continue
    // Ended for silence: that it was silent is what its own beats must bear out, and where this process is starved they do.
    const { end } = (settled.find(({ attempt }) => attempt === machine.attempt)?.data ??
      {}) as Partial<Settlement>
    const isForSilence = end?.kind === 'failed' && end.failure.code === 'silent'
    if (isForSilence && machine.longestSilenceMs >= TIMING.silenceMs) continue
    const isForIllness = provider.isIll(instance)
    if (isForIllness && machine.longestSilenceMs >= givenUpAfterMs(provider)) continue
    if (isQueuedTooLong(after, instance)) continue
    if (!isWished(after, machine, drain))
      wrong.push(`attempt ${machine.attempt}: a machine at work was ended, drain: ${JSON.stringify(drain)}`)
  }
  return wrong
}

/**
 * A machine may leave its provider's queue as soon as we have looked for the last time, and is ended then although it has begun: it had
 * waited for longer than its order allows, and lives no longer than a look takes.
 */
function isQueuedTooLong({ deployment, world }: Aftermath, { launchedAtMs, bill }: Instance): boolean {
  const { queueMs = Infinity } = deployment.provider.timing
  const { fromMs = Infinity, untilMs = Infinity } = bill
  return fromMs - launchedAtMs >= queueMs && untilMs - fromMs <= patient(world.lagMs)
}

function isWished({ world: { isEndedByHand } }: Aftermath, machine: CloudMachine, drain?: Drain): boolean {
  if (drain === undefined) return false
  if (drain.reason === 'superseded') return isEndedByHand
  const { shutDownAtWorkAtMs = Infinity } = machine
  return shutDownAtWorkAtMs >= drain.requestedAtMs + drain.windowMs
}

/** What is on record as the newest checkpoint is the newest that had its manifest when the attempt ended. */
function newestOnRecord({ deployment, status }: Aftermath): string[] {
  return status.attempts.flatMap(({ number, checkpoint }) => {
    const [newest] = deployment.storage.completed.filter(({ attempt }) => attempt <= number).sort(byNewest)
    if (checkpoint?.id === newest?.id) return []
    return [
      `attempt ${number}: on record is ${checkpoint?.id ?? 'no checkpoint'}, complete was ${newest?.id ?? 'none'}`,
    ]
  })
}
