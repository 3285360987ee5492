import type { Client } from '@temporalio/client'
import type {
  DecideInput,
  FinishInput,
  OrchestratorActivities,
  Settlement,
  WithdrawInput,
} from '../../core/activities'
import { CHECKPOINTS_KEPT_AT_END } from '../../core/job/checkpoint'
import type { Verdict } from '../../core/job/ledger'
import type { JobResult, JobStatus } from '../../core/messages'
import { formatUsd } from '../../core/money/money'
import { decide } from '../../planner/policy/decide'
import { admit } from '../../planner/plan/monthly-budget'
import { ownSpeedsOf } from '../../planner/plan/own-speeds'
import { newestCheckpoint } from '../../storage/checkpoints'
import { ignoreBadDocument } from '../../storage/json'
import { layout } from '../../storage/layout'
import { putJobCosts } from '../../storage/job-costs'
import { putOwnSpeeds } from '../../storage/own-speeds'
import { putEnd, putRecord, readRecords } from '../../storage/record'
import { thinOutCheckpoints } from '../../storage/retention'
import type { ObjectStore } from '../../storage/store'
import { endTurns, leaveLine } from '../../storage/waiting-line'
import { CHECKPOINT_PARSERS } from '../../intake/documents'
import { AttemptDocuments } from '../documents'
import { allBeating } from '../heartbeat'
import type { Treasury } from '../money/treasury'
import { withForgottenAttempts } from './forgotten-attempts'
import { rulesDigest } from './rules'

interface Deps {
  store: ObjectStore
  now: () => number
  client: Client
  /** The budgets of months and owners; missing without such budgets. */
  treasury?: Pick<Treasury, 'promise' | 'settle'> | undefined
}

type DecidingActivities = Pick<
  OrchestratorActivities,
  'decide' | 'withdraw' | 'admitBudget' | 'promiseBudget' | 'finishJob'
>

export function createDecidingActivities(deps: Deps): DecidingActivities {
  return allBeating<DecidingActivities>({
    decide: (input) => decideOnRecord(deps, input),
    withdraw: (input) => withdraw(deps, input),
    admitBudget: async (question) => admit(question),
    // A limit that is no longer set blocks no job.
    promiseBudget: async (input, signal) => deps.treasury?.promise(input, signal),
    finishJob: (input, signal) => finishJob(deps, input, signal),
  })
}

async function decideOnRecord({ store, now }: Deps, input: DecideInput): Promise<Verdict> {
  const verdict = decide(input)
  const { jobId, recordSeq, attempt, ...facts } = input
  const entry = await putRecord(store, jobId, {
    seq: recordSeq,
    atMs: now(),
    kind: 'decided',
    attempt,
    summary:
      verdict.decision.kind === 'again' ? `Continue: ${verdict.decision.message}` : verdict.decision.message,
    data: { facts, verdict, rules: rulesDigest() },
  })
  return entry.data.verdict
}

async function withdraw(
  { store, now }: Deps,
  { order: { jobId, attempt }, end, recordSeq }: WithdrawInput,
): Promise<{ settlement: Settlement | null }> {
  await new AttemptDocuments(store, { jobId, attempt }, now).putDrain({ reason: 'superseded', windowMs: 0 })
  const isBegun = (await store.head(layout.order(jobId, attempt))) !== undefined
  if (isBegun) return { settlement: null }
  const checkpoint = await newestCheckpoint(store, jobId, CHECKPOINT_PARSERS.manifest)
  const settlement: Settlement = {
    end,
    handle: null,
    costMicroUsd: 0,
    artifacts: [],
    phases: [],
    checkpoint,
  }
  const entry = await putEnd(store, jobId, {
    seq: recordSeq,
    atMs: now(),
    kind: 'settled',
    attempt,
    summary: `Attempt ${attempt} ended before anything was bought`,
    data: settlement,
  })
  return { settlement: entry.data }
}

async function finishJob(deps: Deps, input: FinishInput, signal: AbortSignal): Promise<JobResult> {
  const { store, now, treasury } = deps
  const { jobId } = input
  const status = await withForgottenAttempts(deps, input)
  await store.delete(layout.secrets(jobId))
  await leaveLine(store, { jobId }).catch(() => undefined)
  await endTurns(store, jobId).catch(() => undefined)
  const result: JobResult = {
    id: jobId,
    state: status.state,
    reason: status.reason,
    message: status.message,
    attempts: status.attemptsTotal,
    costMicroUsd: status.spentMicroUsd,
    artifacts: input.artifacts,
    checkpoint: status.checkpoint,
    progress: input.progress,
    finishedAtMs: now(),
  }
  const entry = await putEnd(store, jobId, {
    seq: input.recordSeq,
    atMs: now(),
    kind: 'finished',
    summary: `${status.state} (${status.reason}) after ${status.attemptsTotal} ${status.attemptsTotal === 1 ? 'attempt' : 'attempts'}, ${formatUsd(status.spentMicroUsd)}`,
    data: { result, status },
  })
  await putJobCosts(store, { ...entry.data, budgetMonth: input.month })
  if (input.month !== undefined)
    await treasury?.settle(
      input.month,
      { jobId, owner: status.owner, spentMicroUsd: entry.data.status.spentMicroUsd },
      signal,
    )
  await keepOwnSpeeds(store, status, entry.atMs)
  await thinOutCheckpoints(store, jobId, {
    keep: input.checkpointsKept ?? CHECKPOINTS_KEPT_AT_END,
    protectedIds: [],
    isOver: () => true,
    parse: CHECKPOINT_PARSERS,
  })
  return entry.data.result
}

/** Stores speeds from the record of a job that ran on several types of machines. Records of other jobs are not read. */
async function keepOwnSpeeds(
  store: ObjectStore,
  { id, attempts, attemptsTotal }: JobStatus,
  finishedAtMs: number,
): Promise<void> {
  const types = new Set(attempts.map(({ realised }) => realised?.type))
  types.delete(undefined)
  if (types.size < 2 && attempts.length === attemptsTotal) return
  const records = await readRecords(store, id).catch(ignoreBadDocument)
  const speeds = records && ownSpeedsOf(id, records)
  if (speeds !== undefined) await putOwnSpeeds(store, speeds, finishedAtMs)
}
