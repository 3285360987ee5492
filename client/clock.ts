import type { Client } from '@temporalio/client'
import { ORCHESTRATOR_QUEUE } from '../core/queues'
import { STAMP_SLACK_MS } from '../core/received'
import { CLOCK_SLACK_MS, formatDuration, MINUTE_MS, SECOND_MS } from '../core/time/time'
import { withLimit } from './deadline'
import { CrucibleError } from './errors'

/** `temporal.api.enums.v1.TaskQueueType` */
const QUEUE_TYPES = { workflow: 1, activity: 2 } as const
export type QueueType = keyof typeof QUEUE_TYPES

/** Polls are renewed every minute; an older one belongs to a worker that is gone. */
export const POLL_FRESH_MS = 75 * SECOND_MS

/** A comparison of clocks must not delay a command for longer. */
const COMPARISON_LIMIT_MS = 2 * SECOND_MS

type Asked = Pick<Client, 'workflowService' | 'withDeadline'>

/** Returns when each worker has last polled a task queue, by the server's clock. The server forgets a poll after minutes. */
export async function pollTimes(
  { workflowService }: Pick<Client, 'workflowService'>,
  { namespace, queue, type }: { namespace: string; queue: string; type: QueueType },
): Promise<number[]> {
  const { pollers } = await workflowService.describeTaskQueue({
    namespace,
    taskQueue: { name: queue },
    taskQueueType: QUEUE_TYPES[type],
  })
  return (pollers ?? []).map(({ lastAccessTime }) => Number(lastAccessTime?.seconds ?? 0) * SECOND_MS)
}

/** Differences that slow answers, and the minute between two polls, may explain. */
const TOLERANCE_MS = POLL_FRESH_MS + CLOCK_SLACK_MS

/** The deployment's wall clock: this computer's, corrected once the server or the store shows that it is off. */
export class DeploymentClock {
  /** Zero if the clocks agree; undefined before a comparison. */
  #aheadOfServerMs: number | undefined
  #hasRefused = false

  /** @param storeOffsetMs how far the store's clock is ahead of this computer's; undefined if unknown */
  constructor(
    private readonly own: () => number,
    private readonly storeOffsetMs: () => number | undefined,
  ) {}

  /**
   * How far this computer's clock is ahead of the deployment's; 0 if that is unknown, or less than two minutes. Workers judge by the
   * server's clock; the store's is known more exactly, and without a worker.
   */
  get aheadMs(): number {
    const ofStoreMs = -(this.storeOffsetMs() ?? 0)
    const ofServerMs = this.#aheadOfServerMs
    if (ofServerMs === undefined) return Math.abs(ofStoreMs) > TOLERANCE_MS ? ofStoreMs : 0
    if (ofServerMs === 0) return 0
    return Math.abs(ofStoreMs - ofServerMs) <= TOLERANCE_MS ? ofStoreMs : ofServerMs
  }

  now(): number {
    return this.own() - this.aheadMs
  }

  /** Compares this clock with the server's by the newest poll of a worker, which is a minute old at most. No answer changes nothing. */
  async compareWith(client: Asked, namespace: string): Promise<void> {
    const ask = (type: QueueType): Promise<number[]> =>
      pollTimes(client, { namespace, queue: ORCHESTRATOR_QUEUE, type })
    const times = await withLimit(client, COMPARISON_LIMIT_MS, () =>
      Promise.all([ask('workflow'), ask('activity')]),
    ).catch(() => [])
    const newestMs = Math.max(...times.flat())
    if (!Number.isFinite(newestMs)) return
    const aheadMs = this.own() - newestMs
    this.#aheadOfServerMs = aheadMs >= -CLOCK_SLACK_MS && aheadMs <= TOLERANCE_MS ? 0 : aheadMs
  }

  /** Reports clock skew of this computer; undefined without known skew, or if a refusal has reported it. */
  get remark(): string | undefined {
    if (this.aheadMs === 0 || this.#hasRefused) return undefined
    return `${this.#difference}, which counts for ages and costs here. ${REMEDY}.`
  }

  /** Refuses a request that would be signed with a time that no worker accepts. */
  check(): void {
    if (Math.abs(this.aheadMs) <= STAMP_SLACK_MS - POLL_FRESH_MS) return
    this.#hasRefused = true
    throw new CrucibleError(
      'usage',
      `${this.#difference}. Workers would refuse the request, so nothing was sent.`,
      { hint: `${REMEDY}, then repeat the command.` },
    )
  }

  get #difference(): string {
    const off = formatDuration(Math.round(Math.abs(this.aheadMs) / MINUTE_MS) * MINUTE_MS)
    return `The clock of this computer is about ${off} ${this.aheadMs > 0 ? 'ahead of' : 'behind'} the deployment's`
  }
}

const REMEDY = "Set this computer's clock (on Linux: `timedatectl set-ntp true`)"
