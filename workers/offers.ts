import { randomUUID } from 'node:crypto'
import type { Client } from '@temporalio/client'
import type { AskOffers } from '../activities/plan/asking'
import { received } from '../activities/plan/sent-answer'
import type { SentAnswer } from '../core/job/waiting'
import type { BackendName } from '../core/offer'
import type { BackendAnswer } from '../core/job/plan'
import { backendQueue } from '../core/queues'
import { BackendError } from '../backends/errors'
import { failureFrom } from '../core/failure'

/** Answers this recent are shared by all jobs with the same request; a second-old stock is as good as a current one. */
const FRESH_MS = 1_000
/** Limit on cached answers, so that a thousand different requests do not fill the memory. */
const KEPT_MAX = 100

/**
 * Asks a backend for offers through its own worker, which holds its credentials and its rate limits. The activity runs outside any
 * workflow, so it leaves nothing in the job's history. Answers are shared briefly, except those of `near` backends.
 */
export function offersThroughWorkers(
  client: Client,
  monotonicMs: () => number,
  near: readonly BackendName[] = [],
): AskOffers {
  const askAnew: AskOffers = async (backend, request, { pins, image, asker } = {}) => {
    try {
      const answer = await client.activity.execute<SentAnswer>('offers', {
        id: `offers/${backend}/${randomUUID()}`,
        taskQueue: backendQueue(backend),
        args: [{ request, pins, image, asker }],
        scheduleToStartTimeout: '5 seconds',
        startToCloseTimeout: '20 seconds',
        retry: { maximumAttempts: 2 },
      })
      return received(answer)
    } catch (error) {
      throw new BackendError(reasonOf(backend, error), { cause: error })
    }
  }
  const askShared = shared(monotonicMs, askAnew)
  return (backend, request, more) =>
    near.includes(backend)
      ? askAnew(backend, request, more)
      : // A backend without counted places holds none for a job.
        askShared(backend, request, { pins: more?.pins, image: more?.image })
}

function reasonOf(backend: string, error: unknown): ReturnType<typeof failureFrom> {
  const failure = failureFrom(error)
  if (failure.class !== 'unclassified' || !/timeout|timed out/i.test(failure.message)) return failure
  return { class: 'capacity', message: `no worker is running for it (start one: crucible worker ${backend})` }
}

/** Shares one request at a time for the same question; its answer serves all callers within a moment. */
function shared(monotonicMs: () => number, ask: AskOffers): AskOffers {
  const kept = new Map<string, { answer: Promise<BackendAnswer>; askedAtMs: number }>()
  return (backend, request, more) => {
    const key = JSON.stringify([backend, request, more?.pins, more?.image])
    const known = kept.get(key)
    if (known !== undefined && monotonicMs() - known.askedAtMs < FRESH_MS) return known.answer
    const answer = ask(backend, request, more)
    answer.catch(() => kept.delete(key))
    kept.delete(key)
    kept.set(key, { answer, askedAtMs: monotonicMs() })
    const [oldest] = kept.keys()
    if (kept.size > KEPT_MAX && oldest !== undefined) kept.delete(oldest)
    return answer
  }
}
