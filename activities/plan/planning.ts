import { stillAvoided } from '../../planner/avoidance'
import { BackendError } from '../../backends/errors'
import type { OrchestratorActivities, PlanInput, PlanOutcome } from '../../core/activities'
import type { JobSpec } from '../../core/job'
import { EMPTY_LEDGER, type Policy } from '../../core/ledger'
import type { JobInput, ResolvedJob } from '../../core/messages'
import type { BackendName } from '../../core/offer'
import type { Plan } from '../../core/plan'
import type { SavedBefore } from '../../core/saving'
import { SECOND_MS } from '../../core/time'
import { rehearsalTiming, type Timing } from '../../core/timing'
import type { Asker } from '../../core/waiting'
import { parseManifest } from '../../intake/documents'
import { checkJobSpec } from '../../intake/job-spec'
import { formatProblem } from '../../intake/problem'
import { summaryOf, whyNone } from '../../planner/explain'
import { makeOrder, remaining } from '../../planner/order'
import { makePlan, outlook } from '../../planner/plan'
import type { PlanRequest } from '../../planner/request'
import { readNewestManifest } from '../../storage/checkpoints'
import { readDeployment } from '../../storage/deployment'
import { provePutIfAbsent } from '../../storage/probe'
import { putRecord } from '../../storage/record'
import type { ObjectStore } from '../../storage/store'
import { askAll, freePlacesIn, keepOffers, letPlacesGo, sha256, type AskOffers } from './asking'
import { allBeating } from '../heartbeat'
import { planInTurn, untilPlaced } from './in-turn'
import { promisedFrom } from '../promising'
import type { Treasury } from '../treasury'
import type { WaitingLine } from './waiting-line'

export interface PlanningDeps {
  store: ObjectStore
  /** The backends of this deployment. */
  backends: readonly BackendName[]
  askOffers: AskOffers
  now: () => number
  timing: Timing
  /** The money of months and owners; missing where there are no such budgets. */
  treasury?: Pick<Treasury, 'promise'> | undefined
  /** Keeps the order of jobs that wait; without it each asks on its own. */
  line?: WaitingLine
  /** Puts the runner program into the store, if it is not there, and answers its digest. */
  publishRunner: () => Promise<string>
}

/** Unclassified failures in a row after which a job stops: three tell a habit from an accident. */
const UNCLASSIFIED_MAX = 3
/** How soon a job that finds no free machine looks again at first. */
const LOOK_AGAIN_FIRST_MS = 2 * SECOND_MS

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
    resolveJob: async (input) => {
      // Once for each process, before anything is built on it.
      await prove()
      return resolveJob(deps, input)
    },
    previewPlan: (input) => previewPlan(deps, input),
    plan: (input) => planOnRecord(deps, input, { isAskedAgain: false }),
    planWhenAvailable: (input, signal) =>
      untilPlaced(deps, input, {
        signal,
        plan: (waitedMs) => planOnRecord(deps, askedAfter(input, waitedMs), { isAskedAgain: true }),
      }),
  })
}

/** The question is asked with the same input for as long as it takes; what it says of time has meanwhile passed. */
function askedAfter(input: PlanInput, waitedMs: number): PlanInput {
  const { avoid, startsInMs = 0 } = input
  return { ...input, avoid: stillAvoided(avoid, waitedMs), startsInMs: Math.max(0, startsInMs - waitedMs) }
}

async function resolveJob(deps: PlanningDeps, input: JobInput): Promise<ResolvedJob> {
  await checkDeployment(deps.store, input)
  const spec = checked(input.spec)
  const runnerSha256 = await deps.publishRunner()
  const preview = (): Promise<Plan> => previewPlan(deps, { spec })
  // Last of what may fail: money is promised to nobody who does not begin.
  const month = await promisedFrom(deps.treasury, input, { spec, preview })
  const resolved: ResolvedJob = {
    spec,
    policy: policyOf(spec),
    timing: input.isRehearsal === true ? rehearsalTiming(deps.timing) : deps.timing,
    runnerSha256,
    storeUrl: deps.store.url,
    ...(month === undefined ? {} : { month }),
  }
  const entry = await putRecord(deps.store, input.jobId, {
    seq: RESOLVED_SEQ,
    atMs: deps.now(),
    kind: 'resolved',
    summary: 'Checked, with policy and timing fixed',
    data: resolved,
  })
  return entry.data as ResolvedJob
}

/** A job that reached the wrong server: its code and its checkpoints are elsewhere. */
async function checkDeployment(store: ObjectStore, { deployment }: JobInput): Promise<void> {
  const stored = await readDeployment(store)
  if (stored === undefined || stored === deployment) return
  throw new BackendError({
    class: 'invalid',
    message: `The job was submitted to deployment ${deployment}, and the workers of this server are of ${stored}.`,
    hint: 'Submit it with TEMPORAL_ADDRESS and CRUCIBLE_STORE of one deployment.',
  })
}

function checked(written: JobSpec): JobSpec {
  const read = checkJobSpec(written)
  if ('spec' in read) return read.spec
  const message = read.problems.map(formatProblem).join(' ')
  throw new BackendError({ class: 'invalid', message: `The job cannot run as it is written: ${message}` })
}

function policyOf({ retries }: JobSpec): Policy {
  return {
    failuresMax: retries.failures,
    interruptionsMax: retries.interruptions,
    unclassifiedMax: UNCLASSIFIED_MAX,
  }
}

