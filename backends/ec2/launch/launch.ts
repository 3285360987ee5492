import type { LaunchOutcome } from '../../../core/activities'
import { SECOND_MS } from '../../../core/time/time'
import type { Failure } from '../../../core/failure'
import type { Offer } from '../../../core/offer'
import type { Order } from '../../../core/job/plan'
import type { CallContext } from '../../backend'
import { BackendError } from '../../errors'
import {
  AwsError,
  type FleetAnswer,
  type FleetRequest,
  type Machine,
  type Pool,
  type ReservedRequest,
} from '../sdk/api'
import { pause } from '../../calls'
import { ec2Error, hasCode, invalid, mayHaveHappened, transient } from '../errors'
import { failureOfFleet, treatAsTransientWhileNew } from './fleet-failure'
import { LEFT_ALONE_MS, type Host } from '../host'
import { handleOf, handleOfFleet } from '../machine/machines'
import { isOurs } from '../machine/observe'
import { CAPACITY_TYPES } from '../market/offers'
import { reservedFailure } from './reserved-launch'
import { tagsOf, TAGS } from '../tags'
import { templateSpec, type TemplateFacts } from './template'

/** An ordered machine rarely appears later than this; from then on its tag is searched. */
const FIND_AFTER_MS = 5 * SECOND_MS

/**
 * Sends the order as one instant fleet of one machine, or as one machine for a reservation. Everything is part of the order, the token
 * included, so that the provider recognises a repetition as the same request.
 */
export async function launch(host: Host, order: Order, { signal }: CallContext): Promise<LaunchOutcome> {
  const { attemptId } = order
  try {
    const request = requestFor(order, host.deps.grantFile !== undefined)
    host.memory.sent(attemptId)
    const beforeMs = host.deps.clock()
    const sent = await send(host, { order, request, signal })
    const answer = sent && (isSilent(sent) ? await askFleet(host, sent, signal) : sent)
    // A machine without an id was bought too.
    if (answer === undefined || answer.machines.some(({ id }) => id === ''))
      return { kind: 'unconfirmed', findAfterMs: FIND_AFTER_MS }
    const [bought] = answer.machines
    if (bought === undefined) return refuse(host, order, failureOfFleet(host, order, answer.errors))
    const machine = bought.machine ?? (await see(host, bought.id, signal))
    const handle =
      machine === undefined ? handleOfFleet(order, { ...bought, launchedAtMs: beforeMs }) : handleOf(machine)
    return { kind: 'launched', handle }
  } catch (error) {
    const failure = await reservedFailure(host, order, { failure: ec2Error(error).failure, signal })
    // Temporal sends the order again for these classes; for all others it is certain that nothing was bought.
    if (failure.class === 'transient' || failure.class === 'throttled')
      throw new BackendError(failure, { cause: error })
    return refuse(host, order, failure)
  }
}

/** Throws `invalid` for an order that this backend can never fulfil. */
function requestFor(order: Order, hasGrant: boolean): FleetRequest | ReservedRequest {
  const [first] = order.offers
  const template = first?.data?.template
  if (first === undefined || template === undefined || order.offers.some(({ data }) => !data?.subnet))
    throw invalid('the order names nothing to launch', 'Plan the job again.')
  const tags = tagsOf(order, hasGrant)
  if (order.capacityType === 'reserved') return reservedRequest(order, first, tags)
  const capacityType = CAPACITY_TYPES.find((one) => one === order.capacityType)
  if (capacityType === undefined)
    throw invalid(`this backend does not launch ${order.capacityType} machines`, 'Plan the job again.')
  return {
    token: order.token,
    capacityType,
    templateName: template,
    // Pools with another image or disk would need a separate template; they belong to other orders.
    pools: order.offers
      .filter(({ data }) => data?.template === template)
      .map(({ type, data }) => poolOf(type, data!)),
    tags,
  }
}

/** A pool of an order; one without a speed of its disk leaves the disk to the template. */
function poolOf(type: string, data: Record<string, string>): Pool {
  const { subnet = '', rootDevice = '', diskGiB, diskMibPerSecond, diskIops } = data
  if (diskMibPerSecond === undefined) return { type, subnet }
  const speed = { mibPerSecond: Number(diskMibPerSecond), iops: Number(diskIops) }
  return { type, subnet, disk: { device: rootDevice, sizeGiB: Number(diskGiB), speed } }
}

function reservedRequest(order: Order, { type, data }: Offer, tags: Record<string, string>): ReservedRequest {
  const { reservation, market, template = '' } = data!
  if (reservation === undefined) throw invalid('the order names no reservation', 'Plan the job again.')
  return {
    token: order.token,
    templateName: template,
    pool: poolOf(type, data!),
    reservation,
    isBlock: market !== undefined,
    tags,
  }
}

interface Sending {
  order: Order
  request: FleetRequest | ReservedRequest
  signal: AbortSignal
}

