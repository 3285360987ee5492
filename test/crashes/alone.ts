import { setTimeout as sleep } from 'node:timers/promises'
import { endExpired } from '../../activities/garbage/expired'
import type { Backend } from '../../backends/backend'
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../../core/time/time'
import { sendNameOf } from '../../core/queues'
import { issueOrder, makeOrder } from '../backends/orders'
import { backendOver, closeGround, openGround, type CloudGround } from '../clouds/cloud'
import type { CloudProvider } from '../clouds/provider'
import { until } from '../support/until'
import { gatedStore, gateSdk } from './gates'
import { gate, MOMENTS, OurProcess, type Death, type Moment } from './process'

/** Where a collection without a server dies. */
export interface AloneDeath {
  call: string
  occurrence: number
  moment: Moment
}

const DEPLOYMENT = 'dep-0123456789'
const OTHER_DEPLOYMENT = 'dep-9876543210'
/** By the store's clock, an hour later than it is here. */
const LATER_MS = HOUR_MS
const LIMIT_MS = 60 * SECOND_MS
/** A request of a process that died has its effect this much later. */
const ARRIVES_AFTER_MS = 300
/** What is repeated is as it was the first times. */
const OCCURRENCES_MAX = 2

/** Every death of a collection: in each call that one without a crash makes. */
export async function deathsAlone(provider: CloudProvider): Promise<AloneDeath[]> {
  const calls = new Map<string, number>()
  await collectWith(provider, (call, occurrence) => {
    calls.set(call, occurrence)
    return undefined
  })
  return [...calls].flatMap(([call, times]) =>
    Array.from({ length: Math.min(times, OCCURRENCES_MAX) }, (_, index) => index + 1).flatMap((occurrence) =>
      MOMENTS.map((moment) => ({ call, occurrence, moment })),
    ),
  )
}

export interface AloneReport {
  /** How often the planned death came. */
  deaths: number
  /** Machines without a valid lease that the next collection has left. */
  left: string[]
  /** Machines that had to live and do not. */
  killed: string[]
}

/** Collects once with a death and once without, and tells what is left and what should not have been ended. */
export async function dieAlone(
  provider: CloudProvider,
  { call, occurrence, moment }: AloneDeath,
): Promise<AloneReport> {
  let deaths = 0
  const report = await collectWith(provider, (asked, times) => {
    if (asked !== call || times !== occurrence) return undefined
    deaths += 1
    return { moment, lateMs: ARRIVES_AFTER_MS }
  })
  return { deaths, ...report }
}

async function collectWith(
  provider: CloudProvider,
  meet: (call: string, occurrence: number) => Death | undefined,
): Promise<Omit<AloneReport, 'deaths'>> {
  gateSdk()
  const ground = await openGround({ provider, world: {}, behave: () => ({ neverStarts: true }) }, DEPLOYMENT)
  try {
    await launchAll(ground)
    const counts = new Map<string, number>()
    const dying = processOver(ground, (call) => {
      const occurrence = (counts.get(call) ?? 0) + 1
      counts.set(call, occurrence)
      return meet(call, occurrence)
    })
    // A death is all that may go wrong.
    await Promise.race([dying.run('gc', () => dying.perform('gc', {})), dying.died])
    if (dying.isDead) await sleep(2 * ARRIVES_AFTER_MS)
    const next = processOver(ground, () => undefined)
    await next.run('gc', () => next.perform('gc', {}))
    const expired = EXPIRED.map((jobId) => `${jobId}-1`)
    const isAlive = (attemptId: string): boolean => alive(ground).includes(attemptId)
    await until(() => !expired.some(isAlive)).catch(() => undefined)
    return {
      left: expired.filter(isAlive),
      killed: KEPT.map(({ jobId }) => `${jobId}-1`).filter((attemptId) => !isAlive(attemptId)),
    }
  } finally {
    await closeGround(ground)
  }
}

const EXPIRED = ['job-first', 'job-second']
/** One has a lease that may still be valid, the other is of another deployment. */
const KEPT = [
  { jobId: 'job-leased', deployment: DEPLOYMENT, leaseMs: 2 * LATER_MS },
  { jobId: 'job-foreign', deployment: OTHER_DEPLOYMENT, leaseMs: SECOND_MS },
]

async function launchAll(ground: CloudGround): Promise<void> {
  const expired = EXPIRED.map((jobId) => ({ jobId, deployment: DEPLOYMENT, leaseMs: SECOND_MS }))
  const all = [...expired, ...KEPT]
  for (const wanted of all) await launch(ground, wanted)
  await until(() => alive(ground).length === all.length)
}

async function launch(
  ground: CloudGround,
  { jobId, deployment, leaseMs }: (typeof KEPT)[number],
): Promise<void> {
  const { store } = ground.storage
  const backend = backendOver(ground, { deployment })
  const signal = AbortSignal.timeout(LIMIT_MS)
  const [offer] = await backend.offers({ gpus: { min: 1 } }, { signal })
  const timing = { leaseMs, startWithinMs: 10 * MINUTE_MS }
  const order = makeOrder({ store, offers: [offer!], jobId, deployment, timing })
  await issueOrder(store, order, Date.now())
  const outcome = await backend.launch(order, { signal, send: sendNameOf(order.attemptId, 1) })
  if (outcome.kind !== 'launched') throw new Error(`${jobId} got no machine: ${JSON.stringify(outcome)}`)
}

/** Attempts whose machines cost money. */
function alive({ cloud, provider }: CloudGround): string[] {
  return cloud
    .instances()
    .filter(({ state }) => provider.leaking.includes(state))
    .map(({ tags }) => provider.attemptOf(tags) ?? '')
}

/** `crucible gc --alone` as a process; what it has of its provider is its own. */
function processOver(ground: CloudGround, meet: (call: string) => Death | undefined): OurProcess {
  const backend: Backend = backendOver(ground, { around: gate })
  const store = gatedStore(ground.storage.store)
  const storeNow = (): number => Date.now() + LATER_MS
  const gc = (): Promise<unknown> =>
    endExpired(
      { backend, store, storeNow },
      { deployment: DEPLOYMENT, isDryRun: false },
      AbortSignal.timeout(LIMIT_MS),
    )
  return new OurProcess({ gc }, meet)
}
