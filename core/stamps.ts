/**
 * Stamps: the last argument of every workflow input, signal, update and activity input. A stamp names the purpose of the arguments, so that
 * arguments signed for one purpose cannot be sent again for another. `storage/payload-seal.ts` makes and checks the signature outside the
 * workflow sandbox.
 */
import { REJECT_MODEL_UPDATE, SKIP_RUN_UPDATE } from './retraining/requests'
import { isBeforeRun, STAMP_SLACK_MS, type CarriedMessages, type Received } from './received'

export type Stamp =
  /** A client starts a workflow. */
  | { kind: 'start'; name: string; atMs: number }
  /** A schedule starts a workflow repeatedly. */
  | { kind: 'schedule'; name: string }
  /** A workflow starts a child; `run` is the parent's run. */
  | { kind: 'child'; name: string; run: string; asks?: string }
  /** A workflow continues as new; `run` is the run that ends, with the messages that it and earlier ones have received. */
  | ({ kind: 'continue'; name: string; run: string; asks?: string } & CarriedMessages)
  /** A client or a workflow sends a signal. Signals of Crucible 0.1.0 have neither an id nor a time, and no `to`. */
  | { kind: 'signal'; name: string; id?: string; atMs?: number; to?: string }
  /** `to` is the id of the workflow: the signature leaves out its date, which runs of one schedule have. Missing in those of 0.1.0. */
  | { kind: 'update'; name: string; updateId: string; atMs: number; to?: string }
  /**
   * `run` is that of the workflow that schedules the activity; missing for an activity outside any workflow. `deployment` owns the work;
   * missing if the workflow does not know it. `asks` names the history that gets the result, which repeats it (`answering`).
   */
  | { kind: 'activity'; name: string; run?: string; deployment?: string; asks?: string }

/** An argument that only carries a stamp. The key is long so that no other input has it by chance. */
interface Stamped {
  crucibleStamp: Stamp
}

/** Replaces a payload that this deployment did not sign. */
interface Refused {
  crucibleRefused: string
  /** The deployment that the payload names, unverified. */
  claimedDeployment?: string
}

export function stamped(args: readonly unknown[], stamp: Stamp): unknown[] {
  return [...args, { crucibleStamp: stamp } satisfies Stamped]
}

/** The arguments without their stamp, and the stamp. */
export function unstamped(args: readonly unknown[]): { args: unknown[]; stamp?: Stamp } {
  const last = args.at(-1) as Partial<Stamped> | null | undefined
  const stamp = last?.crucibleStamp
  return stamp === undefined ? { args: [...args] } : { args: args.slice(0, -1), stamp }
}

export function refused(reason: string, claimedDeployment?: string): Refused {
  return claimedDeployment === undefined
    ? { crucibleRefused: reason }
    : { crucibleRefused: reason, claimedDeployment }
}

/** Why a value was refused, or `undefined` when it was signed by this deployment. */
function refusalOf(value: unknown): string | undefined {
  const reason = (value as Partial<Refused> | null | undefined)?.crucibleRefused
  return typeof reason === 'string' ? reason : undefined
}

/** The deployment that refused arguments name, unverified. */
export function claimedDeploymentOf(args: readonly unknown[]): string | undefined {
  const [claimed] = args.flatMap((value) => {
    const { claimedDeployment } = (value ?? {}) as Partial<Refused>
    return refusalOf(value) !== undefined && typeof claimedDeployment === 'string' ? [claimedDeployment] : []
  })
  return claimed
}

/** Why some arguments are refused as a whole. */
export function refusalOfArguments(args: readonly unknown[]): string | undefined {
  return args.map(refusalOf).find((reason) => reason !== undefined)
}

const UNSTAMPED = 'it is not signed'

/** A workflow run's facts about its origin. */
export interface RunOrigin {
  workflowType: string
  startedAtMs: number
  parentRun?: string | undefined
  continuedFrom?: string | undefined
}

/** Why a workflow must not run with an input that has this stamp. */
export function startProblem(stamp: Stamp | undefined, run: RunOrigin): string | undefined {
  if (stamp === undefined) return UNSTAMPED
  if (stamp.name !== run.workflowType) return `it was signed for ${stamp.name}`
  switch (stamp.kind) {
    case 'start':
      return Math.abs(run.startedAtMs - stamp.atMs) <= STAMP_SLACK_MS
        ? undefined
        : `it was signed at ${new Date(stamp.atMs).toISOString()}, more than an hour from the start: it was sent a second time, or the sender's clock is skewed`
    case 'schedule':
      return undefined
    case 'child':
      return stamp.run === run.parentRun ? undefined : 'it was signed for the child of another run'
    case 'continue':
      return stamp.run === run.continuedFrom ? undefined : 'it was signed for another run'
    case 'signal':
    case 'update':
    case 'activity':
      return `it was signed as ${stamp.kind}`
  }
}

/** The run that a message reaches. */
interface ReceivingRun {
  workflowId: string
  runStartedAtMs: number
  received: Pick<Received, 'has' | 'isFromEarlierRun' | 'isForgotten'>
}

