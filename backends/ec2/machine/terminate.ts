import type { ResourceHandle } from '../../../core/handle'
import type { CallContext } from '../../backend'
import { assertOfAttempt } from '../../errors'
import { hasCode, invalid } from '../errors'
import type { Host } from '../host'
import { isMachineId } from './machines'
import { ownerOf } from '../tags'

/**
 * Ends a machine, a detached volume, or a leftover. An id that the provider does not know may be too new for its lists: `observe` says so,
 * and the caller asks again.
 */
export async function terminate(
  host: Host,
  resource: ResourceHandle,
  { signal }: CallContext,
): Promise<void> {
  const { kind, id } = resource
  if (kind === 'volume') return deleteVolume(host, id, signal)
  if (kind === 'template') return deleteTemplate(host, id, signal)
  if (kind === 'spot-request') return cancelSpotRequest(host, id, signal)
  if (kind === 'machine') return endMachine(host, resource, { signal, isAbrupt: false })
}

/** `isAbrupt`: without an operating-system shutdown, which would signal its processes. */
export async function endMachine(
  host: Host,
  resource: ResourceHandle,
  { signal, isAbrupt }: CallContext & { isAbrupt: boolean },
): Promise<void> {
  const { id } = resource
  if (!isMachineId(id)) return
  const [machine] = await host.api.machines.byId([id], signal)
  if (machine !== undefined) {
    assertOurs(host, `machine ${id}`, machine.tags)
    assertOfAttempt(resource, ownerOf(machine.tags).attemptId)
    if (machine.state === 'terminated' || machine.state === 'shutting-down') return
  }
  try {
    await host.api.machines.terminate([id], signal, { isAbrupt })
  } catch (error) {
    if (!hasCode(error, 'InvalidInstanceID.NotFound')) throw error
  }
}

async function deleteVolume(host: Host, id: string, signal: AbortSignal): Promise<void> {
  try {
    await host.api.machines.deleteVolume(id, signal)
  } catch (error) {
    if (!hasCode(error, 'InvalidVolume.NotFound')) throw error
  }
}

async function deleteTemplate(host: Host, id: string, signal: AbortSignal): Promise<void> {
  const [template] = await host.api.leftovers.templates({ id }, signal)
  if (template === undefined) return
  assertOurs(host, `launch template ${id}`, template.tags)
  try {
    await host.api.leftovers.deleteTemplate(id, signal)
  } catch (error) {
    if (!hasCode(error, 'InvalidLaunchTemplateId.NotFound')) throw error
  }
}

/** Cancels a spot request without a running machine. Terminating a machine also closes its request. */
async function cancelSpotRequest(host: Host, id: string, signal: AbortSignal): Promise<void> {
  const [request] = await host.api.leftovers.spotRequests(id, signal)
  if (request === undefined) return
  const { machineId, tags } = request
  const [machine] = machineId === undefined ? [] : await host.api.machines.byId([machineId], signal)
  assertOurs(host, `spot request ${id}`, machine?.tags ?? tags)
  if (machine !== undefined && machine.state !== 'terminated') return
  try {
    await host.api.leftovers.cancelSpotRequest(id, signal)
  } catch (error) {
    if (!hasCode(error, 'InvalidSpotInstanceRequestID.NotFound')) throw error
  }
}

function assertOurs({ deps }: Host, what: string, tags: Record<string, string>): void {
  const { deployment } = ownerOf(tags)
  if (deps.deployment === undefined || deployment === deps.deployment) return
  throw invalid(
    `${what} belongs to ${deployment === '' ? 'no known deployment' : `deployment ${deployment}`}`,
    'End it by hand if you are sure that you own it.',
  )
}
