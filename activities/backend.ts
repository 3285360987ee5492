import { Context } from '@temporalio/activity'
import { CODES } from '../core/errors'
import type { Backend } from '../backends/backend'
import { BackendError } from '../backends/errors'
import type {
  BackendActivities,
  LaunchInput,
  LaunchOutcome,
  SettleInput,
  Settlement,
} from '../core/activities'
import type { Artifact, RunnerOrder } from '../core/documents'
import { formatUsd } from '../core/money'
import { formatDuration, MINUTE_MS } from '../core/time'
import { leaseMsWithin } from '../planner/liveness'
import { putRecord } from '../storage/record'
import type { ObjectStore } from '../storage/store'
import { answerOf } from './plan/asking'
import { findMachine } from './backend-machines'
import { AttemptDocuments } from './documents'
import { drainMachine } from './drain-machine'
import { collectGarbage, type OwnerLookup } from './garbage/garbage'
import type { GrantSource } from './watch/grants'
import { beating } from './heartbeat'
import { interruptMachine } from './interrupting'
import { settleAttempt } from './settle/settle'
import { endTurn, wakeNext, type Wake } from './waking'

/** What a backend's worker is made of. */
export interface BackendDeps {
  backend: Backend
  store: ObjectStore
  now: () => number
  /** Seals the job's secrets anew for one attempt; does nothing for a job without any. */
  handOverSecrets: (order: LaunchInput['order']) => Promise<void>
  /** Puts `***` in the place of every value of the job's secrets. */
  maskSecrets: (jobId: string, text: string) => Promise<string>
  owners: OwnerLookup
  /** Has a job that waits look at once, when a machine has ended; without it each looks when its pause is over. */
  wake?: Wake | undefined
  /** Where the machines' credentials for the store come from; none where they have their own. */
  grants?: GrantSource | undefined
}

/** A backend's verbs as activities. Errors are turned into failures by `failureInterceptor`. */
export function createBackendActivities(deps: BackendDeps): BackendActivities {
  const { backend } = deps
  return {
    offers: (wanted) => beating((signal) => answerOf(backend, wanted, signal)),

    launch: (input) =>
      beating(async (signal) => {
        const outcome = await launch(deps, input, signal)
        // The next in line may ask now; should this fail, its turn comes after half a minute.
        await endTurn(deps, input.order.jobId, outcome).catch(() => undefined)
        return outcome
      }),

    find: ({ order }) => beating((signal) => findMachine(deps, order, signal)),

    start: ({ handle, order }) =>
      beating(async (signal) => {
        await backend.start?.(handle, order, { signal })
      }),

    drainMachine: (input) => beating((signal) => drainMachine(deps, input, signal)),

    interrupt: (input) => beating((signal) => interruptMachine(deps, input, signal)),

    settle: (input) =>
      beating(async (signal) => {
        const settlement = await onRecord(deps, input, await settleAttempt(deps, input, signal))
        await wakeNext(deps, backend.name).catch(() => undefined)
        return settlement
      }),

    collectGarbage: (input) => beating((signal) => collectGarbage(deps, input, signal)),
  }
}

async function launch(deps: BackendDeps, input: LaunchInput, signal: AbortSignal): Promise<LaunchOutcome> {
  const { backend, store, now } = deps
  const { order } = input
  const documents = new AttemptDocuments(store, order, now)
  await documents.putOrder({ ...order.runner, leaseMs: await firstLeaseMs(deps, input) })
  await putRecord(store, order.jobId, {
    seq: input.recordSeq,
    atMs: now(),
    kind: 'launched',
    attempt: order.attempt,
    summary: `Ordered ${order.backend} ${order.capacityType} at up to ${formatUsd(order.priceMaxMicroUsdPerHour)}/h`,
    data: order,
  })
  await deps.handOverSecrets(order)
  // A repeated activity may follow one that was sent and whose answer is lost. A provider that does not recognise the token
  // would sell a second machine: look for the first one instead.
  if (Context.current().info.attempt > 1 && backend.capabilities.idempotency === 'tag') {
    return { kind: 'unconfirmed', findAfterMs: 0 }
  }
  const outcome = await backend.launch(order, { signal })
  throwIfPlaceTaken(outcome)
  if (outcome.kind === 'launched') await documents.putMachine(outcome.handle)
  return outcome
}

