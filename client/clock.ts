import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Client } from '@temporalio/client'
import { ORCHESTRATOR_QUEUE } from '../core/queues'
import { STAMP_SLACK_MS } from '../core/received'
import { CLOCK_SLACK_MS, formatDuration, MINUTE_MS, SECOND_MS } from '../core/time/time'
import { withLimit } from './deadline'
import { CrucibleError } from './errors'

/** `temporal.api.enums.v1.TaskQueueType` */
export const QUEUE_TYPES = { workflow: 1, activity: 2 } as const
export type QueueType = keyof typeof QUEUE_TYPES

/** Polls are renewed every minute; an older one belongs to a worker that is gone. */
export const POLL_FRESH_MS = 75 * SECOND_MS

/** The server forgets polls after this time (`matching.PollerHistoryTTL`). */
const POLL_KEPT_MS = 5 * MINUTE_MS

/** A comparison of clocks must not delay a command for longer. */
const COMPARISON_LIMIT_MS = 2 * SECOND_MS

/** Longer than the server requires of a poll, which is over once it is seen. */
const POLL_LIMIT_MS = 30 * SECOND_MS

/** Pause between two looks for our own poll. */
const LOOK_EVERY_MS = 50
/** A queue without tasks and workers. */
const CLOCK_QUEUE = 'crucible-clock'

/** Milliseconds of a protobuf timestamp or duration; 0 if missing. */
export function msOf(time: { seconds?: unknown; nanos?: number | null } | null | undefined): number {
  return Number(time?.seconds ?? 0) * SECOND_MS + Math.floor((time?.nanos ?? 0) / 1e6)
}

type Asked = Pick<Client, 'workflowService' | 'withDeadline'>

interface PolledQueue {
  namespace: string
  queue: string
  type: QueueType
}

/** Returns who has polled a task queue, and when last, by the server's clock. The server forgets a poll after minutes. */
async function pollsOf(
  { workflowService }: Pick<Client, 'workflowService'>,
  { namespace, queue, type }: PolledQueue,
): Promise<{ identity: string; atMs: number }[]> {
  const { pollers } = await workflowService.describeTaskQueue({
    namespace,
    taskQueue: { name: queue },
    taskQueueType: QUEUE_TYPES[type],
  })
  return (pollers ?? []).map(({ identity, lastAccessTime }) => ({
    identity: identity ?? '',
    atMs: msOf(lastAccessTime),
  }))
}

/** Returns when each worker has last polled a task queue, by the server's clock. */
export async function pollTimes(
  client: Pick<Client, 'workflowService'>,
  polled: PolledQueue,
): Promise<number[]> {
  return (await pollsOf(client, polled)).map(({ atMs }) => atMs)
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

  /**
   * Compares this clock with the server's by the newest poll of a worker, which is a minute old at most while a worker lives. An older one
   * is compared exactly. No answer changes nothing.
   */
  async compareWith(client: Asked & Pick<Client, 'withAbortSignal'>, namespace: string): Promise<void> {
    const ask = (type: QueueType): Promise<number[]> =>
      pollTimes(client, { namespace, queue: ORCHESTRATOR_QUEUE, type })
    const times = await withLimit(client, COMPARISON_LIMIT_MS, () =>
      Promise.all([ask('workflow'), ask('activity')]),
    ).catch(() => [])
    const newestMs = Math.max(...times.flat())
    if (!Number.isFinite(newestMs)) return
    const aheadMs = this.#aheadOf(newestMs)
    // The last poll of a worker that is gone explains minutes, and never a clock that is behind.
    if (aheadMs <= 0 || aheadMs > POLL_KEPT_MS + TOLERANCE_MS) this.#aheadOfServerMs = aheadMs
    if (aheadMs !== 0) await this.compareExactly(client, namespace)
  }

  /**
   * Compares this clock with the server's present time, before something is signed with it that the server dates too: the server notes
   * when it was last asked for a task of a queue that nothing fills. No answer changes nothing.
   */
  async compareExactly(client: Asked & Pick<Client, 'withAbortSignal'>, namespace: string): Promise<void> {
    const asked = new AbortController()
    const name = { namespace, taskQueue: { name: CLOCK_QUEUE }, identity: `clock/${randomUUID()}` }
    // The server refuses a poll without a deadline, or with a short one.
    const poll = withLimit(client, POLL_LIMIT_MS, () =>
      client.withAbortSignal(asked.signal, () => client.workflowService.pollActivityTaskQueue(name)),
    )
    let isPolling = true
    void poll.catch(() => undefined).then(() => (isPolling = false))
    const endMs = performance.now() + COMPARISON_LIMIT_MS
    const look = async (): Promise<number | undefined> => {
      const all = await pollsOf(client, { namespace, queue: CLOCK_QUEUE, type: 'activity' })
      return all.find(({ identity }) => identity === name.identity)?.atMs
    }
    let atMs: number | undefined
    while (isPolling && atMs === undefined && performance.now() < endMs) {
      atMs = await withLimit(client, COMPARISON_LIMIT_MS, look).catch(() => undefined)
      if (atMs === undefined) await sleep(LOOK_EVERY_MS)
    }
    asked.abort()
    if (atMs !== undefined) this.#aheadOfServerMs = this.#aheadOf(atMs)
  }

  #aheadOf(serverAtMs: number): number {
    const aheadMs = this.own() - serverAtMs
    return aheadMs >= -CLOCK_SLACK_MS && aheadMs <= TOLERANCE_MS ? 0 : aheadMs
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
