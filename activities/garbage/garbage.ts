import type { Backend, LookContext } from '../../backends/backend'
import { BackendError, failureOf } from '../../backends/errors'
import type { CollectGarbageInput, CollectStoreGarbageInput } from '../../core/activities'
import type { OwnedResource } from '../../core/handle'
import type { GarbageVerdict } from '../../core/messages'
import { parseAttemptId } from '../../core/queues'
import { formatDuration } from '../../core/time'
import { readDeployment } from '../../storage/deployment'
import { placesOnceUsed } from '../../storage/places'
import type { ObjectStore } from '../../storage/store'

/** Whether a workflow is open, by its id: `absent` when the server does not know it (any more). Throws when it does not answer. */
export type OwnerLookup = (workflowId: {
  jobId: string
  attempt?: number
}) => Promise<'open' | 'closed' | 'absent'>

/** Who can say what is whose. */
export interface Registry {
  store: ObjectStore
  owners: OwnerLookup
  now: () => number
}

/** Something that lies somewhere, and how it is ended. */
export interface Found {
  facts: Omit<GarbageVerdict, 'action' | 'reason'> & { sinceMs: number }
  /** By whose life it is judged, or why it is needed or not. */
  claim: { jobId: string; attempt?: number } | { isNeeded: boolean; reason: string }
  end: () => Promise<void>
}

/**
 * One look: the provider's list first, then the owner of each thing on it, described by its id; so that whatever is bought
 * between the two is not on the list. Only what was unowned a grace ago as well is ended.
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
    // The provider's filter is trusted for nothing that ends in a termination.
    .filter(({ owner }) => owner.deployment === input.deployment)
    .map((resource) => foundOf(backend, resource, signal))
  return [...(await judgeAll(deps, input, found)), ...hidden, ...places.hidden()]
}

/** What costs nothing keeps nothing else from being judged. */
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
      hidden: [unseen({ backend: name, kind: 'leftovers', place, reason: tellingOf(error) })],
    }
  }
}

/**
 * Where to look: at the places of the settings, and at those of earlier settings, where machines may have been left. What did not answer is
 * told, once for each place.
 */
async function placesAt(
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
          : ` Earlier settings bought machines there: once nothing of this deployment is left in ${place}, delete ${key} from the store.`
      return unseen({ backend: name, kind: 'place', place, reason: `${tellingOf(error)}${advice}` })
    })
  return { look, hidden }
}

/** What is not looked at, and what to do about that. */
export function unseen(facts: Pick<GarbageVerdict, 'backend' | 'kind' | 'place' | 'reason'>): GarbageVerdict {
  return { id: '', owner: '', description: 'is not looked at', action: 'unseen', ...facts }
}

function foundOf(backend: Backend, resource: OwnedResource, signal: AbortSignal): Found {
  const { handle, owner, createdAtMs, description, place, costMicroUsdPerDay, use } = resource
  return {
    facts: {
      ...{ backend: backend.name, kind: handle.kind, id: handle.id, description, sinceMs: createdAtMs },
      owner: owner.attemptId || owner.jobId,
      ...(place === undefined ? {} : { place }),
      ...(costMicroUsdPerDay === undefined ? {} : { costMicroUsdPerDay }),
    },
    claim: use ?? parseAttemptId(owner.attemptId) ?? { jobId: owner.jobId },
    end: () => backend.terminate(handle, { signal }),
  }
}

/** A store and a server that do not belong together must never lead to the end of anything. */
export async function checkDeployment(store: ObjectStore, deployment: string): Promise<void> {
  const stored = await readDeployment(store)
  if (stored === deployment) return
  throw new BackendError({
    class: 'invalid',
    message: `Nothing was ended: Temporal holds deployment ${deployment}, the object store ${stored ?? 'none'}.`,
    hint: 'Point both at the same deployment (TEMPORAL_ADDRESS, CRUCIBLE_STORE), or run `crucible gc --adopt` once you are sure.',
  })
}

/** A verdict on each thing, one after the other; what is unowned, was so a grace ago and is not young comes to its end. */
export async function judgeAll(
  registry: Registry,
  input: CollectStoreGarbageInput,
  found: Found[],
): Promise<GarbageVerdict[]> {
  const verdicts: GarbageVerdict[] = []
  for (const each of found) verdicts.push({ ...each.facts, ...(await judge(registry, input, each)) })
  return verdicts
}

async function judge(
  { owners, now }: Registry,
  { isDryRun, candidates, youngMs = 0 }: CollectStoreGarbageInput,
  { facts, claim, end }: Found,
): Promise<Pick<GarbageVerdict, 'action' | 'reason'>> {
  const { isNeeded, reason } = 'isNeeded' in claim ? claim : await whyOwned(owners, claim)
  if (isNeeded) return { action: 'kept', reason }
  if (now() - facts.sinceMs < youngMs)
    return { action: 'kept', reason: `${reason}; but it was made within the last ${formatDuration(youngMs)}` }
  if (isDryRun) return { action: 'would-end', reason }
  if (!candidates.includes(facts.id))
    return { action: 'would-end', reason: `${reason}; waiting out the grace` }
  try {
    await end()
    return { action: 'ended', reason }
  } catch (error) {
    return { action: 'failed', reason: failureOf(error).message }
  }
}

async function whyOwned(
  owners: OwnerLookup,
  { jobId, attempt }: { jobId: string; attempt?: number },
): Promise<{ isNeeded: boolean; reason: string }> {
  if (attempt !== undefined && (await owners({ jobId, attempt })) === 'open') {
    return { isNeeded: true, reason: `attempt ${attempt} of job ${jobId} is running` }
  }
  const job = await owners({ jobId })
  if (job === 'absent') return { isNeeded: false, reason: `no job ${jobId} is known` }
  if (job === 'closed') return { isNeeded: false, reason: `job ${jobId} is over` }
  if (attempt === undefined) return { isNeeded: true, reason: `job ${jobId} is open` }
  const later = await owners({ jobId, attempt: attempt + 1 })
  if (later === 'absent') return { isNeeded: true, reason: `job ${jobId} is open and on this attempt` }
  return { isNeeded: false, reason: `job ${jobId} has gone on to a later attempt` }
}

/** What went wrong, and what to do about it. */
export function tellingOf(error: unknown): string {
  const { message, hint } = failureOf(error)
  return hint === undefined ? message : `${message} ${hint}`
}
