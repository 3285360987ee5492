import type { PlanInput } from '../core/activities'
import { CHECKPOINTS_KEPT } from '../core/checkpoint'
import type { Capabilities } from '../core/capabilities'
import { attemptBudget, leftOfBudget } from '../core/budget'
import { defined } from '../core/defined'
import type { NoticeSource, RunnerOrder } from '../core/documents'
import type { JobSpec } from '../core/job'
import { dearestPriceOf, offerKey, type Offer } from '../core/offer'
import type { BackendAnswer, Order, Plan } from '../core/plan'
import { attemptIdOf } from '../core/queues'
import { INTERCHANGEABLE_COST_FACTOR, OFFERS_PER_ORDER_MAX } from './assumptions'
import { isShaky, isDeprioritised } from './avoidance'
import { estimate } from './price'

/** The best placement of a plan as an order: with equivalent offers, and everything the machine must know. */
export function makeOrder(plan: Plan, input: PlanInput, answers: BackendAnswer[]): Order {
  const [best] = plan.placements
  const capabilities = answers.find(({ backend }) => backend === best?.offer.backend)?.capabilities
  if (best === undefined || capabilities === undefined) throw new Error('an order needs a placement')
  // Compare with the best offer's unpenalised cost.
  const { transferMicroUsd = 0 } = best
  const machineMicroUsd = estimate(best.offer, input.resolved.spec).costMicroUsd
  const costMaxMicroUsd = (machineMicroUsd + transferMicroUsd) * INTERCHANGEABLE_COST_FACTOR
  const placements = plan.placements
    .filter(
      ({ offer, costMicroUsd }) =>
        offer === best.offer ||
        (isInterchangeable(offer, best.offer) &&
          isAsWelcome(offer, best.offer, input) &&
          costMicroUsd <= costMaxMicroUsd),
    )
    .slice(0, OFFERS_PER_ORDER_MAX)
  const offers = placements.map(({ offer }) => offer)
  // Any of them may be launched, and one with more interruptions restores more often.
  const transferMaxMicroUsd = Math.max(...placements.map(({ transferMicroUsd: each = 0 }) => each))
  const attemptId = attemptIdOf(input.jobId, input.attempt)
  const priceMax = Math.max(...offers.map(dearestPriceOf))
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
    token: attemptId,
    runnerStart: capabilities.runnerStart,
    runnerSha256: input.resolved.runnerSha256,
    storeUrl: input.resolved.storeUrl,
    priceMaxMicroUsdPerHour: priceMax,
    ...(transferMaxMicroUsd === 0 ? {} : { transferMicroUsd: transferMaxMicroUsd }),
    ...(capabilities.pace?.launchesPerMinute === undefined ? {} : { isPaced: true }),
    runner: runnerOrder(input, {
      priceMax,
      transferMicroUsd: transferMaxMicroUsd,
      notice: noticeOf(best.offer, capabilities),
      usableUntilMs: best.offer.usableUntilMs,
    }),
  }
}

function isInterchangeable(offer: Offer, best: Offer): boolean {
  return (
    offer.backend === best.backend &&
    // An order goes to one part of its provider.
    offer.region === best.region &&
    offer.capacityType === best.capacityType &&
    // Each reservation needs a separate order.
    (offer.reservationId === undefined || offerKey(offer) === offerKey(best))
  )
}

/** A placement that replaces an avoided pool must not be grouped with that pool. */
function isAsWelcome(offer: Offer, best: Offer, { avoid }: PlanInput): boolean {
  return [isDeprioritised, isShaky].every((is) => is(best, avoid) || !is(offer, avoid))
}

/** Only interruptible machines get this. */
function noticeOf({ capacityType }: Offer, { notice }: Capabilities): NoticeSource {
  return capacityType === 'on-demand' || notice === undefined ? { kind: 'none' } : notice
}

function runnerOrder(
  input: PlanInput,
  {
    priceMax,
    transferMicroUsd,
    notice,
    usableUntilMs,
  }: {
    priceMax: number
    transferMicroUsd: number
    notice: NoticeSource
    usableUntilMs?: number | undefined
  },
): RunnerOrder {
  const { spec, timing } = input.resolved
  const leftMicroUsd = leftOfBudget(input.budgetMicroUsd, input.ledger.spentMicroUsd)
  return {
    version: 1,
    jobId: input.jobId,
    jobName: spec.name,
    attempt: input.attempt,
    attemptId: attemptIdOf(input.jobId, input.attempt),
    run: spec.run,
    setup: spec.setup ?? null,
    image: spec.image ?? null,
    ...defined({ imageLogin: spec.imageLogin }),
    shmGiB: spec.resources.shmGiB ?? null,
    env: spec.env,
    secrets: spec.secrets,
    bundle: input.bundle === null ? null : { sha256: input.bundle.sha256, sizeBytes: input.bundle.sizeBytes },
    inputs: spec.inputs,
    outputs: spec.outputs,
    checkpoint: {
      directory: spec.checkpoint.directory ?? null,
      everyMs: spec.checkpoint.everyMs ?? 0,
      quietMs: spec.checkpoint.quietMs ?? timing.checkpointQuietMs,
      ...checkpointRules(spec.checkpoint),
    },
    limits: {
      seq: 0,
      deadlineAtMs: input.deadlineAtMs ?? null,
      budget: attemptBudget(leftMicroUsd, { priceMaxMicroUsdPerHour: priceMax, transferMicroUsd }),
    },
    leaseMs: timing.leaseMs,
    drainMs: timing.drainMs,
    powerOffMs: timing.powerOffMs,
    startWithinMs: timing.startWithinMs,
    beatMs: timing.beatMs,
    ...defined({ registryMs: timing.registryMs, artifactGiBMax: timing.artifactGiBMax }),
    notice,
    ...defined({ usableUntilMs, onRebalance: spec.onRebalance }),
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
    ...defined({ complete, include, exclude, signal }),
    keep,
  }
}
