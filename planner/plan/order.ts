import type { PlanInput } from '../../core/activities'
import { CHECKPOINTS_KEPT } from '../../core/job/checkpoint'
import type { Capabilities } from '../../core/capabilities'
import { attemptBudget, leftOfBudget } from '../../core/money/budget'
import { defined } from '../../core/defined'
import type { NoticeSource, RunnerOrder } from '../../core/documents'
import type { Expected } from '../../core/job/forecast'
import type { JobSpec } from '../../core/job/job'
import { dearestPriceOf, isInterruptible, offerKey, type Offer } from '../../core/offer'
import type { BackendAnswer, Order, Placement, Plan } from '../../core/job/plan'
import { attemptIdOf, orderTokenOf } from '../../core/queues'
import { DEFAULT_TIMING, type Timing } from '../../core/time/timing'
import { INTERCHANGEABLE_COST_FACTOR, INTERCHANGEABLE_TIME_FACTOR, OFFERS_PER_ORDER_MAX } from './assumptions'
import { isShaky, isDeprioritised } from './avoidance'
import { workOn } from './work'

/** The best placement of a plan as an order: with equivalent offers, and everything the machine must know. */
export function makeOrder(plan: Plan, input: PlanInput, answers: BackendAnswer[]): Order {
  const [best] = plan.placements
  const capabilities = answers.find(({ backend }) => backend === best?.offer.backend)?.capabilities
  if (best === undefined || capabilities === undefined) throw new Error('an order needs a placement')
  // Compare with the best offer's unpenalised cost.
  const costMaxMicroUsd = (best.calmMicroUsd ?? best.costMicroUsd) * INTERCHANGEABLE_COST_FACTOR
  const workMs = ({ offer }: Placement): number => workOn(offer, { spec: input.resolved.spec }).ms
  // A much faster one at a higher price would stop a slow machine early, for the budget counts at the highest.
  const isAlikeInTime = (one: Placement): boolean =>
    Math.max(workMs(one), workMs(best)) <= Math.min(workMs(one), workMs(best)) * INTERCHANGEABLE_TIME_FACTOR
  const placements = plan.placements
    .filter(
      (one) =>
        one === best ||
        (isInterchangeable(one.offer, best.offer) &&
          isAsWelcome(one.offer, best.offer, input) &&
          one.isLate === best.isLate &&
          one.costMicroUsd <= costMaxMicroUsd &&
          isAlikeInTime(one)),
    )
    .slice(0, capabilities.offersPerOrder === 'one' ? 1 : OFFERS_PER_ORDER_MAX)
  const offers = placements.map(({ offer }) => offer)
  // Any of the placements may be launched, and one with more interruptions restores more often.
  const transferMaxMicroUsd = Math.max(...placements.map(({ transferMicroUsd: each = 0 }) => each))
  const attemptId = attemptIdOf(input.jobId, input.attempt)
  const priceMaxMicroUsdPerHour = Math.max(...offers.map(dearestPriceOf))
  const { billedInStepsOfMs } = best.offer
  const money = {
    priceMaxMicroUsdPerHour,
    billedInStepsOfMs,
    isBilledOn: capabilities.billsUntil === 'terminate' ? (true as const) : undefined,
  }
  const { image } = input.resolved.spec
  return {
    attemptId,
    jobId: input.jobId,
    attempt: input.attempt,
    deployment: input.deployment,
    backend: best.offer.backend,
    capacityType: best.offer.capacityType,
    offers,
    resources: input.resolved.spec.resources,
    nodes: 1,
    token: orderTokenOf(attemptId, input.deployment),
    expected: expectedOf(best, plan),
    runnerStart: capabilities.runnerStart,
    runnerSha256: input.resolved.runnerSha256,
    storeUrl: input.resolved.storeUrl,
    ...money,
    transferMicroUsd: transferMaxMicroUsd === 0 ? undefined : transferMaxMicroUsd,
    isPaced: capabilities.pace?.launchesPerMinute === undefined ? undefined : true,
    ...(capabilities.imageRunner === 'provider' &&
      defined({ image, requirements: input.bundle?.requirements })),
    codeSha256: input.bundle?.contentSha256,
    tags: input.resolved.spec.tags,
    runner: runnerOrder(input, {
      best: best.offer,
      capabilities,
      money: { ...money, transferMicroUsd: transferMaxMicroUsd },
    }),
  }
}

