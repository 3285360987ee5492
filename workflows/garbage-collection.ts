import { proxyActivities, sleep } from '@temporalio/workflow'
import type { BackendActivities, CollectGarbageInput, OrchestratorActivities } from '../core/activities'
import { failureFrom, inWords } from '../core/failure'
import type { GarbageCollectionInput, GarbageCollectionResult, GarbageVerdict } from '../core/messages'
import { backendQueue, ORCHESTRATOR_QUEUE } from '../core/queues'

/**
 * Ends orphaned resources: a scan of every backend and of the store, a grace period, and a second scan that ends the resources that were
 * orphaned both times. Runs on a Temporal Schedule, and by hand.
 */
export async function garbageCollection(input: GarbageCollectionInput): Promise<GarbageCollectionResult> {
  const first = await scanEverywhere(input, { summary: 'find orphaned resources', candidatesOf: () => [] })
  const candidates = first.filter(({ action }) => action === 'would-end')
  if (input.isDryRun || candidates.length === 0) return { verdicts: first }
  await sleep(input.graceMs, { summary: 'grace period before anything is removed' })
  const candidatesOf = (backend: string): string[] =>
    candidates.filter((each) => each.backend === backend).map(({ id }) => id)
  const second = { summary: 'remove what is still orphaned', candidatesOf, youngMs: input.graceMs }
  return { verdicts: await scanEverywhere(input, second) }
}

interface Scan {
  summary: string
  /** Ids found unowned by the last scan, by backend. */
  candidatesOf: (backend: string) => string[]
  /** Minimum age of an ended resource by the provider's clock. */
  youngMs?: number
}

async function scanEverywhere(
  { backends, deployment, isDryRun }: GarbageCollectionInput,
  { summary, candidatesOf, ...young }: Scan,
): Promise<GarbageVerdict[]> {
  const inputFor = (backend: string): CollectGarbageInput => ({
    deployment,
    backend,
    candidates: candidatesOf(backend),
    isDryRun,
    ...young,
  })
  const looks = backends.map((backend) =>
    asked(backend, () => looking(backendQueue(backend), summary).collectGarbage(inputFor(backend))),
  )
  looks.push(asked(STORE, () => looking(ORCHESTRATOR_QUEUE, summary).collectStoreGarbage(inputFor(STORE))))
  return (await Promise.all(looks)).flat()
}

/** Used in place of a backend's name. */
const STORE = 'store'

type Looks = Pick<BackendActivities, 'collectGarbage'> & Pick<OrchestratorActivities, 'collectStoreGarbage'>

function looking(taskQueue: string, summary: string): Looks {
  return proxyActivities<Looks>({
    taskQueue,
    cancellationType: 'WAIT_CANCELLATION_COMPLETED',
    heartbeatTimeout: '20 seconds',
    scheduleToStartTimeout: '5 minutes',
    startToCloseTimeout: '30 minutes',
    retry: { maximumAttempts: 5 },
    summary,
  })
}

/** A backend that does not answer must not keep the others from being swept. */
async function asked(backend: string, scan: () => Promise<GarbageVerdict[]>): Promise<GarbageVerdict[]> {
  try {
    return await scan()
  } catch (error) {
    return [unasked(backend, inWords(failureFrom(error)))]
  }
}

function unasked(backend: string, reason: string): GarbageVerdict {
  return {
    backend,
    kind: 'backend',
    id: '',
    owner: '',
    description: 'did not answer',
    action: 'failed',
    reason,
  }
}
