import type { Settlement } from '../../core/activities'
import { byNewest, parseCheckpointId, type Checkpoint } from '../../core/job/checkpoint'
import type { JobResult } from '../../core/messages'
import { attemptIdOf } from '../../core/queues'
import { spend } from '../../core/money/meter'
import { microUsd } from '../../core/money/money'
import { layout, parseManifestName } from '../../storage/layout'
import type { ObjectStore } from '../../storage/store'
import { explained, overlaps, sameWeights, wholeLog } from '../kit/invariants'
import { unlikeReplays } from '../kit/replays'
import { causeOf } from './causes'
import type { JobPlan } from './plan'
import type { JournalLine, Sight } from './sight'
import type { Struck } from './strikes'
import type { Watchman } from './watchman'
import { patient } from '../support/patience'

/** What is known of one job when its run is over. */
export interface JobStory {
  index: number
  plan: JobPlan
  sight: Sight
  journal: JournalLine[]
  result: JobResult | undefined
  attempts: AttemptStory[]
}

interface AttemptStory {
  number: number
  settlement: Settlement
}

export interface RunFacts {
  store: ObjectStore
  isLeaseShort: boolean
  struck: readonly Struck[]
  watchman: Watchman
  /** What an undisturbed run leaves. */
  weights: Buffer
}

/** How old a log line must be at a hard kill to be certainly in the store. */
const LINES_SAFE_AFTER_MS = patient(5_000)

export function storyOf(index: number, plan: JobPlan, sight: Sight): JobStory {
  const settled = sight.records('settled')
  const [finished] = sight.records('finished')
  return {
    index,
    plan,
    sight,
    journal: sight.journal(),
    result: (finished?.data as { result: JobResult } | undefined)?.result,
    attempts: settled.map(({ attempt, data }) => ({
      number: attempt!,
      settlement: data as Settlement,
    })),
  }
}

const RECORDED = ['planned', 'settled', 'decided'] as const

const weightsOf = ({ sight: { jobId }, result }: JobStory) => ({
  jobId,
  state: result?.state,
  artifact: 'weights.bin',
})

/** Every breach of an invariant in one job's story, in words. */
export async function breachesOf(job: JobStory, facts: RunFacts): Promise<string[]> {
  const found = [
    ...endedAsItShould(job),
    ...everyEndHasItsCause(job, facts),
    ...oneLiveWorkload(job),
    ...resumedFromTheNewest(job),
    ...(await resumedFromWhatIsKept(job, facts)),
    ...withinBudget(job, facts),
    ...(await sameWeights(facts.store, weightsOf(job), facts.weights)),
    ...(await wholeLogs(job, facts)),
    ...explained(
      RECORDED.flatMap((kind) => job.sight.records(kind)),
      job.attempts,
    ),
    ...(await unlikeReplays(facts.store, [job.sight.jobId])),
  ]
  return found.map((breach) => `job ${job.index} (${job.sight.jobId}): ${breach}`)
}

/** Succeeded, unless what befell it was more than it may go through, or than it may cost. */
function endedAsItShould({ result, plan, attempts }: JobStory): string[] {
  if (result === undefined) return ['it is not over']
  const count = (failureClass: string): number =>
    attempts.filter(
      ({ settlement: { end } }) =>
        end.kind === 'failed' && end.isLaunched && end.failure.class === failureClass,
    ).length
  const { failures, interruptions } = plan.retries
  const expected =
    count('workload') > failures
      ? 'workload-failed'
      : count('interrupted') > interruptions
        ? 'interrupted'
        : 'completed'
  if (result.reason === expected) return []
  // Too little may be left of it for another machine.
  const outOfMoney = ['budget-reached', 'no-placement']
  if (plan.budget !== undefined && outOfMoney.includes(result.reason) && attempts.length > 0) return []
  return [`it ended as ${result.reason} and should have as ${expected}: ${result.message}`]
}

function everyEndHasItsCause(job: JobStory, { struck, isLeaseShort }: RunFacts): string[] {
  return job.attempts.flatMap(({ number, settlement }) => {
    const { end } = settlement
    if (end.kind === 'succeeded') return []
    const hasBudget = job.plan.budget !== undefined
    if (causeOf(end, { job: job.index, attempt: number, struck, isLeaseShort, hasBudget })) return []
    return [`attempt ${number} ended without a cause: ${JSON.stringify(end)}`]
  })
}

/** The lives of workloads, by what they wrote themselves; in order. */
function livesOf(journal: JournalLine[]): { attempt: number; pid: number; lines: JournalLine[] }[] {
  const lives = new Map<number, { attempt: number; pid: number; lines: JournalLine[] }>()
  for (const line of journal) {
    const life = lives.get(line.pid) ?? { attempt: line.attempt, pid: line.pid, lines: [] }
    lives.set(line.pid, life)
    life.lines.push(line)
  }
  return [...lives.values()].sort((a, b) => a.lines[0]!.monoMs - b.lines[0]!.monoMs)
}