function expectedOf({ costMicroUsd, durationMs, forecast }: Placement, plan: Plan): Expected {
  const isAssumed = plan.isDurationAssumed && { isDurationAssumed: true as const }
  return { costMicroUsd, durationMs, forecast, ...isAssumed }
}

function isInterchangeable(offer: Offer, best: Offer): boolean {
  return (
    offer.backend === best.backend &&
    // An order goes to one part of its provider.
    offer.region === best.region &&
    offer.capacityType === best.capacityType &&
    // The machine counts its budget in one kind of steps, and its time against one limit.
    offer.billedInStepsOfMs === best.billedInStepsOfMs &&
    offer.runMsMax === best.runMsMax &&
    // Each reservation needs a separate order.
    (offer.reservationId === undefined || offerKey(offer) === offerKey(best))
  )
}

/** A placement that replaces an avoided pool must not be grouped with that pool. */
function isAsWelcome(offer: Offer, best: Offer, { avoid }: PlanInput): boolean {
  return [isDeprioritised, isShaky].every((is) => is(best, avoid) || !is(offer, avoid))
}

/** Returns the notice source of machines that their provider may take back, or whose reservation ends; others have none. */
function noticeOf(offer: Offer, { notice }: Capabilities): NoticeSource {
  const isTakenBack = isInterruptible(offer) || offer.capacityType === 'reserved'
  return isTakenBack && notice !== undefined ? notice : { kind: 'none' }
}

/** Returns how the machine counts its time if its launch may be queued: from its own beginning. */
function queueTerms(
  { runMsMax }: Offer,
  { queues = false }: Capabilities,
  { queueMs = DEFAULT_TIMING.queueMs }: Timing,
): Pick<RunnerOrder, 'queueMs' | 'runMsMax'> {
  return queues ? { queueMs, runMsMax } : {}
}

interface Terms {
  best: Offer
  capabilities: Capabilities
  money: Parameters<typeof attemptBudget>[1]
}

function runnerOrder(input: PlanInput, { best, capabilities, money }: Terms): RunnerOrder {
  const { spec, timing } = input.resolved
  const { usableUntilMs } = best
  // A provider that runs the image logs in to the registry with its own credentials.
  const { image, imageLogin } = capabilities.imageRunner === 'provider' ? {} : spec
  const leftMicroUsd = leftOfBudget(input.budgetMicroUsd, input.ledger.spentMicroUsd)
  return {
    version: 1,
    jobId: input.jobId,
    jobName: spec.name,
    attempt: input.attempt,
    attemptId: attemptIdOf(input.jobId, input.attempt),
    run: spec.run,
    setup: spec.setup ?? null,
    shell: spec.shell,
    image: image ?? null,
    imageLogin,
    shmGiB: spec.resources.shmGiB ?? null,
    env: spec.env,
    secrets: spec.secrets,
    bundle: input.bundle === null ? null : { sha256: input.bundle.sha256, sizeBytes: input.bundle.sizeBytes },
    inputs: spec.inputs,
    outputs: spec.outputs,
    requiresOutputs: spec.requiresOutputs,
    checkpoint: {
      directory: spec.checkpoint.directory ?? null,
      everyMs: spec.checkpoint.everyMs ?? 0,
      quietMs: spec.checkpoint.quietMs ?? timing.checkpointQuietMs,
      ...checkpointRules(spec.checkpoint),
    },
    limits: {
      seq: 0,
      deadlineAtMs: input.deadlineAtMs ?? null,
      budget: attemptBudget(leftMicroUsd, money),
    },
    leaseMs: timing.leaseMs,
    drainMs: timing.drainMs,
    powerOffMs: timing.powerOffMs,
    startWithinMs: timing.startWithinMs,
    ...queueTerms(best, capabilities, timing),
    beatMs: timing.beatMs,
    registryMs: timing.registryMs,
    artifactGiBMax: timing.artifactGiBMax,
    notice: noticeOf(best, capabilities),
    usableUntilMs,
    onRebalance: spec.onRebalance,
  }
}

/** The job's checkpoint settings, for the order. */
function checkpointRules({
  complete,
  include,
  exclude,
  signal,
  keep = CHECKPOINTS_KEPT,
}: JobSpec['checkpoint']) {
  return {
    complete,
    include,
    exclude,
    signal,
    keep,
  }
}
