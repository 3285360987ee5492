import { stillAvoided } from '../../planner/plan/avoidance'
import { BackendError } from '../../backends/errors'
import { CODES } from '../../core/errors'
import type { OrchestratorActivities, PlanInput, PlanOutcome } from '../../core/activities'
import type { ManifestFile } from '../../core/job/checkpoint'
import { defined } from '../../core/defined'
import type { JobSpec } from '../../core/job/job'
import { EMPTY_LEDGER, type Policy } from '../../core/job/ledger'
import type { JobInput, ResolvedJob } from '../../core/messages'
import type { BackendName } from '../../core/offer'
import {
  excerptOf,
  reportOf,
  type BackendAnswer,
  type Plan,
  type PlanFacts,
  type PlanReport,
  type Prospect,
} from '../../core/job/plan'
import type { PreviewInput } from '../../core/job/preview'
import type { RecordedPlan } from '../../core/job/record'
import { wantsGpu } from '../../core/resources'
import type { SavedBefore } from '../../core/job/saving'
import type { MeasuredMemory } from '../../core/job/own-memory'
import type { OwnRatio } from '../../core/speed'
import { SECOND_MS } from '../../core/time/time'
import { rehearsalTiming, type Timing } from '../../core/time/timing'
import type { Asker } from '../../core/job/waiting'
import { parseManifest } from '../../intake/documents'
import { checkJobSpec } from '../../intake/job-spec'
import { formatProblem } from '../../intake/problem'
import { explainOffer } from '../../planner/plan/explain-offer'
import { planFor } from '../../planner/policy/outcome'
import { measuredMemory } from '../../planner/plan/own-memory'
import { ownRatios } from '../../planner/plan/own-speeds'
import { relaxationsOf } from '../../planner/plan/relaxed'
import { requestFor } from '../../planner/plan/request'
import { readNewestManifest } from '../../storage/checkpoints'
import { readDeployment } from '../../storage/deployment'
import { keepMarket } from '../../storage/market'
import { readOwnMemory } from '../../storage/own-memory'
import { readOwnSpeeds } from '../../storage/own-speeds'
import { provePutIfAbsent } from '../../storage/probe'
import { putRecord, readRecords, RESOLVED_SEQ } from '../../storage/record'
import type { ObjectStore } from '../../storage/store'
import { storePriceOf } from '../../storage/store-price'
import { askAll, askOthers, freePlacesIn, letPlacesGo, type AskOffers } from './asking'
import { allBeating } from '../heartbeat'
import { namedReservation, withHolds } from './holds'
import type { InputSizes } from './input-sizes'
import { planInTurn, untilPlaced } from './in-turn'
import { reserveBudget } from '../money/reserve-budget'
import { rulesDigest } from './rules'
import type { Treasury } from '../money/treasury'
import { leftShareOf } from './work-left'
import type { WaitingLine } from './waiting-line'

export interface PlanningDeps {
  store: ObjectStore
  /** The backends of this deployment. */
  backends: readonly BackendName[]
  askOffers: AskOffers
  now: () => number
  timing: Timing
  /** The budgets of months and owners; missing without such budgets. */
  treasury?: Pick<Treasury, 'promise'> | undefined
  /** Keeps the order of waiting jobs; without it, each asks independently. */
  line?: WaitingLine
  inputSizes?: InputSizes
  /** Uploads the runner program to the store if it is missing, and returns its digest. */
  publishRunner: () => Promise<string>
}

/** Unclassified failures in a row after which a job stops: three distinguish a pattern from an accident. */
const UNCLASSIFIED_MAX = 3

type PlanningActivities = Pick<
  OrchestratorActivities,
  'resolveJob' | 'previewPlan' | 'plan' | 'planWhenAvailable'
>

export function createPlanningActivities(deps: PlanningDeps): PlanningActivities {
  let proof: Promise<void> | undefined
  const prove = (): Promise<void> =>
    (proof ??= provePutIfAbsent(deps.store).catch((error: unknown) => {
      proof = undefined
      throw error
    }))
  return allBeating<PlanningActivities>({
    // Proved once per process, before anything depends on it.
    resolveJob: (input, signal) => prove().then(() => resolveJob(deps, input, signal)),
    previewPlan: (input) => previewWithRelaxations(deps, input),
    plan: (input) => planOnRecord(deps, input, { isAskedAgain: false }),
    planWhenAvailable: (input, signal) =>
      untilPlaced(deps, input, {
        signal,
        plan: (waitedMs) => planOnRecord(deps, askedAfter(input, waitedMs), { isAskedAgain: true }),
      }),
  })
}

/** A question is repeated with the same input, so its times have passed meanwhile and are shifted. */
function askedAfter(input: PlanInput, waitedMs: number): PlanInput {
  const { avoid, startsInMs = 0 } = input
  return { ...input, avoid: stillAvoided(avoid, waitedMs), startsInMs: Math.max(0, startsInMs - waitedMs) }
}

