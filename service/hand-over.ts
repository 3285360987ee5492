import { randomBytes } from 'node:crypto'
import type { Logger } from 'pino'
import { BackendError } from '../backends/errors'
import type { BackendDeps } from '../backends/registry'
import { startsWithinMs } from '../core/money/budget'
import type { HandOverDocument } from '../core/documents'
import type { Order } from '../core/job/plan'
import { MACHINE_VARIABLE, machineNameOf } from '../core/queues'
import { CLOCK_SLACK_MS, formatInstant, SECOND_MS } from '../core/time/time'
import { stoppingMs } from '../core/time/timing'
import { layout } from '../storage/layout'
import { sealSecrets } from '../storage/secrets'
import type { ObjectStore } from '../storage/store'
import { troubleOf, type GrantIssuer } from './grants'
import type { SecretIssuer } from './secrets'

export interface HandOverDeps {
  store: ObjectStore
  secrets: Pick<SecretIssuer, 'keyOf' | 'handOverKeyOf'>
  /** Issuer of grants; missing for a store without credentials. */
  grants?: Pick<GrantIssuer, 'grantFile'> | undefined
  now: () => number
  logger?: Pick<Logger, 'warn'>
}

const NONCE_BYTES = 16

/**
 * Puts the hand-over of a send into the store and returns its location and key (docs/decisions/0041-hand-over.md). Repeated for the same
 * send, it returns the same key and does not change the document. It puts no document that could only be left over, because a machine has
 * claimed the attempt or the attempt must stop. Throws a `BackendError`.
 */
export function handOvers(deps: HandOverDeps): NonNullable<BackendDeps['handOver']> {
  let isWarned = false
  return async (order, send) => {
    const { store, secrets, now, logger } = deps
    const { jobId, attempt, runner } = order
    const forMs = runner.startWithinMs + CLOCK_SLACK_MS
    const key = secrets.handOverKeyOf(send)
    const place = layout.handOver(jobId, attempt, send)
    try {
      const urls = await store.signUrls(place, forMs)
      const { credentialsEndAtMs = Infinity } = urls
      if (credentialsEndAtMs < now() + forMs && !isWarned) {
        isWarned = true
        const until = formatInstant(credentialsEndAtMs)
        logger?.warn(
          { until },
          'machines that start later than the credentials of this worker end do nothing',
        )
      }
      if (await isWanted(store, order)) {
        const document = await documentOf(deps, order, { deleteUrl: urls.delete, forMs })
        const values = { handOver: JSON.stringify(document) }
        await store.putIfAbsent(place, sealSecrets(key, values, randomBytes(NONCE_BYTES)))
      }
      const lastWords = await store.signUrls(layout.lastWords(jobId, attempt), forMs)
      return { url: urls.read, key: key.toString('hex'), lastWordsUrl: lastWords.write }
    } catch (error) {
      throw error instanceof BackendError ? error : troubleOf(error)
    }
  }
}

async function isWanted(store: ObjectStore, { jobId, attempt }: Order): Promise<boolean> {
  const [claim, drain] = await Promise.all([
    store.head(layout.claim(jobId, attempt)),
    store.head(layout.drain(jobId, attempt)),
  ])
  return claim === undefined && drain === undefined
}

async function documentOf(
  { store, secrets, grants }: HandOverDeps,
  order: Order,
  { deleteUrl, forMs }: { deleteUrl: string; forMs: number },
): Promise<HandOverDocument> {
  const { jobId, attempt, attemptId, storeUrl, runnerSha256, runner } = order
  return {
    version: 1,
    jobId,
    attempt,
    attemptId,
    storeUrl,
    runnerSha256,
    deleteUrl,
    runnerUrl: await store.readUrl(layout.runner(runnerSha256), forMs),
    key: secrets.keyOf(attemptId),
    grant: (await grants?.grantFile(order)) ?? null,
    environment: { [MACHINE_VARIABLE]: machineNameOf(order) },
    startMs: startsWithinMs(runner),
    endMs: stoppingMs(runner) + CLOCK_SLACK_MS,
    stopSeconds: Math.ceil(stoppingMs(runner) / SECOND_MS),
  }
}
