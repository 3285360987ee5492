/** A parent and a child that do in the same order what a job and its attempt do, with nothing behind it. */
import {
  condition,
  patched,
  proxyActivities,
  proxyLocalActivities,
  startChild,
  upsertSearchAttributes,
} from '@temporalio/workflow'
import { defineSearchAttributeKey } from '@temporalio/common'
import { SEARCH_ATTRIBUTES } from '../../core/queues'

/** The arguments of the bare workflows; the queues as a deployment has them. */
export interface BareInput {
  id: string
  verbsQueue: string
  watchQueue: string
}

export interface BareActivities {
  nothing(): Promise<void>
}

const state = defineSearchAttributeKey(SEARCH_ATTRIBUTES.state, 'KEYWORD')
const local = proxyLocalActivities<BareActivities>({ startToCloseTimeout: '30 seconds' })
const remote = (taskQueue?: string): BareActivities =>
  proxyActivities<BareActivities>({
    startToCloseTimeout: '2 minutes',
    heartbeatTimeout: '20 seconds',
    taskQueue,
  })

const show = (value: string): void => upsertSearchAttributes([{ key: state, value }])

export async function bareJob(input: BareInput): Promise<void> {
  patched('as-the-job-asks')
  await remote().nothing()
  await local.nothing()
  show('running')
  const child = await startChild(bareAttempt, { workflowId: `${input.id}/1`, args: [input] })
  await child.result()
  await local.nothing()
  show('succeeded')
  await remote().nothing()
}

export async function bareAttempt({ verbsQueue, watchQueue }: BareInput): Promise<void> {
  let isOver = false
  const waiting = condition(() => isOver)
  await remote(verbsQueue).nothing()
  await remote(watchQueue).nothing()
  show('running')
  patched('as-the-attempt-asks')
  await remote(watchQueue).nothing()
  await remote(verbsQueue).nothing()
  isOver = true
  await waiting
  show('succeeded')
}
