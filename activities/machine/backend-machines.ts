import type { Backend } from '../../backends/backend'
import { BackendError } from '../../backends/errors'
import type { FindOutcome } from '../../core/activities'
import { UNNAMED_MACHINE } from '../../core/documents'
import type { MachineHandle } from '../../core/handle'
import { isOver } from '../../core/observation'
import type { Order } from '../../core/job/plan'
import { DEFAULT_TIMING } from '../../core/time/timing'
import { BillingEnds } from '../money/billing-ends'
import { AttemptDocuments } from '../documents'
import { pause } from '../heartbeat'
import { lookFor, type SendingDeps } from './sending'

/**
 * The machine of an attempt. If a provider made several for one order, all but the working one are ended before any is reported.
 */
export async function findMachine(
  deps: SendingDeps,
  order: Order,
  signal: AbortSignal,
): Promise<FindOutcome> {
  const { backend, store, now } = deps
  const answer = await backend.find(order.attemptId, await lookFor(deps, order, signal))
  const documents = new AttemptDocuments(store, order, now)
  const isRecognised = backend.capabilities.idempotency === 'token'
  if (answer.kind === 'unsettled' && isRecognised)
    return (await sendAgain(backend, order, { documents, signal })) ?? answer
  if (answer.kind !== 'found') return answer
  const kept = await choose(answer.handles, { backend, documents })
  const duplicates = answer.handles.filter((handle) => handle !== kept)
  // The cost of duplicates belongs to the attempt, whatever happens to this process.
  for (const handle of duplicates) await documents.putEnding(handle)
  for (const handle of await unfinished(deps, { documents, kept, duplicates })) {
    const endedAtMs = await endMachine(backend, handle, { everyMs: DEFAULT_TIMING.observeMs, signal, now })
    await documents.putEnded(handle, endedAtMs)
  }
  for (const handle of answer.ended ?? []) await documents.putEnded(handle, now())
  const isKnown =
    kept !== undefined &&
    // Another machine may have claimed the attempt before it was ended.
    (answer.handles.length === 1 || kept === (await choose(answer.handles, { backend, documents })))
  // The machine that claimed the attempt is gone, or not yet on the provider's list; the next call shows which.
  if (!isKnown) return { kind: 'unsettled', againInMs: DEFAULT_TIMING.observeMs }
  await documents.putMachine(kept)
  return { kind: 'found', handles: [kept] }
}

/** Duplicates to end: an earlier search may have died before it recorded the end of one that is listed no more. */
async function unfinished(
  { backend }: SendingDeps,
  {
    documents,
    kept,
    duplicates,
  }: { documents: AttemptDocuments; kept: MachineHandle | undefined; duplicates: MachineHandle[] },
): Promise<MachineHandle[]> {
  if (backend.capabilities.idempotency === 'token') return duplicates
  const listed = [...duplicates, kept].map((handle) => handle?.id)
  const recorded = await documents.readEnded()
  const unlisted = recorded.filter(
    ({ handle, endedAtMs }) => endedAtMs === null && !listed.includes(handle.id),
  )
  return [...duplicates, ...unlisted.map(({ handle }) => handle)]
}

/**
 * Repeats the order of a launch whose answer is lost: a provider that recognises its token returns the existing machine, sooner
 * than its lists do; if the first request never arrived, this one does. `undefined` if the outcome is unknown. The order of an
 * attempt that must stop is not repeated: every settlement first puts the request to stop.
 */
async function sendAgain(
  backend: Backend,
  order: Order,
  { documents, signal }: { documents: AttemptDocuments; signal: AbortSignal },
): Promise<FindOutcome | undefined> {
  if (await documents.isToldToStop()) return undefined
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
 * Returns the machine that has claimed the attempt, because no other will ever work on it; undefined if none of the given machines has claimed it. Without a
 * claim, it is the oldest; the attempt is then claimed for it, so that the others never begin. Machines that claim with their send get no
 * claim from us, because two machines of one send would both accept it.
 */
async function choose(
  handles: MachineHandle[],
  { backend, documents }: { backend: Backend; documents: AttemptDocuments },
): Promise<MachineHandle | undefined> {
  const [oldest] = oldestFirst(handles)
  let claim = await documents.readClaim()
  if (claim === undefined && oldest !== undefined && handles.length > 1) {
    if (backend.capabilities.claimsBy === 'send') return oldest
    await documents.putClaim(oldest.id)
    // A machine may have claimed the attempt first.
    claim = await documents.readClaim()
  }
  if (claim === undefined) return oldest
  const { machine, send } = claim
  if (!machine.startsWith(UNNAMED_MACHINE)) return handles.find(({ id }) => id === machine)
  if (send === undefined) return oldest
  return oldestFirst(handles).find((handle) => handle.send === send)
}

function oldestFirst(handles: MachineHandle[]): MachineHandle[] {
  return [...handles].sort((a, b) => a.launchedAtMs - b.launchedAtMs)
}

/** Throws that the provider has answered about other machines only. */
export function unanswered({ name }: Backend, { id }: MachineHandle): never {
  throw new BackendError({ class: 'transient', message: `${name} did not answer about machine ${id}` })
}

/**
 * Ends a machine, and resolves with the end of its bill when the provider reports that it is gone and no longer billed.
 * @internal A test ends a machine that is billed until then.
 */
export async function endMachine(
  backend: Backend,
  handle: MachineHandle,
  { everyMs, signal, now = Date.now }: { everyMs: number; signal: AbortSignal; now?: () => number },
): Promise<number> {
  const ends = new BillingEnds(backend, now)
  for (;;) {
    await ends.terminate(handle, signal)
    const [answer] = await backend.observe([handle], { signal })
    const look = answer ?? unanswered(backend, handle)
    ends.note(handle, look)
    if (isOver(look)) return ends.of(handle)
    await pause(everyMs, signal)
  }
}
