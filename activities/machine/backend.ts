import { Context } from '@temporalio/activity'
import { CODES } from '../../core/errors'
import { BackendError } from '../../backends/errors'
import type {
  BackendActivities,
  LaunchInput,
  LaunchOutcome,
  SettleInput,
  Settlement,
} from '../../core/activities'
import { stopReason } from '../../core/job/attempt-record'
import type { Artifact, RunnerOrder } from '../../core/documents'
import type { Failure } from '../../core/failure'
import { formatUsd } from '../../core/money/money'
import type { Order } from '../../core/job/plan'
import { Ages } from '../../core/time/ages'
import { formatDuration, MINUTE_MS } from '../../core/time/time'
import { leaseMsWithin } from '../../planner/policy/liveness'
import { putEnd, putRecord, readRecords } from '../../storage/record'
import { answerOf } from '../plan/asking'
import { sent } from '../plan/sent-answer'
import { findMachine } from './backend-machines'
import { AttemptDocuments } from '../documents'
import { drainMachine } from './draining'
import { collectGarbage, type OwnerLookup } from '../garbage/garbage'
import type { GrantSource } from '../watch/grants'
import type { LaunchPace } from './launch-pace'
import { beating } from '../heartbeat'
import { interruptMachine } from './interrupting'
import { sendOnce, type SendingDeps } from './sending'
import { settleAttempt } from '../settle/settle'
import { shareLooks } from '../settle/shared-looks'
import { endTurn, wakeNext, type Wake } from '../waking'

/** Dependencies of a backend's worker. */
export interface BackendDeps extends Omit<SendingDeps, 'ages'> {
  /** For durations: it never steps. */
  monotonicMs: () => number
  /** Seals the job's secrets anew for one attempt; does nothing for a job without secrets. */
  handOverSecrets: (order: LaunchInput['order']) => Promise<void>
  /** Replaces every value of the job's secrets by `***`. */
  maskSecrets: (jobId: string, text: string) => Promise<string>
  owners: OwnerLookup
  /** Wakes a waiting job when a machine has ended; without it, each job waits for the end of its pause. */
  wake?: Wake | undefined
  /** Source of the machines' credentials for the store; missing for machines with their own. */
  grants?: GrantSource | undefined
  /** Keeper of the launch rate; missing if the account does not limit launches. */
  launchPace?: LaunchPace | undefined
}

type Deps = BackendDeps & SendingDeps

/** A backend's verbs as activities. `failureInterceptor` converts errors to failures. */
export function createBackendActivities(given: BackendDeps): BackendActivities {
  const { backend } = given
  const deps: Deps = { ...given, ages: new Ages(given) }
  const looks = shareLooks(backend, deps.monotonicMs)
  return {
    offers: (wanted) => beating(async (signal) => sent(await answerOf(backend, wanted, signal))),

    servesLaunches: () => beating(async () => backend.capabilities.pace?.launchesPerMinute !== undefined),

    launch: (input) =>
      beating(async (signal) => {
        const outcome = await launch(deps, input, signal)
        // Lets the next job ask now; if this fails, its turn comes after half a minute.
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
        const settlement = await onRecord(deps, input, await settleAttempt({ ...deps, looks }, input, signal))
        await wakeNext(deps, backend.name).catch(() => undefined)
        return settlement
      }),

    collectGarbage: (input) => beating((signal) => collectGarbage(deps, input, signal)),
  }
}

async function launch(deps: Deps, input: LaunchInput, signal: AbortSignal): Promise<LaunchOutcome> {
  const { store, now, launchPace } = deps
  const { order } = input
  const documents = new AttemptDocuments(store, order, now)
  if (await isTooLate(deps, order, documents)) return { kind: 'unconfirmed', findAfterMs: 0 }
  // The turn comes before any document, so that times counted from the order do not run while it waits.
  await launchPace?.turn(signal)
  const isFirst = await documents.putOrder({ ...order.runner, leaseMs: await firstLeaseMs(deps, input) })
  // The launch may have been called off in its line: the withdrawal of an order puts this document first, and then looks for the order.
  if (launchPace !== undefined && (await documents.isToldToStop()))
    return { kind: 'refused', failure: CALLED_OFF }
  if (!isFirst && (await isSettled(deps, input))) return { kind: 'refused', failure: OVER }
  await putRecord(store, order.jobId, {
    seq: input.recordSeq,
    atMs: now(),
    kind: 'launched',
    attempt: order.attempt,
    summary: `Ordered ${order.backend} ${order.capacityType} at up to ${formatUsd(order.priceMaxMicroUsdPerHour)}/h`,
    data: order,
  })
  await deps.handOverSecrets(order)
  const outcome = await slowingDown(launchPace, sendOnce(deps, order, signal))
  throwIfPlaceTaken(outcome)
  return outcome
}

const CALLED_OFF: Failure = { class: 'transient', message: 'The order was cancelled before it was sent.' }

const OVER: Failure = { class: 'transient', message: 'The attempt of this order is over.' }

/**
 * Whether a reset workflow repeats the order of an attempt that is over. Providers forget tokens, and would then sell another machine; without
 * tokens, the settlement has sealed the sends.
 */
