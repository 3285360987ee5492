import type { FindOutcome } from '../../../core/activities'
import { defined } from '../../../core/defined'
import type { MachineHandle, OwnedResource } from '../../../core/handle'
import { spendOver } from '../../../core/money/meter'
import type { Observation } from '../../../core/observation'
import { DAY_MS, formatInstant, SECOND_MS } from '../../../core/time/time'
import type { CallContext } from '../../backend'
import type { Machine } from '../sdk/api'
import { diskPrice } from '../market/disks-and-addresses'
import type { Host } from '../host'
import { handleOf, isMachineId, observationOf } from './machines'
import { ownerOf, priceOn, TAGS } from '../tags'

export async function observe(
  host: Host,
  handles: MachineHandle[],
  { signal }: CallContext,
): Promise<Observation[]> {
  const ids = [...new Set(handles.map(({ id }) => id).filter(isMachineId))]
  const shown = ids.length === 0 ? [] : await host.api.machines.byId(ids, signal)
  const byId = new Map(shown.map((machine) => [machine.id, machine]))
  const isReserved = handles.some(({ realised }) => realised.reservationId !== undefined)
  const cutOffs = isReserved ? await host.reservations.cutOffs(signal) : undefined
  return handles.map((handle) => {
    const machine = byId.get(handle.id)
    if (machine === undefined) return unseen(host, handle)
    const usableUntilMs = cutOffs?.get(handle.realised.reservationId ?? '')
    return { ...observationOf(machine), ...defined({ usableUntilMs }) }
  })
}

/** A machine that no list shows may be too new. A terminated one is listed for an hour. */
function unseen(host: Host, { id, launchedAtMs }: MachineHandle): Observation {
  const isYoung = isMachineId(id) && host.ages.of(id, launchedAtMs) < host.config.staleForMs
  return isYoung
    ? { state: 'pending', detail: 'not in the lists of EC2 yet' }
    : { state: 'gone', cause: 'unknown', detail: 'EC2 does not know this machine' }
}

/** Time between two lookups of a machine that may not be listed yet. */
const LOOK_AGAIN_MS = 15 * SECOND_MS

/**
 * The machines of an attempt by their tag. `absent` only if its order was refused, or if the lists have shown none for as long as they may
 * be stale.
 */
export async function find(host: Host, attemptId: string, { signal }: CallContext): Promise<FindOutcome> {
  const found = await host.api.machines.byTag({ name: TAGS.attempt, values: [attemptId] }, signal)
  const ours = found
    .filter((machine) => isOurs(host, machine))
    .sort((a, b) => a.launchedAtMs - b.launchedAtMs || (a.id < b.id ? -1 : 1))
  // A machine that is still shutting down may still work.
  const handles = ours.filter(({ state }) => state !== 'terminated').map(handleOf)
  const ended = ours.filter(({ state }) => state === 'terminated').map(handleOf)
  // A machine of another deployment with the same attempt id shows nothing about this one.
  const emptyMs = host.memory.heldMs(`no machine of ${attemptId}`, ours.length === 0)
  if (handles.length > 0) return { kind: 'found', handles }
  // A terminated one was listed, so all others are by now.
  if (emptyMs === undefined || host.memory.isRefused(attemptId))
    return { kind: 'absent', ended: ended.length > 0 ? ended : undefined }
  const leftMs = host.config.staleForMs - emptyMs
  return leftMs <= 0 ? { kind: 'absent' } : { kind: 'unsettled', againInMs: Math.min(leftMs, LOOK_AGAIN_MS) }
}

/** Whether a machine is billed; billing ends when it shuts down. */
function isBilled({ state }: Machine): boolean {
  return state !== 'terminated' && state !== 'shutting-down'
}

export function isOurs({ deps }: Host, { tags }: Machine): boolean {
  return deps.deployment === undefined || ownerOf(tags).deployment === deps.deployment
}

/** Machines and volumes of a deployment that are billed. Templates, and everything that ends with its machine, cost nothing. */
export async function list(
  host: Host,
  deployment: string,
  { signal }: CallContext,
): Promise<OwnedResource[]> {
  const { deployment: name } = TAGS
  const [machines, volumes] = await Promise.all([
    host.api.machines.byTag({ name, values: [deployment] }, signal),
    host.api.machines.looseVolumes({ name, value: deployment }, signal),
  ])
  const disk = volumes.length === 0 ? undefined : await host.market.disk(signal)
  return [
    ...machines.filter(isBilled).map((machine): OwnedResource => ({
      handle: handleOf(machine),
      owner: ownerOf(machine.tags),
      createdAtMs: machine.launchedAtMs,
      description: `${machine.type} in ${machine.zone}, ${machine.state} since ${formatInstant(machine.launchedAtMs)}`,
      place: machine.zone,
      // A stopped machine costs its disk, whose price is unknown here.
      costMicroUsdPerDay:
        machine.state === 'stopped'
          ? undefined
          : spendOver(DAY_MS, priceOn(machine.tags, { type: machine.type, place: machine.zone })),
    })),
    ...volumes.map(({ id, zone, sizeGiB, speed, createdAtMs, tags }): OwnedResource => ({
      handle: { backend: 'ec2', kind: 'volume', id },
      owner: ownerOf(tags),
      createdAtMs,
      description: `unused volume of ${sizeGiB} GiB, created ${formatInstant(createdAtMs)}`,
      place: zone,
      costMicroUsdPerDay: spendOver(DAY_MS, diskPrice({ sizeGiB, speed }, disk!.rates)),
    })),
  ]
}