function oneLiveWorkload({ journal }: JobStory): string[] {
  const lives = livesOf(journal)
  const stretches = lives.map(({ attempt, lines }) => ({
    attempt,
    fromMs: lines[0]!.monoMs,
    toMs: lines.at(-1)!.monoMs + 1,
  }))
  const outOfOrder = lives.slice(1).flatMap(({ attempt }, index) => {
    const before = lives[index]!
    return attempt <= before.attempt
      ? [`attempt ${attempt} ran a workload after one of attempt ${before.attempt} had`]
      : []
  })
  return [...overlaps(stretches), ...outOfOrder]
}

/** Each attempt continues from the newest checkpoint that was complete when the previous attempt was settled. */
function resumedFromTheNewest({ journal, attempts }: JobStory): string[] {
  return livesOf(journal).flatMap(({ attempt, lines }) => {
    // Nothing that an attempt has settled with is forgotten by a later one.
    const before = attempts.filter(({ number }) => number < attempt)
    const saved = Math.max(0, ...before.map(({ settlement: { checkpoint } }) => checkpoint?.step ?? 0))
    const from = lines[0]!.step
    return from === saved ? [] : [`attempt ${attempt} began after step ${from}, saved was step ${saved}`]
  })
}

/** The same by what the store has kept, whatever the settlements say: no attempt began before a complete checkpoint of an earlier one. */
async function resumedFromWhatIsKept({ journal, sight }: JobStory, { store }: RunFacts): Promise<string[]> {
  const kept: Checkpoint[] = []
  for await (const { key } of store.list(layout.checkpoints(sight.jobId))) {
    const [id, name] = key.slice(layout.checkpoints(sight.jobId).length).split('/')
    const isComplete = name !== undefined && parseManifestName(name) !== undefined
    const checkpoint = isComplete ? parseCheckpointId(id!) : undefined
    if (checkpoint !== undefined) kept.push(checkpoint)
  }
  return livesOf(journal).flatMap(({ attempt, lines }) => {
    const [newest] = kept.filter((one) => one.attempt < attempt).sort(byNewest)
    const from = lines[0]!.step
    return newest === undefined || newest.step <= from
      ? []
      : [`attempt ${attempt} began after step ${from}, kept is ${newest.id}`]
  })
}

/** By when machines were seen to live, not by what the product says. */
function withinBudget({ sight, plan, attempts }: JobStory, { watchman }: RunFacts): string[] {
  if (plan.budget === undefined) return []
  const spent = attempts.reduce((sum, { number, settlement: { handle } }) => {
    if (handle === null) return sum
    const seenAtMs = watchman.lastSeenAtMs.get(attemptIdOf(sight.jobId, number)) ?? handle.launchedAtMs
    const { launchedAtMs: fromAtMs, realised } = handle
    const { priceMicroUsdPerHour } = realised
    return sum + spend({ fromAtMs, toAtMs: seenAtMs, priceMicroUsdPerHour }, seenAtMs)
  }, 0)
  const budget = microUsd(plan.budget)
  return spent > budget ? [`it cost ${spent} micro-dollars of a budget of ${budget}`] : []
}

/** No line doubled or out of order, and none lost that was old enough when its machine ended. */
async function wholeLogs({ sight, journal, attempts }: JobStory, facts: RunFacts): Promise<string[]> {
  const wrong: string[] = []
  for (const { number, settlement } of attempts) {
    const steps = new Set<number>()
    // Which lines may be lost the journal tells.
    const log = { jobId: sight.jobId, attempt: number, mayHaveGaps: true }
    const broken = await wholeLog(facts.store, log, ({ m, s }) => {
      const step = s === 'out' ? /^step (\d+)\//.exec(m)?.[1] : undefined
      if (step !== undefined) steps.add(Number(step))
    })
    wrong.push(...broken)
    const done = journal.filter(({ attempt, event }) => attempt === number && event === 'step')
    // A runner whose program has succeeded uploads everything before it says so.
    const isWhole = settlement.end.kind === 'succeeded'
    const safeUntilMs = isWhole ? Infinity : (done.at(-1)?.monoMs ?? 0) - LINES_SAFE_AFTER_MS
    const lost = done.filter(
      ({ step, monoMs, wallMs }) =>
        monoMs < safeUntilMs && !steps.has(step) && !wasStoreAwayAt(facts.struck, wallMs),
    )
    if (lost.length > 0)
      wrong.push(`attempt ${number}: ${lost.length} old lines are lost, step ${lost[0]!.step} first`)
  }
  return wrong
}

/** Whether a line that was printed then may have met a full disk, or a machine that ended before the store was back. */
function wasStoreAwayAt(struck: readonly Struck[], wallMs: number): boolean {
  return struck.some(
    ({ fault, hasLanded, atMs, untilMs }) =>
      hasLanded &&
      (fault.startsWith('full-') || fault === 'missing-store') &&
      wallMs >= atMs - LINES_SAFE_AFTER_MS &&
      wallMs <= untilMs + LINES_SAFE_AFTER_MS,
  )
}
