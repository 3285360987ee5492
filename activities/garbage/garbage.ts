import type { Backend, LookContext } from '../../backends/backend'
import { BackendError, failureOf } from '../../backends/errors'
import type { CollectGarbageInput, CollectStoreGarbageInput } from '../../core/activities'
import { inWords } from '../../core/failure'
import { isMachine, type OwnedResource } from '../../core/handle'
import type { GarbageVerdict } from '../../core/messages'
import { parseAttemptId } from '../../core/queues'
import { formatDuration } from '../../core/time/time'
import { AttemptDocuments } from '../documents'
import { reservationsOf } from './reservations'
import { readDeployment } from '../../storage/deployment'
import { placesOnceUsed } from '../../storage/places'
import type { ObjectStore } from '../../storage/store'

/** Looks up whether a workflow is open, by its id: `absent` if the server does not know it. Throws if the server does not answer. */
export type OwnerLookup = (workflowId: {
  jobId: string
  attempt?: number
  /** `jobId` is the id of a reservation. */
  isReservation?: true
}) => Promise<'open' | 'closed' | 'absent'>

/** Name for the store in place of a backend's; the grace period of its scan is tracked under it. */
export const STORE = 'store'

/** Answers who owns a resource. */
export interface Registry {
  store: ObjectStore
  owners: OwnerLookup
  now: () => number
}

/** A resource, and how to end it. */
export interface GarbageCandidate {
  facts: Omit<GarbageVerdict, 'action' | 'reason'> & { sinceMs: number }
  /** The job that decides about the resource, or the reason why it is needed or not. */
  claim:
    | { jobId: string; attempt?: number }
    /** `paid`: why it is kept in any case. */
    | { reservationId: string; paid?: string }
    | { isNeeded: boolean; reason: string }
  end: () => Promise<void>
}

/**
 * Runs one scan: it reads the provider's list first, then the owner of each resource by its id. A resource bought between the two is
 * therefore not on the list. Only resources that were also unowned a grace period ago are ended.
 */
export async function collectGarbage(
  deps: Registry & { backend: Backend },
  input: CollectGarbageInput,
  signal: AbortSignal,
): Promise<GarbageVerdict[]> {
  const { backend, store } = deps
  await checkDeployment(store, input.deployment)
  const places = await placesAt(store, backend)
  const resources = await backend.list(input.deployment, { signal, ...places.look })
  const { leftovers, hidden } = await leftoversOf(backend, input.deployment, { signal, ...places.look })
  const found = [...resources, ...leftovers]
    // The provider's filter is not trusted for terminations.
    .filter(({ owner }) => owner.deployment === input.deployment)
    .map((resource) => foundOf(deps, resource, signal))
  const held = await reservationsIn(backend, input.deployment, { signal, ...places.look })
  const verdicts = await judgeAll(deps, input, [...found, ...held.found])
  return [...verdicts, ...hidden, ...held.hidden, ...places.hidden()]
}

/** A failure to list free resources must not keep others from being judged. */
async function leftoversOf(
  backend: Backend,
  deployment: string,
  ctx: LookContext,
): Promise<{ leftovers: OwnedResource[]; hidden: GarbageVerdict[] }> {
  try {
    return { leftovers: (await backend.leftovers?.(deployment, ctx)) ?? [], hidden: [] }
  } catch (error) {
    if (ctx.signal.aborted) throw error
    const { name, places = [] } = backend
    const place = places.join(', ')
    return {
      leftovers: [],
      hidden: [unseen({ backend: name, kind: 'leftovers', place, reason: inWords(failureOf(error)) })],
    }
  }
}

/** Lists reservations, which a worker may not be allowed to do. */
async function reservationsIn(
  backend: Backend,
  deployment: string,
  ctx: LookContext,
): Promise<{ found: GarbageCandidate[]; hidden: GarbageVerdict[] }> {
  try {
    return { found: await reservationsOf(backend, deployment, ctx), hidden: [] }
  } catch (error) {
    if (ctx.signal.aborted) throw error
    const { name, places = [] } = backend
    const place = places.join(', ')
    return {
      found: [],
      hidden: [unseen({ backend: name, kind: 'reservations', place, reason: inWords(failureOf(error)) })],
    }
  }
}

/**
 * Returns the places to scan: those of the settings, and those of earlier settings, where machines may remain. A place that does not answer
 * is reported once.
 */
export async function placesAt(
  store: ObjectStore,
  { name, places }: Backend,
): Promise<{ look: Pick<LookContext, 'alsoAt' | 'unseen'>; hidden: () => GarbageVerdict[] }> {
  if (places === undefined) return { look: {}, hidden: () => [] }
  const once = await placesOnceUsed(store, { backend: name, places })
  const errors = new Map<string, unknown>()
  const look = {
    alsoAt: once.map(({ place }) => place),
    unseen: (place: string, error: unknown): void => void errors.set(place, error),
  }
  const hidden = (): GarbageVerdict[] =>
    [...errors].map(([place, error]) => {
      const key = once.find((one) => one.place === place)?.key
      const advice =
        key === undefined
          ? ''
          : ` Earlier settings used this place: once ${place} holds no resources of this deployment, delete ${key} from the store.`
      return unseen({ backend: name, kind: 'place', place, reason: `${inWords(failureOf(error))}${advice}` })
    })
  return { look, hidden }
}