/** The client's submission is number 0. */
export const RESOLVED_SEQ = 1

/**
 * The plan, on record; what a repeated question was answered first holds. A job that waits says so once: neither is asking again
 * news, nor that there is nothing where it was asked to move to.
 */
async function planOnRecord(
  deps: PlanningDeps,
  given: PlanInput,
  { isAskedAgain }: { isAskedAgain: boolean },
): Promise<PlanOutcome> {
  // A server of the store may have moved since the job was resolved.
  const input = { ...given, resolved: { ...given.resolved, storeUrl: deps.store.url } }
  const { plan, outcome } = await planInTurn(deps.line, input, {
    isWaiting: isAskedAgain,
    ask: async (asker) => {
      const { plan, request } = await planJob(deps, input, { asker })
      const outcome = outcomeOf(plan, request, input)
      letPlacesGo(deps.askOffers, { asker, outcome, request })
      return { plan, outcome, freePlaces: freePlacesIn(request.answers) }
    },
  })
  const isWaiting = outcome.kind === 'wait'
  if (isWaiting && (isAskedAgain || input.target !== undefined)) return outcome
  const entry = await putRecord(deps.store, input.jobId, {
    seq: input.recordSeq,
    atMs: deps.now(),
    kind: isWaiting ? 'waiting' : 'planned',
    attempt: input.attempt,
    summary: sentenceOf(outcome, input),
    data: {
      inputs: { ...input, resolved: undefined },
      ...(plan === undefined ? {} : { plan }),
      outcome,
    },
  })
  return (entry.data as { outcome: PlanOutcome }).outcome
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

/** The ranking for a job that there is not yet, as its first attempt would find it. */
export async function previewPlan(
  deps: Pick<PlanningDeps, 'store' | 'backends' | 'askOffers' | 'now' | 'timing'>,
  { spec: written, savedBefore }: Parameters<OrchestratorActivities['previewPlan']>[0],
): Promise<Plan> {
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
    },
    bundle: null,
    ledger: EMPTY_LEDGER,
    avoid: [],
    ...(deadlineAtMs === undefined ? {} : { deadlineAtMs }),
    ...(budgetMicroUsd === undefined ? {} : { budgetMicroUsd }),
  }
  return (await planJob(deps, input, { savedBefore })).plan
}

/** The ranking for a job now. */
export async function planJob(
  deps: Pick<PlanningDeps, 'store' | 'backends' | 'askOffers' | 'now'>,
  input: PlanInput,
  { savedBefore: before, asker }: { savedBefore?: SavedBefore | undefined; asker?: Asker | undefined } = {},
): Promise<{ plan: Plan; request: PlanRequest }> {
  const { avoid, startsInMs = 0, resolved } = input
  const { spec, timing } = resolved
  const { answers, silentBackends } = await askAll(deps, input, asker)
  const left = remaining(input)
  const savedBefore =
    before ??
    (input.attempt > 1 ? await readNewestManifest(deps.store, input.jobId, parseManifest) : undefined)
  const request: PlanRequest = {
    spec,
    timing,
    answers,
    silentBackends,
    // As things will be when the order goes out.
    avoid: stillAvoided(avoid, startsInMs),
    startsInMs,
    nowMs: deps.now(),
    isFirst: input.attempt === 1,
    ...(input.target === undefined ? {} : { target: input.target }),
    ...(input.deadlineAtMs === undefined ? {} : { deadlineAtMs: input.deadlineAtMs }),
    ...(left === undefined ? {} : { remainingMicroUsd: left }),
    ...(savedBefore === undefined ? {} : { savedBefore }),
    ...(input.bundle === null ? {} : { bundleBytes: input.bundle.sizeBytes }),
  }
  const digests = await Promise.all(answers.map((answer) => keepOffers(deps.store, answer)))
  return { plan: makePlan(request, sha256(digests.join('\n'))), request }
}

/** Who was asked, where nobody had so much as an offer to reject. */
function whyNoOffer({ spec, target, answers, silentBackends }: PlanRequest): string | undefined {
  if (silentBackends.length > 0 || answers.some(({ offers }) => offers.length > 0)) return undefined
  if (answers.length > 0) return `no offer came from ${answers.map(({ backend }) => backend).join(', ')}`
  const wanted = (target === undefined ? spec.backends : [target]).map(({ backend }) => backend)
  return `this deployment has no backend ${[...new Set(wanted)].join(' or ')}`.trimEnd()
}

function outcomeOf(plan: Plan, request: PlanRequest, input: PlanInput): PlanOutcome {
  const [best] = plan.placements
  if (best !== undefined) {
    const order = makeOrder(plan, input, request.answers)
    return {
      kind: 'place',
      order,
      words: { summary: summaryOf(best), reasons: [...best.reasons, ...best.risks] },
    }
  }
  const message = `No place for this job: ${whyNoOffer(request) ?? whyNone(plan)}.`
  switch (outlook(plan)) {
    case 'wait':
      return {
        kind: 'wait',
        reason: message,
        retryInMs: LOOK_AGAIN_FIRST_MS,
        silentBackends: plan.silentBackends,
      }
    case 'quota':
      return {
        kind: 'never',
        reason: 'quota',
        failure: { class: 'quota', message, hint: 'Have the limit raised, or allow another backend.' },
      }
    case 'never':
      return { kind: 'never', reason: 'no-placement', failure: { class: 'invalid', message } }
  }
}