async function resolveJob(deps: PlanningDeps, input: JobInput, signal: AbortSignal): Promise<ResolvedJob> {
  await checkDeployment(deps.store, input)
  await checkNotOver(deps.store, input)
  const spec = checked(input.spec)
  const runnerSha256 = await deps.publishRunner()
  // Last of the steps that may fail: no money is reserved for a job that does not start.
  const month = await reserveBudget(deps.treasury, input, {
    spec,
    signal,
    preview: () => previewPlan(deps, { spec, owner: input.owner }),
  })
  const resolved: ResolvedJob = {
    spec,
    policy: policyOf(spec),
    timing: input.isRehearsal === true ? rehearsalTiming(deps.timing) : deps.timing,
    runnerSha256,
    storeUrl: deps.store.url,
    owner: input.owner,
    month,
  }
  const entry = await putRecord(deps.store, input.jobId, {
    seq: RESOLVED_SEQ,
    atMs: deps.now(),
    kind: 'resolved',
    summary: 'Checked, with policy and timing fixed',
    data: resolved,
  })
  return entry.data
}

/** The job reached the wrong server: its code and its checkpoints are elsewhere. */
async function checkDeployment(store: ObjectStore, { deployment }: JobInput): Promise<void> {
  const stored = await readDeployment(store)
  if (stored === undefined || stored === deployment) return
  throw new BackendError({
    class: 'invalid',
    message: `The job was submitted to deployment ${deployment}, but this server's workers belong to ${stored}.`,
    hint: 'Submit it with TEMPORAL_ADDRESS and CRUCIBLE_STORE of one deployment.',
  })
}

/** A signed input is used up when its job is over: a copy of it, or a reset, starts nothing again. */
async function checkNotOver(store: ObjectStore, { jobId }: JobInput): Promise<void> {
  const later = await readRecords(store, jobId, { afterSeq: RESOLVED_SEQ })
  if (!later.some(({ kind }) => kind === 'finished')) return
  throw new BackendError({ class: 'auth', code: CODES.notAllowed, message: `The job ${jobId} is over.` })
}

function checked(written: JobSpec): JobSpec {
  const read = checkJobSpec(written)
  if ('spec' in read) return read.spec
  const message = read.problems.map(formatProblem).join(' ')
  throw new BackendError({ class: 'invalid', message: `The job is invalid: ${message}` })
}

function policyOf({ retries }: JobSpec): Policy {
  return {
    failuresMax: retries.failures,
    interruptionsMax: retries.interruptions,
    unclassifiedMax: UNCLASSIFIED_MAX,
  }
}

/**
 * Records the plan; for a repeated question, the first answer counts. A waiting job is recorded once, because neither another request nor a
 * missing target of a migration is an event.
 */
async function planOnRecord(
  deps: PlanningDeps,
  given: PlanInput,
  { isAskedAgain }: { isAskedAgain: boolean },
): Promise<PlanOutcome> {
  // The store's server may have moved since the job was resolved.
  const input = { ...given, resolved: { ...given.resolved, storeUrl: deps.store.url } }
  const { asked, outcome } = await planInTurn(deps.line, input, {
    isWaiting: isAskedAgain,
    ask: async (asker) => {
      const planned = await planJob(deps, input, { asker })
      const { outcome, facts } = planned
      const { answers } = facts
      deps.line?.held.saw(answers)
      letPlacesGo(deps.askOffers, { asker, outcome, answers, resources: input.resolved.spec.resources })
      return { ...planned, freePlaces: freePlacesIn(answers) }
    },
  })
  const isWaiting = outcome.kind === 'wait'
  if (isWaiting && (isAskedAgain || input.target !== undefined)) return outcome
  const recorded = asked === undefined ? {} : await recordable(deps, input, asked)
  const entry = await putRecord(deps.store, input.jobId, {
    seq: input.recordSeq,
    atMs: deps.now(),
    kind: isWaiting ? 'waiting' : 'planned',
    attempt: input.attempt,
    summary: sentenceOf(outcome, input),
    data: { inputs: input, ...recorded, outcome },
  })
  return entry.data.outcome
}

/** A plan and its facts for the record; the offers are kept in `market/`, and the record names them. */
async function recordable(
  { store, now }: PlanningDeps,
  { jobId }: PlanInput,
  { plan, facts: { answers, ...facts } }: { plan: Plan; facts: PlanFacts },
): Promise<Pick<RecordedPlan, 'facts' | 'plan' | 'rules'>> {
  const market = await keepMarket(store, answers, { jobId, nowMs: now() })
  return { facts: { ...facts, market }, plan: excerptOf(plan), rules: rulesDigest() }
}

function sentenceOf(outcome: PlanOutcome, { attempt }: PlanInput): string {
  switch (outcome.kind) {
    case 'place':
      return `Attempt ${attempt}: ${outcome.words.summary}`
    case 'wait':
      return `Waiting for a machine. ${outcome.reason}`
    case 'never':
      return outcome.failure.message
  }
}

/** A plan waits no longer for backends that the job does not allow. */
const OTHERS_WITHIN_MS = 2 * SECOND_MS

type PreviewDeps = Pick<PlanningDeps, 'store' | 'backends' | 'askOffers' | 'now' | 'timing' | 'inputSizes'>

