import type { Backend } from '../backends/backend'
import type { CollectGarbageInput } from '../core/activities'
import type { OwnedResource } from '../core/handle'
import type { GarbageVerdict } from '../core/messages'
import { parseAttemptId } from '../core/queues'
import { readDeployment } from '../storage/deployment'
import type { ObjectStore } from '../storage/store'
import { BackendError, failureOf } from '../backends/errors'

/** Whether a workflow is open, by its id: `absent` when the server does not know it (any more). Throws when it does not answer. */
export type OwnerLookup = (workflowId: {
  jobId: string
  attempt?: number
}) => Promise<'open' | 'closed' | 'absent'>

interface Deps {
  backend: Backend
  store: ObjectStore
  owners: OwnerLookup
}

/**
 * One look: the provider's list first, then the owner of each thing on it, described by its id; so that whatever is bought
 * between the two is not on the list. Only what was unowned a grace ago as well is ended.
 */
export async function collectGarbage(
  deps: Deps,
  input: CollectGarbageInput,
  signal: AbortSignal,
): Promise<GarbageVerdict[]> {
  await checkDeployment(deps.store, input.deployment)
  const resources = await deps.backend.list(input.deployment, { signal })
  const verdicts: GarbageVerdict[] = []
  for (const resource of resources) {
    // The provider's filter is trusted for nothing that ends in a termination.
    if (resource.owner.deployment !== input.deployment) continue
    verdicts.push(await judgeResource(deps, input, { resource, signal }))
  }
  return verdicts
}

/** A store and a server that do not belong together must never lead to the end of anything. */
async function checkDeployment(store: ObjectStore, deployment: string): Promise<void> {
  const stored = await readDeployment(store)
  if (stored === deployment) return
  throw new BackendError({
    class: 'invalid',
    message: `Nothing was ended: Temporal holds deployment ${deployment}, the object store ${stored ?? 'none'}.`,
    hint: 'Point both at the same deployment (TEMPORAL_ADDRESS, CRUCIBLE_STORE), or run `crucible gc --adopt` once you are sure.',
  })
}

async function judgeResource(
  deps: Deps,
  input: CollectGarbageInput,
  { resource, signal }: { resource: OwnedResource; signal: AbortSignal },
): Promise<GarbageVerdict> {
  const verdict = (action: GarbageVerdict['action'], reason: string): GarbageVerdict => ({
    backend: input.backend,
    kind: resource.handle.kind,
    id: resource.handle.id,
    owner: resource.owner.attemptId,
    description: resource.description,
    action,
    reason,
  })
  const owned = await whyOwned(deps.owners, resource)
  if (owned.isOwned) return verdict('kept', owned.reason)
  if (input.isDryRun) return verdict('would-end', owned.reason)
  if (!input.candidates.includes(resource.handle.id))
    return verdict('would-end', `${owned.reason}; waiting out the grace`)
  try {
    await deps.backend.terminate(resource.handle, { signal })
    return verdict('ended', owned.reason)
  } catch (error) {
    return verdict('failed', failureOf(error).message)
  }
}

async function whyOwned(
  owners: OwnerLookup,
  { owner }: OwnedResource,
): Promise<{ isOwned: boolean; reason: string }> {
  const parsed = parseAttemptId(owner.attemptId)
  const jobId = parsed?.jobId ?? owner.jobId
  if (parsed !== undefined && (await owners(parsed)) === 'open') {
    return { isOwned: true, reason: `attempt ${parsed.attempt} of job ${jobId} is running` }
  }
  const job = await owners({ jobId })
  if (job === 'absent') return { isOwned: false, reason: `no job ${jobId} is known` }
  if (job === 'closed') return { isOwned: false, reason: `job ${jobId} is over` }
  if (parsed === undefined) return { isOwned: true, reason: `job ${jobId} is open` }
  const later = await owners({ jobId, attempt: parsed.attempt + 1 })
  if (later === 'absent') return { isOwned: true, reason: `job ${jobId} is open and on this attempt` }
  return { isOwned: false, reason: `job ${jobId} has gone on to a later attempt` }
}