async function isSettled({ backend, store }: Deps, { order, recordSeq }: LaunchInput): Promise<boolean> {
  if (backend.capabilities.idempotency !== 'token') return false
  const later = await readRecords(store, order.jobId, { afterSeq: recordSeq })
  return later.some(({ kind, attempt }) => kind === 'settled' && attempt === order.attempt)
}

/** Delays later launches after a throttled one. */
async function slowingDown(
  launchPace: LaunchPace | undefined,
  sending: Promise<LaunchOutcome>,
): Promise<LaunchOutcome> {
  const outcome = await sending.catch((error: unknown) => {
    if (error instanceof BackendError && error.class === 'throttled')
      launchPace?.slowDown(error.failure.retryAfterMs)
    throw error
  })
  if (outcome.kind === 'refused' && outcome.failure.class === 'throttled')
    launchPace?.slowDown(outcome.failure.retryAfterMs)
  return outcome
}

/** How long a throttled order is sent again; afterwards another placement may do better. */
const SENT_WITHIN_MS = 30 * MINUTE_MS

/**
 * An order that waits in a queue has no limit on its activity. A machine that starts much later than the order was put would do nothing and
 * cost money.
 */
async function isTooLate(
  { launchPace, ages }: Deps,
  { runner, attemptId }: Order,
  documents: AttemptDocuments,
): Promise<boolean> {
  if (launchPace === undefined) return false
  const issuedAtMs = await documents.orderedAtMs()
  if (issuedAtMs === undefined) return false
  return ages.of(`order of ${attemptId}`, issuedAtMs) > Math.min(SENT_WITHIN_MS, runner.startWithinMs / 2)
}

/** How long an order that lost its place to another job waits for the next place; sending it again leaves no history event. */
const PLACE_WAIT_MS = MINUTE_MS

/** A lost race is not a failed attempt: Temporal sends the order again. */
function throwIfPlaceTaken(outcome: LaunchOutcome): void {
  if (outcome.kind !== 'refused' || outcome.failure.code !== CODES.placeTaken) return
  const { scheduledTimestampMs, currentAttemptScheduledTimestampMs } = Context.current().info
  if (currentAttemptScheduledTimestampMs - scheduledTimestampMs < PLACE_WAIT_MS)
    throw new BackendError({ ...outcome.failure, class: 'transient' })
}

/**
 * A lease that the machine's first credentials outlive. If credentials are unavailable, this fails before a machine is paid for
 * that could not reach the store.
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
    message: `The machines' credentials for the store are valid for ${grant}, but a drain alone takes ${drain}.`,
    hint: 'Increase the session duration of CRUCIBLE_GRANT_ROLE, or set a shorter CRUCIBLE_DRAIN.',
  })
}

/** The first settlement on record counts, if the activity is repeated after its answer was lost. */
async function onRecord(
  { store, now }: BackendDeps,
  { order, recordSeq }: SettleInput,
  settlement: Settlement,
): Promise<Settlement> {
  const entry = await putEnd(store, order.jobId, {
    seq: recordSeq,
    atMs: now(),
    kind: 'settled',
    attempt: order.attempt,
    summary: sentenceOf(order.attempt, settlement),
    data: settlement,
  })
  const settled = entry.data
  const { metering, artifacts } = settled
  return {
    ...settled,
    ...(metering && { metering: { ...metering, prices: metering.prices.slice(-PRICES_SENT_MAX) } }),
    artifacts: sendable(artifacts),
  }
}

/** The record has the others. */
const PRICES_SENT_MAX = 10

/** Temporal refuses answers of more than 2 MB, and stores this one several times: the record has all artifacts. */
const ARTIFACTS_BYTES_MAX = 256 * 1024

/** The first artifacts, as many as fit through the server. */
function sendable(artifacts: Artifact[]): Artifact[] {
  let leftBytes = ARTIFACTS_BYTES_MAX
  return artifacts.filter((artifact) => (leftBytes -= Buffer.byteLength(JSON.stringify(artifact))) >= 0)
}

/** The failure's message, which is a sentence, comes last. */
function sentenceOf(attempt: number, settlement: Settlement): string {
  const { end, handle, costMicroUsd, duplicatesMicroUsd, metering } = settlement
  const words = metering?.basis === 'dearest' ? ' at most (its prices are unknown)' : ''
  const others =
    duplicatesMicroUsd === undefined
      ? ''
      : ` (with ${formatUsd(duplicatesMicroUsd)} for another machine that the provider made of its order)`
  const cost = `${formatUsd(costMicroUsd)}${words}${others}`
  switch (end.kind) {
    case 'succeeded':
      return `Attempt ${attempt} succeeded, ${cost}`
    case 'stopped': {
      const by = handle === null ? end.by : stopReason(end.by, handle.realised)
      return by === 'run-limit'
        ? `Attempt ${attempt} stopped at the provider's run limit (a planned hand-over), ${cost}`
        : `Attempt ${attempt} stopped (${by}), ${cost}`
    }
    case 'failed':
      return `Attempt ${attempt} failed (${end.failure.class}), ${cost}: ${end.failure.message}`
  }
}