/** Ranks offers for `plan`. Backends that the job does not allow are asked too, for the gain of a change. */
export function previewWithRelaxations(deps: PreviewDeps, input: PreviewInput): Promise<PlanReport> {
  return previewPlan(deps, input, (spec) => askOthers(deps, spec, AbortSignal.timeout(OTHERS_WITHIN_MS)))
}

/**
 * Ranks offers for a job before its submission, as its first attempt would find them. `others` asks backends that it does not allow, for
 * the gain of a change.
 */
async function previewPlan(
  deps: PreviewDeps,
  { spec: written, savedBefore, explain, owner }: PreviewInput,
  others: (spec: JobSpec) => Promise<BackendAnswer[]> = () => Promise.resolve([]),
): Promise<PlanReport> {
  const spec = checked(written)
  const { deadlineAtMs, budgetMicroUsd } = spec
  const input: PlanInput = {
    jobId: '',
    deployment: '',
    recordSeq: 0,
    attempt: 1,
    resolved: {
      spec,
      policy: policyOf(spec),
      timing: deps.timing,
      runnerSha256: '',
      storeUrl: deps.store.url,
      owner,
    },
    bundle: null,
    ledger: EMPTY_LEDGER,
    avoid: [],
    deadlineAtMs,
    budgetMicroUsd,
  }
  const [{ plan, outcome, facts }, otherAnswers] = await Promise.all([
    planJob(deps, input, { savedBefore }),
    others(spec),
  ])
  const request = requestFor(input, facts)
  const report = reportOf(plan, prospectOf(outcome), relaxationsOf(plan, request, otherAnswers))
  const absent = spec.backends.map(({ backend }) => backend).filter((name) => !deps.backends.includes(name))
  const more = defined({
    named: facts.named,
    absentBackends: absent.length === 0 ? undefined : [...new Set(absent)],
  })
  if (explain === undefined) return { ...report, ...more }
  return { ...report, ...more, explained: explainOffer(explain, plan, request) ?? null }
}

function prospectOf(outcome: PlanOutcome): Prospect {
  switch (outcome.kind) {
    case 'place':
      return { kind: 'place' }
    case 'wait':
      return { kind: 'wait', reason: outcome.reason }
    case 'never': {
      const { reason, failure } = outcome
      return { kind: 'never', reason, message: failure.message, hint: failure.hint }
    }
  }
}

/** Returns the current plan of a job, its outcome, and the facts that both were made from. */
async function planJob(
  deps: Pick<PlanningDeps, 'store' | 'backends' | 'askOffers' | 'now' | 'inputSizes'>,
  input: PlanInput,
  { savedBefore: before, asker }: { savedBefore?: SavedBefore | undefined; asker?: Asker | undefined },
): Promise<{ plan: Plan; outcome: PlanOutcome; facts: PlanFacts }> {
  const { spec } = input.resolved
  const isFirst = input.attempt === 1
  const newest = isFirst ? undefined : await readNewestManifest(deps.store, input.jobId, parseManifest)
  const savedBefore = before ?? newest
  const [asked, ownRatios, measuredMemory] = await Promise.all([
    askAll(deps, input, { asker, savedBefore }),
    ownRatiosFor(deps.store, spec),
    measuredMemoryFor(deps.store, input),
  ])
  const nowMs = deps.now()
  const answers = await withHolds(deps.store, asked.answers, { jobId: input.jobId, nowMs })
  const facts: PlanFacts = {
    ...asked,
    answers,
    nowMs,
    named: await namedReservation(deps.store, spec.reservation, answers),
    savedBefore: savedBefore && savingFactsOf(savedBefore),
    leftShare: isFirst ? undefined : await leftShareOf(deps.store, input, newest),
    ownRatios,
    measuredMemory,
    storePrice: storePriceOf(deps.store.url),
  }
  return { ...planFor(input, facts), facts }
}

async function measuredMemoryFor(
  store: ObjectStore,
  { resolved: { spec }, bundle }: PlanInput,
): Promise<MeasuredMemory | undefined> {
  if (!wantsGpu(spec.resources) || bundle === null) return undefined
  return measuredMemory(await readOwnMemory(store), { run: spec.run, bundle })
}

async function ownRatiosFor(
  store: ObjectStore,
  { resources, workFamily }: JobSpec,
): Promise<OwnRatio[] | undefined> {
  if (!wantsGpu(resources)) return undefined
  const ratios = ownRatios(await readOwnSpeeds(store), workFamily)
  return ratios.length === 0 ? undefined : ratios
}

/** Returns the facts without the list of files, which may be long. */
function savingFactsOf({
  totalBytes,
  uploadMs,
  saveMs,
  ...before
}: SavedBefore & { files?: ManifestFile[] }): SavedBefore {
  const older = (before.files ?? []).filter(
    ({ isOlder, linkedTo }) => isOlder === true && linkedTo === undefined,
  )
  const olderBytes = before.olderBytes ?? older.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)
  return { totalBytes, uploadMs, saveMs, ...defined({ olderBytes: olderBytes || undefined }) }
}
