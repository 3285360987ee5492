import { Context } from '@temporalio/activity'
import type { Backend } from '../backends/backend'
import type {
  BackendActivities,
  FindOutcome,
  LaunchInput,
  LaunchOutcome,
  SettleInput,
  Settlement,
} from '../core/activities'
import type { MachineHandle } from '../core/handle'
import { formatUsd } from '../core/money'
import { DEFAULT_TIMING } from '../core/timing'
import { putRecord } from '../storage/record'
import type { ObjectStore } from '../storage/store'
import { AttemptDocuments } from './documents'
import { collectGarbage, type OwnerLookup } from './garbage'
import { beating, pause } from './heartbeat'
import { settleAttempt } from './settle'

/** What a backend's worker is made of. */
export interface BackendDeps {
  backend: Backend
  store: ObjectStore
  now: () => number
  /** Seals the job's secrets anew for one attempt; does nothing for a job without any. */
  handOverSecrets: (order: LaunchInput['order']) => Promise<void>
  owners: OwnerLookup
}

/** A backend's verbs as activities. Errors are turned into failures by `failureInterceptor`. */
export function createBackendActivities(deps: BackendDeps): BackendActivities {
  const { backend, store, now } = deps
  return {
    offers: ({ request }) =>
      beating(async (signal) => ({
        backend: backend.name,
        capabilities: backend.capabilities,
        offers: await backend.offers(request, { signal }),
      })),

    launch: (input) => beating((signal) => launch(deps, input, signal)),

    find: ({ order }) => beating((signal) => find(deps, order, signal)),

    start: ({ handle, order }) =>
      beating(async (signal) => {
        await backend.start?.(handle, order, { signal })
      }),

    terminate: ({ handle, timing }) =>
      beating((signal) => endMachine(backend, handle, { everyMs: timing.observeMs, signal })),

    settle: (input) =>
      beating(async (signal) =>
        onRecord(deps, input, await settleAttempt({ backend, store, now }, input, signal)),
      ),

    collectGarbage: (input) => beating((signal) => collectGarbage(deps, input, signal)),
  }
}

function documentsOf({ store, now }: BackendDeps, order: LaunchInput['order']): AttemptDocuments {
  return new AttemptDocuments(store, { jobId: order.jobId, attempt: order.attempt }, now)
}

async function launch(deps: BackendDeps, input: LaunchInput, signal: AbortSignal): Promise<LaunchOutcome> {
  const { backend, store, now } = deps
  const { order } = input
  const documents = documentsOf(deps, order)
  await documents.putOrder(order.runner)
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
  if (outcome.kind === 'launched') await documents.putMachine(outcome.handle)
  return outcome
}

/** The machine of an attempt. Where a provider made several of one order, the others are ended before anybody hears of it. */
async function find(
  deps: BackendDeps,
  order: LaunchInput['order'],
  signal: AbortSignal,
): Promise<FindOutcome> {
  const answer = await deps.backend.find(order.attemptId, { signal })
  const isRecognised = deps.backend.capabilities.idempotency === 'token'
  if (answer.kind === 'unsettled' && isRecognised) return (await sendAgain(deps, order, signal)) ?? answer
  if (answer.kind !== 'found') return answer
  const documents = documentsOf(deps, order)
  const [kept, ...duplicates] = keptFirst(answer.handles, await documents.readClaimant())
  for (const duplicate of duplicates) {
    await endMachine(deps.backend, duplicate, { everyMs: DEFAULT_TIMING.observeMs, signal })
  }
  if (kept !== undefined) await documents.putMachine(kept)
  return { kind: 'found', handles: kept === undefined ? [] : [kept] }
}

/**
 * The order of a launch whose answer is lost, sent once more: a provider that recognises its token answers with the machine
 * that there is, sooner than its lists do; and where the first request never arrived, this one does. Nothing when nobody knows.
 */
async function sendAgain(
  deps: BackendDeps,
  order: LaunchInput['order'],
  signal: AbortSignal,
): Promise<FindOutcome | undefined> {
  const outcome = await deps.backend.launch(order, { signal })
  switch (outcome.kind) {
    case 'launched':
      await documentsOf(deps, order).putMachine(outcome.handle)
      return { kind: 'found', handles: [outcome.handle] }
    case 'refused':
      return { kind: 'absent' }
    case 'unconfirmed':
      return undefined
  }
}

/** The machine that has claimed the attempt works on it; where that cannot be told the oldest has come farthest. */
function keptFirst(handles: MachineHandle[], claimant: string | undefined): MachineHandle[] {
  const rank = ({ id }: MachineHandle): number => (id === claimant ? 0 : 1)
  return [...handles].sort((a, b) => rank(a) - rank(b) || a.launchedAtMs - b.launchedAtMs)
}

/** Ends a machine, and returns when the provider says that it is gone. */
async function endMachine(
  backend: Backend,
  handle: MachineHandle,
  { everyMs, signal }: { everyMs: number; signal: AbortSignal },
): Promise<void> {
  for (;;) {
    await backend.terminate(handle, { signal })
    const [look] = await backend.observe([handle], { signal })
    if (look?.state === 'gone') return
    await pause(everyMs, signal)
  }
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
    summary: `Attempt ${order.attempt} ${wordsOf(settlement)}, ${formatUsd(settlement.costMicroUsd)}`,
    data: settlement,
  })
  return entry.data as Settlement
}

function wordsOf({ end }: Settlement): string {
  switch (end.kind) {
    case 'succeeded':
      return 'succeeded'
    case 'stopped':
      return `stopped (${end.by})`
    case 'failed':
      return `failed (${end.failure.class}): ${end.failure.message}`
  }
}
