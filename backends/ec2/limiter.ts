import { createLimiter as createBucketLimiter, type Limiter } from '../limiter'
import type { Ec2Api } from './sdk/api'

/**
 * What an account may send in one Region: a bucket of requests that fills again ("Request throttling for the Amazon EC2 API",
 * November 2026: 50 and 5 per second for calls that change something). All workers of a deployment share it; what one of them
 * keeps to still keeps a burst of jobs from being refused in turns.
 */
const BUCKET = { size: 50, perSecond: 5 }

export function createLimiter(clock: () => number): Limiter {
  return createBucketLimiter(BUCKET, clock)
}

/** The same calls, those that change something at the provider's pace. */
export function paced(api: Ec2Api, limiter: Limiter): Ec2Api {
  const { machines, commands, leftovers } = api
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
      terminate: (id, signal, how) =>
        limiter.run('ending', signal, () => machines.terminate(id, signal, how)),
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
  }
}