/** For this long an order that lost its place to another job waits for the next one; sending it again leaves nothing in the history. */
const PLACE_WAIT_MS = MINUTE_MS

/** A lost race is no failed attempt: Temporal sends the order again. */
function throwIfPlaceTaken(outcome: LaunchOutcome): void {
  if (outcome.kind !== 'refused' || outcome.failure.code !== CODES.placeTaken) return
  const { scheduledTimestampMs, currentAttemptScheduledTimestampMs } = Context.current().info
  if (currentAttemptScheduledTimestampMs - scheduledTimestampMs < PLACE_WAIT_MS)
    throw new BackendError({ ...outcome.failure, class: 'transient' })
}

/**
 * A lease that the machine's first credentials outlive. Where nobody gives any, this is where it shows, before a machine is paid
 * for that could reach nothing.
 */
async function firstLeaseMs({ grants }: BackendDeps, { order }: LaunchInput): Promise<number> {
  const { runner }: { runner: RunnerOrder } = order
  if (grants === undefined) return runner.leaseMs
  const holdsForMs = await grants.learnHoldsForMs(order)
  const leaseMs = leaseMsWithin(runner, holdsForMs)
  if (leaseMs > 0) return leaseMs
  const [grant, drain] = [holdsForMs, runner.drainMs].map(formatDuration)
  throw new BackendError({
    class: 'invalid',
    message: `The machines' credentials for the store hold for ${grant}, and a drain alone takes ${drain}.`,
    hint: 'Let the sessions of CRUCIBLE_GRANT_ROLE last longer, or set a shorter CRUCIBLE_DRAIN.',
  })
}

/** What was settled first holds, should the activity be repeated after its answer was lost. */
async function onRecord(
  { store, now }: BackendDeps,
  { order, recordSeq }: SettleInput,
  settlement: Settlement,
): Promise<Settlement> {
  const entry = await putRecord(store, order.jobId, {
    seq: recordSeq,
    atMs: now(),
    kind: 'settled',
    attempt: order.attempt,
    summary: sentenceOf(order.attempt, settlement),
    data: settlement,
  })
  const settled = entry.data as Settlement
  const { metering, artifacts } = settled
  return {
    ...settled,
    ...(metering && { metering: { ...metering, prices: metering.prices.slice(-PRICES_SENT_MAX) } }),
    artifacts: sendable(artifacts),
  }
}

/** The others are on record. */
const PRICES_SENT_MAX = 10

/** Temporal refuses answers of more than 2 MB, and keeps this one several times over: the record has all artifacts. */
const ARTIFACTS_BYTES_MAX = 256 * 1024

/** The first artifacts, as many as may go through the server. */
function sendable(artifacts: Artifact[]): Artifact[] {
  let leftBytes = ARTIFACTS_BYTES_MAX
  return artifacts.filter((artifact) => (leftBytes -= Buffer.byteLength(JSON.stringify(artifact))) >= 0)
}

/** The failure's own words, which are sentences, come last. */
function sentenceOf(attempt: number, { end, costMicroUsd, metering }: Settlement): string {
  const words = metering?.basis === 'dearest' ? ' at most (nobody told its prices)' : ''
  const cost = `${formatUsd(costMicroUsd)}${words}`
  switch (end.kind) {
    case 'succeeded':
      return `Attempt ${attempt} succeeded, ${cost}`
    case 'stopped':
      return `Attempt ${attempt} stopped (${end.by}), ${cost}`
    case 'failed':
      return `Attempt ${attempt} failed (${end.failure.class}), ${cost}: ${end.failure.message}`
  }
}
