import type { LaunchOutcome } from '../../core/activities'
import { startsWithinMs } from '../../core/money/budget'
import type { Failure } from '../../core/failure'
import type { Offer } from '../../core/offer'
import type { Order } from '../../core/job/plan'
import { CLOCK_SLACK_MS, SECOND_MS } from '../../core/time/time'
import type { CallContext } from '../backend'
import { containerStart } from '../bootstrap'
import { BackendError } from '../errors'
import { HttpError } from '../http'
import { cacheEnvironment, CACHE_PATH, cacheVolume } from './cache'
import type { Health, Job, JobRequest } from './documents'
import { failureOf, invalid, launchFailure, mayHaveHappened } from './errors'
import type { Host } from './host'
import { handleOf, isOpen, tagsOf } from './machines'
import { imageSecretOf, versionProblem } from './policy'

/** A request that arrives later starts nothing. */
const SEND_MS = 45 * SECOND_MS

/** A name that the gateway takes as the key of a job. */
const KEY = /^[a-z0-9][a-z0-9-]{0,62}$/

/** Sends the order under its token, which the gateway honours for ever: repeated, it answers with the same machine. */
export async function launch(host: Host, order: Order, { signal }: CallContext): Promise<LaunchOutcome> {
  const [offer] = order.offers
  if (offer === undefined || order.offers.length > 1 || !KEY.test(order.token))
    throw invalid(
      'the order does not name one offer, or its attempt has no usable name',
      'Plan the job again.',
    )
  const health = await host.api.health(signal)
  const tooNew = versionProblem(health)
  if (tooNew !== undefined) return { kind: 'refused', failure: tooNew }
  const request = await requestFor(host, { order, offer, health })
  try {
    return outcomeOf(host, await host.api.submit(order.token, request, signal), offer)
  } catch (error) {
    if (!(error instanceof HttpError)) throw error
    if (mayHaveHappened(error)) return knownOutcome(host, order.token, { offer, signal })
    const failure = failureOf(error)
    if (failure.class === 'transient' || failure.class === 'throttled')
      throw new BackendError(failure, { cause: error })
    return { kind: 'refused', failure }
  }
}

/**
 * Asks the gateway about a send whose answer was lost. A machine that it knows is watched at once; the first question after an end dates
 * it. An unknown key proves nothing yet, because the request may still arrive.
 */
async function knownOutcome(
  host: Host,
  key: string,
  { offer, signal }: { offer: Offer; signal: AbortSignal },
): Promise<LaunchOutcome> {
  const job = await host.api.job(key, signal).catch(() => undefined)
  return job === undefined
    ? { kind: 'unconfirmed', findAfterMs: SEND_MS + CLOCK_SLACK_MS }
    : outcomeOf(host, job, offer)
}

function outcomeOf(host: Host, job: Job, offer: Offer): LaunchOutcome {
  if (typeof job.sandbox_id === 'string' || isOpen(job))
    return { kind: 'launched', handle: handleOf(host, job, offer) }
  return { kind: 'refused', failure: failureOfJob(job) }
}

/** Returns why a job has no machine and will get none. */
function failureOfJob({ phase, error }: Job): Failure {
  if (error !== null && error !== undefined) return launchFailure(error)
  const words = phase === 'cancelled' ? 'the attempt ended before it started' : 'the launch was lost'
  return { class: 'capacity', message: `Modal: ${words}` }
}

interface Parts {
  order: Order
  offer: Offer
  health: Health
}

async function requestFor(host: Host, { order, offer, health }: Parts): Promise<JobRequest> {
  const { config, deps } = host
  if (deps.handOver === undefined)
    throw invalid('the order cannot be handed over to a machine', 'Report this: it is an error in Crucible.')
  const { attemptId, deployment, token } = order
  const { cores, memoryMiB, gpu } = offer.data ?? {}
  const handOver = await deps.handOver(order, token)
  // The gateway makes one machine per key. The key is its id, because Modal does not show a container the id of its Sandbox.
  const start = containerStart(handOver, {
    attemptId,
    machineId: { literal: token },
    startsWithinMs: startsWithinMs(order.runner),
  })
  const volume = config.hasCache ? cacheVolume(health.allowed.volumes, deployment) : undefined
  return {
    owner: deployment,
    tags: tagsOf(order, offer),
    image: {
      reference: order.image ?? null,
      secret: imageSecretOf(config.imageSecrets, order.image),
      requirements: order.requirements ?? [],
    },
    command: start.command,
    env: { ...start.environment, ...(volume === undefined ? {} : cacheEnvironment()) },
    gpu: gpu ?? null,
    cpu: Number(cores),
    memory_mib: Number(memoryMiB),
    timeout_s: Math.ceil(config.runMsMax / SECOND_MS),
    volumes: volume === undefined ? {} : { [CACHE_PATH]: volume },
    secrets: [],
    send_by_ms: deps.clock() + SEND_MS,
  }
}