/** `undefined` if the outcome is unknown. A missing template is created, and the request sent again. */
async function send(host: Host, sending: Sending): Promise<FleetAnswer | undefined> {
  const { order, request, signal } = sending
  try {
    return await buy(host, request, signal)
  } catch (error) {
    if (isTemplateMissing(error)) {
      await makeTemplate(host, sending)
      return await sendAgain(host, sending)
    }
    if (hasCode(error, 'IdempotentParameterMismatch')) return adopt(host, order, signal)
    return classifySendError(host, error)
  }
}

async function buy(
  { api: { machines } }: Host,
  request: Sending['request'],
  signal: AbortSignal,
): Promise<FleetAnswer> {
  if (!('reservation' in request)) return machines.createFleet(request, signal)
  const machine = await machines.runReserved(request, signal)
  return { machines: [{ id: machine.id, machine }], errors: [] }
}

async function sendAgain(host: Host, { request, signal }: Sending): Promise<FleetAnswer | undefined> {
  try {
    return await buy(host, request, signal)
  } catch (error) {
    if (isTemplateMissing(error)) throw transient('the new launch template is not yet visible everywhere')
    return classifySendError(host, error)
  }
}

function isTemplateMissing(error: unknown): boolean {
  return hasCode(
    error,
    'InvalidLaunchTemplateName.NotFoundException',
    'InvalidLaunchTemplateId.NotFound',
    'InvalidLaunchTemplateId.VersionNotFound',
  )
}

/** `undefined` if the request may have had its effect; otherwise throws the failure. */
function classifySendError(host: Host, error: unknown): undefined {
  if (!(error instanceof AwsError)) throw error
  if (mayHaveHappened(error)) return undefined
  throw new BackendError(treatAsTransientWhileNew(host, error, ec2Error(error).failure), { cause: error })
}

async function makeTemplate(host: Host, { order, request, signal }: Sending): Promise<void> {
  const facts = order.offers[0]!.data as TemplateFacts
  const spec = templateSpec(request.templateName, facts, { ...host.common, deployment: order.deployment })
  try {
    await host.api.machines.createTemplate(spec, signal)
  } catch (error) {
    // Another worker was faster, or an answer was lost; the name determines the content, so the template is the right one.
    if (hasCode(error, 'InvalidLaunchTemplateName.AlreadyExistsException')) return
    throw error
  }
}

/** The token was used for a different request: the result of that one is the attempt's machine. */
async function adopt(host: Host, order: Order, signal: AbortSignal): Promise<FleetAnswer> {
  const machines = await host.api.machines.byTag({ name: TAGS.attempt, values: [order.attemptId] }, signal)
  const found = machines.filter((machine) => isOurs(host, machine))
  if (found.length > 0) return { machines: found.map(({ id }) => ({ id })), errors: [] }
  throw invalid(
    'the token of this order was already used for a different request, which launched no machine',
    'Report this: an order must never change once it was sent.',
  )
}

function isSilent({ machines, errors }: FleetAnswer): boolean {
  return machines.length === 0 && errors.length === 0
}

/**
 * EC2's record of a fleet that answered with neither a machine nor an error; `undefined` if that says nothing either, and the machine's tag
 * must be searched.
 */
async function askFleet(
  host: Host,
  { fleetId }: FleetAnswer,
  signal: AbortSignal,
): Promise<FleetAnswer | undefined> {
  if (fleetId === undefined) return undefined
  for (const waitMs of LOOKS_MS) {
    try {
      if (waitMs > 0) await pause(waitMs, signal)
      const answer = await host.api.machines.fleet(fleetId, signal)
      if (answer !== undefined && !isSilent(answer)) return answer
    } catch {
      // The list was forbidden or not answered, so a machine may have been bought.
      return undefined
    }
  }
  return undefined
}

/** Pauses between lookups of a new machine: about two seconds in total, after which the fleet's answer is used. */
const LOOKS_MS = [0, 200, 600, 1_200]

/** Returns the machine from the provider's lists, if it appears there soon: only they show when billing began. */
async function see(host: Host, id: string, signal: AbortSignal): Promise<Machine | undefined> {
  for (const waitMs of LOOKS_MS) {
    try {
      if (waitMs > 0) await pause(waitMs, signal)
      const [machine] = await host.api.machines.byId([id], signal)
      if (machine !== undefined && machine.tags[TAGS.attempt] !== undefined) return machine
    } catch {
      // The machine is bought, even if the lists lack it or the caller has aborted.
      return undefined
    }
  }
  return undefined
}

function refuse(host: Host, order: Order, failure: Failure): LaunchOutcome {
  if (failure.class === 'capacity' || failure.class === 'quota') {
    for (const offer of order.offers)
      if (host.memory.whyMissed(offer) === undefined)
        host.memory.missed(offer, failure.message, LEFT_ALONE_MS[failure.class])
  }
  host.memory.refused(order.attemptId)
  return { kind: 'refused', failure }
}
