import { setTimeout as sleep } from 'node:timers/promises'
import { WorkflowFailedError } from '@temporalio/client'
import type { JobSpec } from '../../core/job/job'
import type { JobStatus } from '../../core/messages'
import { patient } from '../support/patience'
import { statusOf, type JobHandle } from '../workflows/harness'

const ASKED_AGAIN_MS = 500

/** Something that happens to a running job, some time after its start. */
export interface Happening<D> {
  atMs: number
  name: string
  happen: (at: { deployment: D; job: JobHandle }) => Promise<unknown> | void
}

export interface Lived {
  job: JobHandle
  status: JobStatus
  /** Empty where the job was over in time. */
  stuck: string[]
}

/** Submits a job to a deployment, lets happen what was drawn, and waits for the job's end, which must come within the limit. */
export async function lived<D extends { submit(spec: Partial<JobSpec>): Promise<JobHandle> }>(
  deployment: D,
  { spec, happenings }: { spec: Partial<JobSpec>; happenings: readonly Happening<D>[] },
  limitMs: number,
): Promise<Lived> {
  const job = await deployment.submit(spec)
  const happened = happenings.map(async ({ atMs, happen }) => {
    await sleep(atMs)
    await happen({ deployment, job })
  })
  const isOver = await isOverWithin(job, limitMs)
  await Promise.all(happened)
  const status = await statusOf(job).catch(() => statusOf(job))
  const stuck = `the job was not over after ${patient(limitMs) / 1_000} s: ${status.message}`
  if (!isOver) await job.terminate()
  return { job, status, stuck: isOver ? [] : [stuck] }
}

export function endOf({ state, reason }: JobStatus): string {
  return `${state} (${reason})`
}

/** Whether a job is over, well or not, within a time, which is for an idle machine. A server that is too busy to answer says nothing about the job. */
export async function isOverWithin(job: { result(): Promise<unknown> }, limitMs: number): Promise<boolean> {
  const patience = new AbortController()
  const over = async (): Promise<boolean> => {
    while (!patience.signal.aborted) {
      try {
        await job.result()
        return true
      } catch (error) {
        if (error instanceof WorkflowFailedError) return true
        await sleep(ASKED_AGAIN_MS)
      }
    }
    return false
  }
  const isOver = await Promise.race([over(), sleep(patient(limitMs), false, { signal: patience.signal })])
  patience.abort()
  return isOver
}
