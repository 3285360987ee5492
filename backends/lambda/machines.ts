import type { FindOutcome } from '../../core/activities'
import type { MachineHandle, OwnedResource, OwnerTags, ResourceHandle } from '../../core/handle'
import { spendOver } from '../../core/money/meter'
import type { Observation } from '../../core/observation'
import type { Offer } from '../../core/offer'
import type { Order } from '../../core/job/plan'
import { DAY_MS, formatInstant, MINUTE_MS, SECOND_MS } from '../../core/time/time'
import type { CallContext, FindContext } from '../backend'
import { assertOfAttempt, BackendError } from '../errors'
import type { LambdaInstance } from './api'
import { invalid, lambdaError } from './errors'
import type { Host } from './host'

export const BACKEND = 'lambda'
/** Lambda bills each minute that has begun (docs.lambda.ai, On-Demand Cloud, November 2026). */
export const BILLED_IN_STEPS_OF_MS = MINUTE_MS

/** Names of our tags; Lambda allows lower case, digits, `-` and `:`. */
const TAGS = {
  deployment: 'crucible:deployment',
  job: 'crucible:job',
  attempt: 'crucible:attempt',
  send: 'crucible:send',
  /** Time of the order in milliseconds since 1970, because the API does not report launch times. */
  at: 'crucible:at',
  /** Micro-dollars an hour, when it was ordered. */
  price: 'crucible:price',
} as const

export function tagsOf(
  { deployment, jobId, attemptId }: Order,
  { send, atMs, offer }: { send: string; atMs: number; offer: Offer },
): Record<string, string> {
  return {
    [TAGS.deployment]: deployment,
    [TAGS.job]: jobId,
    [TAGS.attempt]: attemptId,
    [TAGS.send]: send,
    [TAGS.at]: String(atMs),
    [TAGS.price]: String(offer.priceMicroUsdPerHour),
  }
}

/** The machine of an id with these tags: the same for every process that finds it, at any time. */
export function handleOf(
  id: string,
  tags: Record<string, string>,
  { type, place }: { type: string; place: string },
): MachineHandle {
  const { [TAGS.send]: send } = tags
  return {
    backend: BACKEND,
    kind: 'machine',
    id,
    attemptId: tags[TAGS.attempt] ?? '',
    send,
    realised: {
      capacityType: 'on-demand',
      type,
      place,
      priceMicroUsdPerHour: numberIn(tags[TAGS.price]),
      billedInStepsOfMs: BILLED_IN_STEPS_OF_MS,
    },
    launchedAtMs: numberIn(tags[TAGS.at]),
  }
}

function numberIn(text: string | undefined): number {
  const value = Number(text)
  return Number.isFinite(value) ? value : 0
}

function tagsIn({ tags }: LambdaInstance): Record<string, string> {
  return Object.fromEntries(tags.map(({ key, value }) => [key, value]))
}

function ownerOf(instance: LambdaInstance): OwnerTags {
  const tags = tagsIn(instance)
  return {
    deployment: tags[TAGS.deployment] ?? '',
    jobId: tags[TAGS.job] ?? '',
    attemptId: tags[TAGS.attempt] ?? '',
  }
}

export function handleFrom(instance: LambdaInstance): MachineHandle {
  const { id, instance_type: type, region } = instance
  return handleOf(id, tagsIn(instance), { type: type.name, place: region.name })
}

export const isEnded = ({ status }: LambdaInstance): boolean =>
  status === 'terminated' || status === 'preempted'

function isOurs({ deps }: Host, instance: LambdaInstance): boolean {
  return deps.deployment === undefined || ownerOf(instance).deployment === deps.deployment
}

/** The machines of an attempt in the account's list, the oldest first. */
export function machinesOf(host: Host, instances: LambdaInstance[], attemptId: string): LambdaInstance[] {
  const orderedAt = (one: LambdaInstance): number => numberIn(tagsIn(one)[TAGS.at])
  return instances
    .filter((one) => ownerOf(one).attemptId === attemptId && isOurs(host, one))
    .sort((a, b) => orderedAt(a) - orderedAt(b) || (a.id < b.id ? -1 : 1))
}

/** Time between two observations of a machine that may not be listed yet. */
const LOOK_AGAIN_MS = 15 * SECOND_MS

/**
 * Finds the machines of an attempt by their tag. A list proves that none exists if it is younger than the last send by the maximum lag of
 * lists.
 */
export async function find(
  host: Host,
  attemptId: string,
  { signal, sentUntilMs }: FindContext,
): Promise<FindOutcome> {
  const { instances, askedAtMs } = await host.instances(signal)
  const ours = machinesOf(host, instances, attemptId)
  const living = ours.filter((one) => !isEnded(one))
  const ended = ours.filter(isEnded).map(handleFrom)
  const known = ended.length > 0 && { ended }
  if (living.length > 0) return { kind: 'found', handles: living.map(handleFrom), ...known }
  const leftMs = sentUntilMs === undefined ? 0 : sentUntilMs + host.config.staleForMs - askedAtMs
  // An ended machine that is listed does not prove that no other exists.
  return leftMs <= 0
    ? { kind: 'absent', ...known }
    : { kind: 'unsettled', againInMs: Math.min(leftMs, LOOK_AGAIN_MS) }
}

