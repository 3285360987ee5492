import { failureOf } from '../../backends/errors'
import { secretsNeeded, type JobSpec } from '../../core/job/job'
import { formatUsd } from '../../core/money/money'
import type { RetrainingActivities, RunChecks } from '../../core/retraining/run'
import { layout } from '../../storage/layout'
import { eachOf } from '../../storage/parallel'
import { putRunEntry } from '../../storage/schedules'
import type { RetrainingDeps } from './activities'
import { secretsOf, specOf } from './jobs'

/** Checks whether the source of an input can be read: throws if it cannot, and returns `undefined` if this worker cannot find out. */
export type MeasureSource = (source: string, signal: AbortSignal) => Promise<void> | undefined

type Task = Parameters<RetrainingActivities['checkRun']>[0]

/** Returns what the training lacks, in sentences, early enough to fix it. */
export async function checkRun(deps: RetrainingDeps, task: Task, signal: AbortSignal): Promise<RunChecks> {
  const { store, now } = deps
  const { input, run, recordSeq } = task
  const problems: string[] = []
  let spec: JobSpec | undefined
  try {
    spec = specOf({ ...task, part: 'training', jobId: 'check' }, now())
  } catch (error) {
    problems.push(failureOf(error).message)
  }
  problems.push(...(await codeProblems(deps, task)))
  if (spec !== undefined) {
    problems.push(...(await secretProblems(deps, input.schedule, secretsNeeded(spec))))
    problems.push(...(await inputProblems(deps, spec, signal)))
    problems.push(...(await placeProblems(deps, spec, task)))
  }
  const summary = problems.length === 0 ? 'Nothing is missing' : `${problems.length} problems: ${problems[0]}`
  const entry = { seq: recordSeq, atMs: now(), kind: 'checked' as const, summary, data: { problems } }
  return (await putRunEntry(store, { schedule: input.schedule, run: run.id }, entry)).data
}

async function codeProblems({ store }: RetrainingDeps, { input }: Task): Promise<string[]> {
  const { bundle, schedule } = input
  if (bundle === null || (await store.head(layout.scheduleBundle(schedule, bundle.sha256))) !== undefined)
    return []
  return [
    `The code of ${schedule} is no longer in the object store: store it again with \`crucible schedule update FILE\`.`,
  ]
}

async function secretProblems(
  deps: RetrainingDeps,
  schedule: string,
  names: readonly string[],
): Promise<string[]> {
  if (names.length === 0) return []
  try {
    const values = await secretsOf(deps, schedule)
    const missing = names.filter((name) => values[name] === undefined)
    if (missing.length === 0) return []
    return [
      `The secrets ${missing.join(', ')} are not stored: \`crucible schedule update ${schedule} --secrets\`.`,
    ]
  } catch (error) {
    return [`The secrets cannot be opened: ${failureOf(error).message}`]
  }
}

async function inputProblems(
  { measure }: RetrainingDeps,
  { inputs }: JobSpec,
  signal: AbortSignal,
): Promise<string[]> {
  const found = await eachOf(inputs, async ({ source }) => {
    try {
      await measure(source, signal)
      return undefined
    } catch (error) {
      return `The input ${source} cannot be read now: ${failureOf(error).message}`
    }
  })
  return found.filter((problem) => problem !== undefined)
}

/**
 * Returns problems of the placement (quota, image, permissions, limits) from a plan of now. A reservation that has not begun is not a
 * problem.
 */
async function placeProblems(
  { preview }: RetrainingDeps,
  spec: JobSpec,
  { placement, input }: Task,
): Promise<string[]> {
  const problems: string[] = []
  const { budgetMicroUsd } = input.spec
  try {
    const plan = await preview(spec, input.owner)
    const [best] = plan.placements
    problems.push(
      ...plan.silentBackends.map(({ backend, reason }) => `The backend ${backend} did not answer: ${reason}`),
    )
    if (best !== undefined && budgetMicroUsd !== undefined && best.costMicroUsd > budgetMicroUsd) {
      const [cost, most] = [best.costMicroUsd, budgetMicroUsd].map(formatUsd)
      problems.push(`The training is expected to cost ${cost}, and the budget of the run is ${most}.`)
    }
    if (best !== undefined || placement.kind === 'reserved') return problems
    const reasons = [...new Set(plan.rejections.map(({ reason }) => reason))].slice(0, REASONS_MAX)
    return [
      ...problems,
      `No place could run the training now: ${reasons.join('; ') || 'no backend has an offer'}.`,
    ]
  } catch (error) {
    return [...problems, `No plan could be made: ${failureOf(error).message}`]
  }
}

const REASONS_MAX = 3