export function signalProblem(
  stamp: Stamp | undefined,
  {
    name,
    workflowId,
    runStartedAtMs,
    received,
    mayBeOld,
  }: ReceivingRun & {
    name: string
    /** Whether the history takes a signal that is dated before its run; asked only about such a signal. */
    mayBeOld: (id: string) => boolean
  },
): string | undefined {
  if (stamp === undefined) return UNSTAMPED
  if (stamp.kind !== 'signal' || stamp.name !== name) return `it was signed as ${wordsOf(stamp)}`
  const { id, atMs, to = workflowId } = stamp
  if (to !== workflowId) return FOR_ANOTHER
  if (id === undefined || atMs === undefined) return undefined
  if (received.has(id) || received.isForgotten(atMs, runStartedAtMs)) return SENT_AGAIN
  return isBeforeRun(atMs, runStartedAtMs) && !mayBeOld(id) ? SENT_AGAIN : undefined
}

export function updateProblem(
  stamp: Stamp | undefined,
  update: ReceivingRun & { name: string; updateId: string },
): string | undefined {
  if (stamp === undefined) return UNSTAMPED
  if (stamp.kind !== 'update' || stamp.name !== update.name) return `it was signed as ${wordsOf(stamp)}`
  const { workflowId, updateId, runStartedAtMs, received } = update
  if ((stamp.to ?? workflowId) !== workflowId) return FOR_ANOTHER
  if (stamp.updateId !== updateId || received.isForgotten(stamp.atMs, runStartedAtMs)) return SENT_AGAIN
  // The server answers a repeated id from memory, but only within one run.
  return received.isFromEarlierRun(updateId) ? SENT_AGAIN : undefined
}

/** Temporal appends the time to the id of a workflow that a schedule starts; signatures leave it out, as the schedule signs for all dates. */
export const SCHEDULED_AT = /-\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z$/

/** Updates of a run that neither spend nor promote anything. */
const HARMLESS_UPDATES: readonly string[] = [SKIP_RUN_UPDATE, REJECT_MODEL_UPDATE]

/** Whether a copy of an update could approve something in other runs of a schedule: it names no run, as those of older clients. */
export function countsForOtherRuns(stamp: Stamp | undefined, workflowId: string): boolean {
  if (stamp?.kind !== 'update' || stamp.to !== undefined) return false
  return SCHEDULED_AT.test(workflowId) && !HARMLESS_UPDATES.includes(stamp.name)
}

const FOR_ANOTHER = 'it was signed for another workflow'
const SENT_AGAIN = "it was sent a second time, or the sender's clock is skewed"

export function activityProblem(
  stamp: Stamp | undefined,
  { name, run }: { name: string; run?: string | undefined },
): string | undefined {
  if (stamp === undefined) return UNSTAMPED
  if (stamp.kind !== 'activity' || stamp.name !== name) return `it was signed as ${wordsOf(stamp)}`
  return stamp.run === run ? undefined : 'it was signed for another run of the workflow'
}

/** A part of the result of an activity or a child: the history that asked for it. */
interface Answering {
  crucibleAnswers: string
  /** A result that is no object; empty for `undefined`. */
  crucibleValue?: [] | [unknown]
}

/**
 * A result that names the history that asked for it. Its signature covers the ids of workflow and activity, which later runs use again: without
 * this name, a copy of an older result would count in their place.
 */
export function answering(value: unknown, stamp: Stamp | undefined): unknown {
  const { asks } = (stamp ?? {}) as { asks?: string }
  if (asks === undefined) return value
  if (typeof value === 'object' && value !== null && !Array.isArray(value))
    return { ...value, crucibleAnswers: asks } satisfies Answering
  return { crucibleAnswers: asks, crucibleValue: value === undefined ? [] : [value] } satisfies Answering
}

/** A result without the name of the history that asked for it, and why it must not be used. One of an old version names none. */
export function answered<T>(
  value: T,
  asks: string,
): { value: T; problem: string | undefined; isUnnamed: boolean } {
  const reason = refusalOf(value)
  if (reason !== undefined) return { value, problem: reason, isUnnamed: false }
  const { crucibleAnswers, crucibleValue, ...bare } = (value ?? {}) as Partial<Answering>
  if (crucibleAnswers === undefined) return { value, problem: undefined, isUnnamed: true }
  const problem = crucibleAnswers === asks ? undefined : 'it was signed for another run'
  return { value: (crucibleValue === undefined ? bare : crucibleValue[0]) as T, problem, isUnnamed: false }
}

function wordsOf({ kind, name }: Stamp): string {
  return `${kind} ${name}`
}

/** The deployment that the input of a workflow or an activity names, itself or in its order. */
export function deploymentOf(input: unknown): string | undefined {
  const { deployment, order } = (input ?? {}) as { deployment?: unknown; order?: { deployment?: unknown } }
  const named = deployment ?? order?.deployment
  return typeof named === 'string' ? named : undefined
}