/** Machines that the list does not show are asked for by their id, but not more at a time: the account allows one request a second. */
const ASKED_BY_ID_MAX = 3

export async function observe(
  host: Host,
  handles: MachineHandle[],
  { signal }: CallContext,
): Promise<Observation[]> {
  if (handles.length === 0) return []
  const { instances } = await host.instances(signal)
  const byId = new Map(instances.map((instance) => [instance.id, instance]))
  const unseen = [...new Set(handles.map(({ id }) => id).filter((id) => !byId.has(id)))]
  let isStale = false
  for (const id of unseen.slice(0, ASKED_BY_ID_MAX)) {
    const instance = await host.api.instance(id, signal)
    if (instance === undefined) continue
    byId.set(id, instance)
    isStale ||= !isEnded(instance) && instance.status !== 'terminating'
  }
  return handles.map((handle) => {
    const instance = byId.get(handle.id)
    if (instance !== undefined) return observationOf(instance)
    return isStale || isYoung(host, handle) ? UNLISTED : GONE
  })
}

const UNLISTED: Observation = { state: 'pending', detail: 'not in the lists of Lambda yet' }
const GONE: Observation = { state: 'gone', cause: 'unknown', detail: 'Lambda does not know this machine' }

function isYoung({ ages, config }: Host, { id, launchedAtMs }: MachineHandle): boolean {
  return ages.of(id, launchedAtMs) < config.staleForMs
}

/**
 * Returns the observation of an instance. An unhealthy one counts as gone, unless its runner still beats, and is replaced. It is billed
 * until it is ended, and `find` and `list` include it until then. Lambda does not report when a machine ended.
 */
function observationOf({ status }: Pick<LambdaInstance, 'status'>): Observation {
  switch (status) {
    case 'booting':
      return { state: 'pending' }
    case 'active':
      return { state: 'running' }
    case 'unhealthy':
      return {
        state: 'gone',
        cause: 'failed-to-start',
        isStillBilled: true,
        detail: 'Lambda reports it as unhealthy',
      }
    case 'terminating':
      return { state: 'stopping', cause: 'ended' }
    case 'terminated':
      return { state: 'gone', cause: 'ended' }
    case 'preempted':
      return { state: 'gone', cause: 'interrupted', detail: 'preempted by Lambda' }
    default:
      return { state: 'running', detail: status }
  }
}

/** Ends a machine; no other resource of Crucible costs money. Only this ends its billing. */
export async function terminate(
  host: Host,
  resource: ResourceHandle,
  { signal }: CallContext,
): Promise<void> {
  const { kind, id } = resource
  if (kind !== 'machine') return
  const { instances } = await host.instances(signal)
  const instance = instances.find((one) => one.id === id) ?? (await host.api.instance(id, signal))
  if (instance === undefined || isEnded(instance) || instance.status === 'terminating') return
  if (!isOurs(host, instance)) {
    const { deployment } = ownerOf(instance)
    throw invalid(
      `machine ${id} belongs to ${deployment === '' ? 'no known deployment' : `deployment ${deployment}`}`,
      'End it by hand if you are sure that you own it.',
    )
  }
  assertOfAttempt(resource, ownerOf(instance).attemptId)
  await host.api.terminate(id, signal).catch((error: unknown) => {
    throw notYet(lambdaError(error), instance)
  })
}

/**
 * A listed machine that Lambda does not end may be too young: `actions.terminate` has the reason `vm-has-not-launched`, and the code of the
 * refusal is not documented. Trying again helps in any case.
 */
function notYet(error: BackendError, { id, status }: LambdaInstance): BackendError {
  if (error.class !== 'invalid' && error.class !== 'unclassified') return error
  const message = `Lambda does not end machine ${id} while it is ${status}: ${error.message}`
  const hint = 'The call is repeated. If this lasts, end the machine at cloud.lambda.ai.'
  return new BackendError({ ...error.failure, class: 'transient', message, hint }, { cause: error })
}

/** Machines of a deployment that are billed. */
export async function list(
  host: Host,
  deployment: string,
  { signal }: CallContext,
): Promise<OwnedResource[]> {
  const { instances } = await host.instances(signal)
  return instances
    .filter((one) => ownerOf(one).deployment === deployment)
    .filter((one) => !isEnded(one) && one.status !== 'terminating')
    .map((instance): OwnedResource => {
      const handle = handleFrom(instance)
      const { type, place, priceMicroUsdPerHour } = handle.realised
      return {
        handle,
        owner: ownerOf(instance),
        createdAtMs: handle.launchedAtMs,
        place,
        description: `${type} in ${place}, ${instance.status}, ordered ${formatInstant(handle.launchedAtMs)}`,
        costMicroUsdPerDay: spendOver(DAY_MS, priceMicroUsdPerHour),
      }
    })
}
