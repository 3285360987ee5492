import { proxyActivities, sleep } from '@temporalio/workflow'
import type { BackendActivities } from '../core/activities'
import { failureFrom } from '../core/failure'
import type { GarbageCollectionInput, GarbageCollectionResult, GarbageVerdict } from '../core/messages'
import { backendQueue } from '../core/queues'

/**
 * Ends what nobody owns: one look at every backend, a grace, and a second look that ends what was unowned both times. Runs on a
 * Temporal Schedule, and by hand.
 */
export async function garbageCollection(input: GarbageCollectionInput): Promise<GarbageCollectionResult> {
  const first = await lookEverywhere(input, 'look for what nobody owns', () => [])
  const candidates = first.filter(({ action }) => action === 'would-end')
  if (input.isDryRun || candidates.length === 0) return { verdicts: first }
  await sleep(input.graceMs, { summary: 'grace before anything is ended' })
  const idsOf = (backend: string): string[] =>
    candidates.filter((each) => each.backend === backend).map(({ id }) => id)
  return { verdicts: await lookEverywhere(input, 'end what still nobody owns', idsOf) }
}

async function lookEverywhere(
  { backends, deployment, isDryRun }: GarbageCollectionInput,
  summary: string,
  candidatesOf: (backend: string) => string[],
): Promise<GarbageVerdict[]> {
  const looks = backends.map(async (backend) => {
    const { collectGarbage } = proxyActivities<BackendActivities>({
      taskQueue: backendQueue(backend),
      cancellationType: 'WAIT_CANCELLATION_COMPLETED',
      heartbeatTimeout: '20 seconds',
      scheduleToStartTimeout: '5 minutes',
      startToCloseTimeout: '30 minutes',
      retry: { maximumAttempts: 5 },
      summary,
    })
    try {
      return await collectGarbage({ deployment, backend, candidates: candidatesOf(backend), isDryRun })
    } catch (error) {
      // One backend that cannot be asked must not keep the others from being swept.
      return [unasked(backend, failureFrom(error).message)]
    }
  })
  return (await Promise.all(looks)).flat()
}

function unasked(backend: string, reason: string): GarbageVerdict {
  return {
    backend,
    kind: 'backend',
    id: '',
    owner: '',
    description: 'could not be asked',
    action: 'failed',
    reason,
  }
}
