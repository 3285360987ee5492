import type { Backend, LookContext } from '../backends/backend'
import type { FindOutcome } from '../core/activities'
import { UNNAMED_MACHINE } from '../core/documents'
import type { MachineHandle } from '../core/handle'
import { placesOf, type Order } from '../core/plan'
import { DEFAULT_TIMING } from '../core/timing'
import type { ObjectStore } from '../storage/store'
import { AttemptDocuments } from './documents'
import { pause } from './heartbeat'

interface Deps {
  backend: Backend
  store: ObjectStore
  now: () => number
}

/** For resources of one order: they can only be where the order went. */
export function lookFor(order: Order, signal: AbortSignal): LookContext {
  return { signal, within: placesOf(order) }
}

/**
 * The machine of an attempt. If a provider made several for one order, all but the working one are ended before any is reported.
 */
export async function findMachine(
  { backend, store, now }: Deps,
  order: Order,
  signal: AbortSignal,
): Promise<FindOutcome> {
  const answer = await backend.find(order.attemptId, lookFor(order, signal))
  const documents = new AttemptDocuments(store, order, now)
  const isRecognised = backend.capabilities.idempotency === 'token'
  if (answer.kind === 'unsettled' && isRecognised)
    return (await sendAgain(backend, order, { documents, signal })) ?? answer
  if (answer.kind !== 'found') return answer
  const kept = await choose(answer.handles, documents)
  for (const handle of answer.handles) {
    if (handle !== kept) await endMachine(backend, handle, { everyMs: DEFAULT_TIMING.observeMs, signal })
  }
  // The machine that claimed the attempt is gone, or not yet on the provider's list: the next call shows which.
  if (kept === undefined) return { kind: 'unsettled', againInMs: DEFAULT_TIMING.observeMs }
  await documents.putMachine(kept)
  return { kind: 'found', handles: [kept] }
}

/**
 * Repeats the order of a launch whose answer is lost: a provider that recognises its token returns the existing machine, sooner
 * than its lists do; if the first request never arrived, this one does. `undefined` if the outcome is unknown.
 */
async function sendAgain(
  backend: Backend,
  order: Order,
  { documents, signal }: { documents: AttemptDocuments; signal: AbortSignal },
): Promise<FindOutcome | undefined> {
  const outcome = await backend.launch(order, { signal })
  switch (outcome.kind) {
    case 'launched':
      await documents.putMachine(outcome.handle)
      return { kind: 'found', handles: [outcome.handle] }
    case 'refused':
      return { kind: 'absent' }
    case 'unconfirmed':
      return undefined
  }
}

/**
 * The machine that has claimed the attempt, because no other will ever work on it; undefined if it is none of these. If none has
 * claimed it yet, the attempt is claimed for the oldest, so that the others never begin.
 */
async function choose(
  handles: MachineHandle[],
  documents: AttemptDocuments,
): Promise<MachineHandle | undefined> {
  const [oldest] = [...handles].sort((a, b) => a.launchedAtMs - b.launchedAtMs)
  let claimant = await documents.readClaimant()
  if (claimant === undefined && oldest !== undefined && handles.length > 1) {
    await documents.putClaim(oldest.id)
    // One of them may have claimed it first.
    claimant = await documents.readClaimant()
  }
  const isKnown = claimant !== undefined && !claimant.startsWith(UNNAMED_MACHINE)
  return isKnown ? handles.find(({ id }) => id === claimant) : oldest
}

/** Ends a machine, and returns when the provider reports it gone. */
export async function endMachine(
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
