import { rulesDigest } from '../activities/plan/rules'
import { CODES } from '../core/errors'
import type { BackendAnswer } from '../core/job/plan'
import type { RecordEntry, RecordEntryOf } from '../core/job/record'
import type { WhatIf } from '../core/job/what-if'
import type { DecisionExplained, JobExplained, WhatIfAnswer } from '../core/job/why'
import { answerWhatIf, explainPlan, explainVerdict, type RecordedQuestion } from '../planner/why/why'
import { ignoreBadDocument } from '../storage/json'
import { readMarket } from '../storage/market'
import { eachOf } from '../storage/parallel'
import { surveyRecords } from '../storage/record'
import { StoreError, type ObjectStore } from '../storage/store'

/** Why something cannot be explained, and what to do instead. */
export interface Unexplained {
  problem: string
  remedy: string
}

type PlanEntry = RecordEntryOf<'planned'> | RecordEntryOf<'waiting'>
type Decision = { number: number; entry: PlanEntry | RecordEntryOf<'decided'> }

/** Number of plans that are searched for switch points, which takes up to seconds each; the newest ones, unless one is requested. */
const SEARCHED_MAX = 10

/**
 * Explains the decisions of a job, or one of them, from its record and the market documents that it names. `undefined` without such a job.
 */
export async function explainJob(
  store: ObjectStore,
  jobId: string,
  { decision }: { decision?: number | undefined } = {},
): Promise<(JobExplained & { unreadable: string[] }) | Unexplained | undefined> {
  const job = await readJob(store, jobId)
  if (job === undefined) return undefined
  const chosen =
    decision === undefined ? job.decisions : job.decisions.filter(({ number }) => number === decision)
  if (chosen.length === 0 && decision !== undefined) return noSuchDecision(decision, job.decisions)
  const plans = chosen.filter(({ entry }) => entry.kind !== 'decided').map(({ number }) => number)
  const searched = new Set(plans.slice(-SEARCHED_MAX))
  const finished = job.entries.findLast(({ kind }) => kind === 'finished')
  return {
    id: jobId,
    name: job.name,
    rules: rulesDigest(),
    decisions: await eachOf(chosen, async (one): Promise<DecisionExplained> => {
      const { number, entry } = one
      return entry.kind === 'decided'
        ? explainVerdict(number, entry)
        : explainPlan({
            ...(await questionOf(store, job, { number, entry })),
            isSearched: searched.has(number),
          })
    }),
    ended: finished?.summary ?? null,
    unreadable: job.unreadable,
  }
}

/** Decides a recorded plan again from changed inputs: that of a decision, or the last one. `undefined` without such a job. */
export async function decideAgain(
  store: ObjectStore,
  jobId: string,
  { decision, changes }: { decision?: number | undefined; changes: readonly WhatIf[] },
): Promise<WhatIfAnswer | Unexplained | undefined> {
  const job = await readJob(store, jobId)
  if (job === undefined) return undefined
  const plans = job.decisions.filter(
    (one): one is { number: number; entry: PlanEntry } => one.entry.kind !== 'decided',
  )
  const chosen = decision === undefined ? plans.at(-1) : plans.find(({ number }) => number === decision)
  if (chosen === undefined) {
    if (decision === undefined)
      return { problem: 'The job has no plan yet.', remedy: 'Wait until it has one.' }
    if (job.decisions.some(({ number }) => number === decision))
      return {
        problem: `Decision ${decision} followed from the end of an attempt; only a plan can be made again with other inputs.`,
        remedy: `Choose one of the plans: ${plans.map(({ number }) => number).join(', ')}.`,
      }
    return noSuchDecision(decision, job.decisions)
  }
  return answerWhatIf(await questionOf(store, job, chosen), changes)
}

interface RecordedJob {
  name: string
  submittedAtMs: number
  entries: RecordEntry[]
  decisions: Decision[]
  unreadable: string[]
}

async function readJob(store: ObjectStore, jobId: string): Promise<RecordedJob | undefined> {
  const { entries, unreadable } = await surveyRecords(store, jobId)
  const submitted = entries.find((entry) => entry.kind === 'submitted')
  if (submitted === undefined && unreadable.length > 0) throw unreadableRecord(jobId, unreadable)
  if (submitted === undefined) return undefined
  const made = entries.filter(
    (entry) => entry.kind === 'planned' || entry.kind === 'waiting' || entry.kind === 'decided',
  )
  const { spec, submittedAtMs } = submitted.data
  const decisions = made.map((entry, index) => ({ number: index + 1, entry }))
  return { name: spec.name, submittedAtMs, entries, decisions, unreadable }
}

function unreadableRecord(jobId: string, names: readonly string[]): StoreError {
  return new StoreError(`The submission of ${jobId} cannot be read (${names.join(', ')}).`, {
    isTransient: true,
    code: CODES.badDocument,
  })
}

/** A plan with its offers; without them if one of its documents is gone or was changed. */
async function questionOf(
  store: ObjectStore,
  { submittedAtMs }: RecordedJob,
  { number, entry }: { number: number; entry: PlanEntry },
): Promise<Omit<RecordedQuestion, 'isSearched'>> {
  const readings = entry.data.facts?.market
  if (readings === undefined) return { number, entry, submittedAtMs }
  const answers = await eachOf(readings, (reading) => readMarket(store, reading).catch(ignoreBadDocument))
  const isWhole = (all: (BackendAnswer | undefined)[]): all is BackendAnswer[] => !all.includes(undefined)
  return { number, entry, submittedAtMs, answers: isWhole(answers) ? answers : undefined }
}

function noSuchDecision(decision: number, decisions: readonly Decision[]): Unexplained {
  const count = decisions.length
  return {
    problem: `The job has no decision ${decision}.`,
    remedy:
      count === 0
        ? 'This job has no decisions yet.'
        : `${count === 1 ? 'Its only decision is 1' : `Choose one from 1 to ${count}`}; \`crucible why\` lists them.`,
  }
}