/** Describes a place that is not scanned, and the remedy. */
export function unseen(facts: Pick<GarbageVerdict, 'backend' | 'kind' | 'place' | 'reason'>): GarbageVerdict {
  return { id: '', owner: '', description: 'is not scanned', action: 'unseen', ...facts }
}

function foundOf(
  deps: Registry & { backend: Backend },
  resource: OwnedResource,
  signal: AbortSignal,
): GarbageCandidate {
  const { backend } = deps
  const { handle, owner, use } = resource
  return {
    facts: factsOf(backend, resource),
    claim: use ?? parseAttemptId(owner.attemptId) ?? { jobId: owner.jobId },
    end: async () => {
      await backend.terminate(handle, { signal })
      await recordEnd(deps, resource)
    },
  }
}

/**
 * Records that a machine has ended: a job that Temporal no longer knows shows it only by this document. A store that refuses the document has
 * no other effect.
 */
export async function recordEnd(
  { store, now }: Pick<Registry, 'store' | 'now'>,
  { owner, handle }: OwnedResource,
): Promise<void> {
  const at = parseAttemptId(owner.attemptId)
  if (at === undefined || !isMachine(handle)) return
  await new AttemptDocuments(store, at, now).putEnded(handle, now()).catch(() => undefined)
}

export function factsOf(backend: Pick<Backend, 'name'>, resource: OwnedResource): GarbageCandidate['facts'] {
  const { handle, owner, createdAtMs, description, place, costMicroUsdPerDay } = resource
  return {
    backend: backend.name,
    kind: handle.kind,
    id: handle.id,
    description,
    sinceMs: createdAtMs,
    owner: owner.attemptId || owner.jobId,
    place,
    costMicroUsdPerDay,
  }
}

/** A store and a server of different deployments must never end anything. */
export async function checkDeployment(store: ObjectStore, deployment: string): Promise<void> {
  const stored = await readDeployment(store)
  if (stored === deployment) return
  throw new BackendError({
    class: 'invalid',
    message: `Nothing was ended: Temporal holds deployment ${deployment}, the object store ${stored ?? 'none'}.`,
    hint: 'Point both at the same deployment (TEMPORAL_ADDRESS, CRUCIBLE_STORE), or run `crucible gc --adopt` once you are sure.',
  })
}

/**
 * A verdict on each resource, one after the other; a resource that is unowned, was unowned a grace period ago and is not young is
 * ended.
 */
export async function judgeAll(
  registry: Registry,
  input: CollectStoreGarbageInput,
  found: GarbageCandidate[],
): Promise<GarbageVerdict[]> {
  const verdicts: GarbageVerdict[] = []
  for (const each of found) verdicts.push({ ...each.facts, ...(await judge(registry, input, each)) })
  return verdicts
}

async function judge(
  { owners, now }: Registry,
  { isDryRun, candidates, youngMs = 0 }: CollectStoreGarbageInput,
  { facts, claim, end }: GarbageCandidate,
): Promise<Pick<GarbageVerdict, 'action' | 'reason'>> {
  const { isNeeded, reason } = await whyNeeded(owners, claim)
  if (isNeeded) return { action: 'kept', reason }
  if (now() - facts.sinceMs < youngMs)
    return {
      action: 'kept',
      reason: `${reason}; but it was created within the last ${formatDuration(youngMs)}`,
    }
  if (isDryRun) return { action: 'would-end', reason }
  if (!candidates.includes(facts.id))
    return { action: 'would-end', reason: `${reason}; waiting for the grace period` }
  try {
    await end()
    return { action: 'ended', reason }
  } catch (error) {
    return { action: 'failed', reason: failureOf(error).message }
  }
}

async function whyNeeded(
  owners: OwnerLookup,
  claim: GarbageCandidate['claim'],
): Promise<{ isNeeded: boolean; reason: string }> {
  if ('isNeeded' in claim) return claim
  if ('jobId' in claim) return whyOwned(owners, claim)
  const { reservationId: jobId, paid } = claim
  const state = await owners({ jobId, isReservation: true })
  if (state === 'open') return { isNeeded: true, reason: `reservation ${jobId} is open` }
  const reason = `reservation ${jobId} is ${state === 'closed' ? 'over' : 'unknown'}, and the capacity is still held`
  return paid === undefined
    ? { isNeeded: false, reason }
    : { isNeeded: true, reason: `${reason}: ${paid}, so let jobs use it` }
}

async function whyOwned(
  owners: OwnerLookup,
  { jobId, attempt }: { jobId: string; attempt?: number },
): Promise<{ isNeeded: boolean; reason: string }> {
  if (attempt !== undefined && (await owners({ jobId, attempt })) === 'open') {
    return { isNeeded: true, reason: `attempt ${attempt} of job ${jobId} is running` }
  }
  const job = await owners({ jobId })
  if (job === 'absent') return { isNeeded: false, reason: `job ${jobId} is unknown` }
  if (job === 'closed') return { isNeeded: false, reason: `job ${jobId} is over` }
  if (attempt === undefined) return { isNeeded: true, reason: `job ${jobId} is open` }
  const later = await owners({ jobId, attempt: attempt + 1 })
  if (later === 'absent') return { isNeeded: true, reason: `job ${jobId} is open and on this attempt` }
  return { isNeeded: false, reason: `job ${jobId} is on a later attempt` }
}
