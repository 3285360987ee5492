import { randomBytes } from 'node:crypto'
import type { IssuedRunnerOrder, RunnerOrder } from '../../core/documents'
import type { Offer } from '../../core/offer'
import type { Order } from '../../core/job/plan'
import { attemptIdOf, orderTokenOf } from '../../core/queues'
import type { ResourceRequest } from '../../core/resources'
import { DEFAULT_TIMING, type Timing } from '../../core/time/timing'
import { layout } from '../../storage/layout'
import type { ObjectStore } from '../../storage/store'

export interface OrderOptions {
  store: ObjectStore
  offers: Offer[]
  jobId?: string
  attempt?: number
  deployment?: string
  /** The workload's command line. */
  run?: string
  runnerSha256?: string
  runnerStart?: Order['runnerStart']
  timing?: Partial<Timing>
  resources?: ResourceRequest
  runner?: Partial<RunnerOrder>
}

/** A job id of its own for each test: machines of this host are found by it, whatever directory they are in. */
export function newJobId(): string {
  return `job-${randomBytes(5).toString('hex')}`
}

/** An order as the planner would make it, for the first offer and others of its capacity type. */
export function makeOrder(options: OrderOptions): Order {
  const { store, offers, jobId = newJobId(), attempt = 1, resources = {} } = options
  const { capacityType, backend } = offers[0]!
  const attemptId = attemptIdOf(jobId, attempt)
  const { leaseMs, drainMs, powerOffMs, startWithinMs, beatMs, checkpointQuietMs } = {
    ...DEFAULT_TIMING,
    ...options.timing,
  }
  return {
    attemptId,
    jobId,
    attempt,
    deployment: options.deployment ?? 'test',
    backend,
    capacityType,
    offers: offers.filter((offer) => offer.capacityType === capacityType),
    resources,
    nodes: 1,
    token: orderTokenOf(attemptId, options.deployment ?? 'test'),
    runnerStart: options.runnerStart ?? 'with-launch',
    runnerSha256: options.runnerSha256 ?? '0'.repeat(64),
    storeUrl: store.url,
    priceMaxMicroUsdPerHour: Math.max(...offers.map((offer) => offer.priceMicroUsdPerHour)),
    runner: {
      version: 1,
      jobId,
      jobName: 'test',
      attempt,
      attemptId,
      run: options.run ?? 'sleep 600',
      setup: null,
      image: null,
      shmGiB: null,
      env: {},
      secrets: [],
      bundle: null,
      inputs: [],
      outputs: [],
      checkpoint: { directory: null, everyMs: 0, quietMs: checkpointQuietMs, keep: 3 },
      limits: { seq: 0, deadlineAtMs: null, budget: null },
      leaseMs,
      drainMs,
      powerOffMs,
      startWithinMs,
      beatMs,
      notice: { kind: 'none' },
      ...options.runner,
    },
  }
}

/** Puts `order.json`, as is done before a launch. */
export async function issueOrder(store: ObjectStore, order: Order, issuedAtMs: number): Promise<void> {
  const issued: IssuedRunnerOrder = { ...order.runner, issuedAtMs }
  await store.putIfAbsent(layout.order(order.jobId, order.attempt), JSON.stringify(issued))
}
