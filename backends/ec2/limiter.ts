import { createLimiter as createBucketLimiter, type Limiter } from '../limiter'
import type { Ec2Api } from './sdk/api'

/**
 * Request rate of an account in one Region: a token bucket ("Request throttling for the Amazon EC2 API", November 2026: 50 tokens, 5 per
 * second for mutating calls). All workers of a deployment share it; even per-worker limiting prevents a burst of jobs from being refused in
 * turn.
 */
const BUCKET = { size: 50, perSecond: 5 }

export function createLimiter(clock: () => number): Limiter {
  return createBucketLimiter(BUCKET, clock)
}

/** Limits mutating calls to the provider's rate. */
export function paced(api: Ec2Api, limiter: Limiter): Ec2Api {
  const { machines, commands, leftovers, reserving } = api
  return {
    ...api,
    machines: {
      ...machines,
      createFleet: (request, signal) =>
        limiter.run('other', signal, () => machines.createFleet(request, signal)),
      runReserved: (request, signal) =>
        limiter.run('other', signal, () => machines.runReserved(request, signal)),
      createTemplate: (spec, signal) =>
        limiter.run('other', signal, () => machines.createTemplate(spec, signal)),
      terminate: (ids, signal, how) =>
        limiter.run('ending', signal, () => machines.terminate(ids, signal, how)),
      deleteVolume: (id, signal) => limiter.run('ending', signal, () => machines.deleteVolume(id, signal)),
    },
    commands: {
      ...commands,
      send: (request, signal) => limiter.run('other', signal, () => commands.send(request, signal)),
    },
    leftovers: {
      ...leftovers,
      deleteTemplate: (id, signal) =>
        limiter.run('other', signal, () => leftovers.deleteTemplate(id, signal)),
      cancelSpotRequest: (id, signal) =>
        limiter.run('ending', signal, () => leftovers.cancelSpotRequest(id, signal)),
    },
    reserving: {
      ...reserving,
      buyBlock: (order, signal) => limiter.run('other', signal, () => reserving.buyBlock(order, signal)),
      buyExtension: (order, signal) =>
        limiter.run('other', signal, () => reserving.buyExtension(order, signal)),
      create: (request, signal) => limiter.run('other', signal, () => reserving.create(request, signal)),
      modify: (id, change, signal) =>
        limiter.run('other', signal, () => reserving.modify(id, change, signal)),
      split: (request, signal) => limiter.run('other', signal, () => reserving.split(request, signal)),
      cancellationQuote: (request, signal) =>
        limiter.run('other', signal, () => reserving.cancellationQuote(request, signal)),
      cancel: (id, how, signal) => limiter.run('ending', signal, () => reserving.cancel(id, how, signal)),
    },
  }
}
