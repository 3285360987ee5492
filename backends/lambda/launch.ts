import type { LaunchOutcome } from '../../core/activities'
import { startsWithinMs } from '../../core/money/budget'
import type { Failure } from '../../core/failure'
import type { Offer } from '../../core/offer'
import type { Order } from '../../core/job/plan'
import { SECOND_MS } from '../../core/time/time'
import type { SendContext } from '../backend'
import { cloudInit } from '../bootstrap'
import { throwIfLate } from '../calls'
import { BackendError } from '../errors'
import { HttpError } from '../http'
import type { LambdaInstance, LaunchRequest } from './api'
import { failureOf, invalid, mayHaveHappened } from './errors'
import type { Host } from './host'
import { handleFrom, handleOf, isEnded, machinesOf, tagsOf } from './machines'

/** A machine is seldom listed later than this after its launch. */
const FIND_AFTER_MS = 10 * SECOND_MS

/** Sends the order as one launch, unless the account's list already has a machine of the attempt. */
export async function launch(host: Host, order: Order, ctx: SendContext): Promise<LaunchOutcome> {
  const { signal, send } = ctx
  const [offer] = order.offers
  if (offer === undefined || offer.place === '' || order.offers.length > 1)
    throw invalid('the order does not name one type in one Region', 'Plan the job again.')
  if (send === undefined || host.deps.handOver === undefined)
    throw invalid('the order cannot be handed over to a machine', 'Report this: it is an error in Crucible.')
  const { instances } = await host.instances(signal)
  const [existing] = machinesOf(host, instances, order.attemptId)
  if (existing !== undefined) return { kind: 'launched', handle: handleFrom(existing) }
  const handOver = await host.deps.handOver(order, send)
  const tags = tagsOf(order, { send, atMs: host.deps.clock(), offer })
  // The machine powers off if it has nothing to do, but only `terminate` ends its billing.
  const userData = cloudInit(handOver, {
    attemptId: order.attemptId,
    send,
    startsWithinMs: startsWithinMs(order.runner),
  })
  throwIfLate(ctx)
  try {
    const request = requestFor(host, { order, offer, send, tags, userData })
    const [id] = await host.api.launch(request, signal)
    return { kind: 'launched', handle: handleOf(id!, tags, offer) }
  } catch (error) {
    if (!(error instanceof HttpError)) throw error
    if (mayHaveHappened(error)) return { kind: 'unconfirmed', findAfterMs: findAfterMs(host) }
    const failure = failureOf(error)
    if (failure.class === 'capacity') host.seen.missed(offer.type, offer.place)
    if (failure.class === 'quota') return { kind: 'refused', failure: beyondQuota(host, failure, instances) }
    // Sent again later; nothing was bought.
    if (failure.class === 'transient' || failure.class === 'throttled')
      throw new BackendError(failure, { cause: error })
    return { kind: 'refused', failure }
  }
}

/**
 * Returns the failure of a launch beyond the quota. If the account's machines use the quota up, it is free again when one of them ends, so
 * for the job it is missing capacity.
 */
function beyondQuota({ seen }: Host, failure: Failure, instances: LambdaInstance[]): Failure {
  const isInUse = instances.some((one) => !isEnded(one))
  seen.quotaReached(isInUse ? 'in-use' : 'none')
  return isInUse ? { ...failure, class: 'capacity' } : failure
}

function findAfterMs({ config }: Host): number {
  return Math.min(FIND_AFTER_MS, config.staleForMs)
}

interface Parts {
  order: Order
  offer: Offer
  send: string
  tags: Record<string, string>
  userData: string
}

function requestFor({ config }: Host, { order, offer, send, tags, userData }: Parts): LaunchRequest {
  const cache = offer.data?.['cache']
  return {
    region_name: offer.place,
    instance_type_name: offer.type,
    ssh_key_names: [config.sshKey],
    name: order.attemptId,
    hostname: send,
    user_data: userData,
    tags: Object.entries(tags).map(([key, value]) => ({ key, value })),
    file_system_names: cache === undefined ? [] : [cache],
  }
}
