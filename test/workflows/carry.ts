import { EMPTY_LEDGER } from '../../core/job/ledger'
import type { JobCarry, JobStatus, ResolvedJob } from '../../core/messages'
import { readRecords } from '../../storage/record'
import { SPEC, type Deployment } from './harness'

/** What a job takes along that was resolved as another was, after an attempt that it must not repeat at once. */
export async function carryOf({ store }: Deployment, jobId: string): Promise<JobCarry> {
  const entries = await readRecords(store, jobId)
  const resolved = entries.find(({ kind }) => kind === 'resolved')!.data as ResolvedJob
  const pause = { forMs: 1_000, reason: 'interrupted', message: 'Its machine was taken back.' } as const
  const deadlineAtMs = Date.now() + 600_000
  const status: JobStatus = {
    id: 'job-test',
    name: SPEC.name,
    owner: 'somebody',
    submittedAtMs: Date.now(),
    deadlineAtMs,
    state: 'recovering',
    reason: pause.reason,
    message: pause.message,
    spentMicroUsd: 5,
    attempts: [],
    attemptsTotal: 3,
    placementReasons: [],
  }
  return { resolved, status, ledger: EMPTY_LEDGER, avoid: [], pause, recordSeq: 20 }
}
