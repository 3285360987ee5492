import {
  ApplicationFailure,
  isCancellation,
  log,
  patched,
  workflowInfo,
  type WorkflowInboundCallsInterceptor,
  type WorkflowInterceptorsFactory,
  type WorkflowOutboundCallsInterceptor,
} from '@temporalio/workflow'
import { carrying, refusalOfFailure } from '../core/failure'
import { Received } from '../core/received'
import {
  answered,
  answering,
  claimedDeploymentOf,
  countsForOtherRuns,
  deploymentOf,
  refusalOfArguments,
  signalProblem,
  stamped,
  startProblem,
  unstamped,
  updateProblem,
  type Stamp,
} from '../core/stamps'
import { kept } from './forever'

/**
 * Whether the worker has the deployment's key, and so refuses unsigned input. `workers/bundle.ts` puts the flag in front of the bundle; it
 * is missing when histories are replayed without a server.
 */
declare const crucibleRequiresSeals: boolean | undefined
/** The worker's deployment; missing or null when it is unknown. */
declare const crucibleDeployment: string | null | undefined

const areSealsRequired = (): boolean =>
  typeof crucibleRequiresSeals !== 'undefined' && crucibleRequiresSeals === true

/** The arguments without their stamp, or why they are refused. */
function opened(
  args: readonly unknown[],
  problemOf: (stamp: Stamp | undefined) => string | undefined,
): { args: unknown[]; problem: string | undefined } {
  const { args: own, stamp } = unstamped(args)
  const problem = areSealsRequired() ? (refusalOfArguments(args) ?? problemOf(stamp)) : undefined
  return { args: own, problem }
}

function refuse(what: string, problem: string): ApplicationFailure {
  const message = `Refused ${what}: ${problem}. Clients and workers of one deployment share one key file (CRUCIBLE_SECRET_KEY_FILE).`
  return ApplicationFailure.create({ ...carrying({ class: 'auth', message }), nonRetryable: true })
}

function ofOlderClient(update: string): ApplicationFailure {
  const message = `Refused the update ${update}: it names no run of its schedule. Upgrade the client that sent it.`
  return ApplicationFailure.create({ ...carrying({ class: 'auth', message }), nonRetryable: true })
}

/**
 * Fails the workflow task, and not the workflow, if the refused input names another deployment: Temporal offers the task again, and a worker
 * of that deployment can take it.
 */
function leaveToOthers(args: readonly unknown[]): void {
  const claimed = claimedDeploymentOf(args)
  const own = typeof crucibleDeployment === 'undefined' ? null : crucibleDeployment
  if (claimed === undefined || own == null || claimed === own) return
  throw new Error(
    `This worker belongs to deployment ${own}, but the workflow to ${claimed}. Stop this worker, or give it a namespace of its own (TEMPORAL_NAMESPACE).`,
  )
}

/** What the interceptors of a workflow know about it. */
interface Origin {
  /** From its input, for the stamps of its activities. */
  deployment?: string
  received: Received
  /** The history of its parent, which the result names. */
  asked?: string | undefined
  /** Number of signals that this run has sent. */
  signalsSent: number
}

const inboundOf = (origin: Origin): WorkflowInboundCallsInterceptor => ({
  execute(input, next) {
    const { workflowType, startTime, parent, continuedFromExecutionRunId } = workflowInfo()
    const { args, problem } = opened(input.args, (stamp) =>
      startProblem(stamp, {
        workflowType,
        startedAtMs: startTime.getTime(),
        parentRun: parent?.runId,
        continuedFrom: continuedFromExecutionRunId,
      }),
    )
    if (problem !== undefined) {
      leaveToOthers(input.args)
      return Promise.reject(refuse('the input', problem))
    }
    const { stamp } = unstamped(input.args)
    if (stamp?.kind === 'continue') origin.received = new Received(stamp)
    const deployment = deploymentOf(args[0])
    if (deployment !== undefined) origin.deployment = deployment
    if (stamp?.kind !== 'child' && stamp?.kind !== 'continue') return next({ ...input, args })
    origin.asked = stamp.asks
    // A run of an older version has no `asks`, and its history no further step here.
    return stamp.asks === undefined
      ? next({ ...input, args })
      : next({ ...input, args }).then((value) => answering(value, stamp))
  },

  handleSignal(input, next) {
    const { signalName } = input
    const { received } = origin
    const { args, problem } = opened(input.args, (stamp) =>
      signalProblem(stamp, { name: signalName, ...receiving(origin), mayBeOld }),
    )
    const { stamp } = unstamped(input.args)
    if (problem === undefined) {
      if (stamp?.kind === 'signal' && stamp.id !== undefined) received.add(stamp.id, stamp.atMs ?? 0)
      return next({ ...input, args })
    }
    log.warn(`Refused the signal ${signalName}: ${problem}.`)
    return Promise.resolve()
  },

  validateUpdate(input, next) {
    const { args, problem } = openedUpdate(origin, input)
    if (problem !== undefined) throw refuse(`the update ${input.name}`, problem)
    // A replay has no validators, so that a history in which an older version took such an update replays.
    if (areSealsRequired() && countsForOtherRuns(unstamped(input.args).stamp, workflowInfo().workflowId))
      throw ofOlderClient(input.name)
    next({ ...input, args })
  },

  // The handler is not async: one more promise tick would change the order of commands in the histories of running jobs.
  handleUpdate(input, next) {
    // An update without a validator arrives here unchecked.
    const { args, problem } = openedUpdate(origin, input)
    if (problem === undefined) {
      const { stamp } = unstamped(input.args)
      const signedAtMs = stamp?.kind === 'update' ? stamp.atMs : 0
      origin.received.add(input.updateId, Math.max(Date.now(), signedAtMs))
      return next({ ...input, args })
    }
    return Promise.reject(refuse(`the update ${input.name}`, problem))
  },
})

function receiving({ received }: Origin): {
  workflowId: string
  runStartedAtMs: number
  received: Received
} {
  const { workflowId, startTime } = workflowInfo()
  return { workflowId, runStartedAtMs: startTime.getTime(), received }
}

/** Whether this history takes a signal that is dated before its run: older versions took only those of the run that started it. */
function mayBeOld(id: string): boolean {
  const { parent, continuedFromExecutionRunId } = workflowInfo()
  const isOfParent = continuedFromExecutionRunId === undefined && id.startsWith(`${parent?.runId}/`)
  return (isOfParent && patched('signals-of-the-parent')) || patched('signals-by-forgotten-ones')
}

function openedUpdate(
  origin: Origin,
  input: { args: unknown[]; name: string; updateId: string },
): ReturnType<typeof opened> {
  const { name, updateId } = input
  return opened(input.args, (stamp) => updateProblem(stamp, { name, updateId, ...receiving(origin) }))
}

/** The history of this run, by ids that a reset and a replay keep. */
function asking(): string {
  const { firstExecutionRunId, continuedFromExecutionRunId = '' } = workflowInfo()
  return `${firstExecutionRunId.slice(-ID_PART)}${continuedFromExecutionRunId.slice(-ID_PART)}`
}

/** Characters of a run's id that are random. */
const ID_PART = 12

/**
 * Refuses a result that no worker of this deployment produced for this run. One that names no run was produced for another one, or by a version
 * that named none, whose histories are replayed.
 */
function checkResult<T>(of: string, result: T): T {
  const { value, problem, isUnnamed } = answered(result, asking())
  if (!areSealsRequired()) return value
  if (problem !== undefined) throw refusedAnswer(`the result of ${of}`, problem)
  if (isUnnamed && patched('results-name-their-run'))
    throw refusedAnswer(`the result of ${of}`, 'it names no run')
  return value
}

/** Refuses the marker of a local activity that no worker of this deployment wrote. Only workers write markers, so it names no run. */
function checkLocalResult<T>(of: string, result: T): T {
  const { value, problem } = answered(result, asking())
  if (problem !== undefined && areSealsRequired()) throw refusedAnswer(`the result of ${of}`, problem)
  return value
}

/**
 * Refuses a failure that no worker of this deployment has signed. A cancellation that was asked for needs no signature: it answers nothing, and
 * the server itself reports that of an activity that no worker has begun.
 */
function failed(of: string, error: unknown): never {
  const problem = areSealsRequired() ? refusalOfFailure(error) : undefined
  if (problem === undefined) throw error
  if (isCancellation(error) && patched('cancellations-are-not-signed')) throw error
  throw refusedAnswer(`the failure of ${of}`, problem)
}

function refusedAnswer(what: string, problem: string): ApplicationFailure {
  const message = `Refused ${what}: ${problem}.`
  return ApplicationFailure.create({ ...carrying({ class: 'unclassified', message }), nonRetryable: true })
}

const outboundOf = (origin: Origin): WorkflowOutboundCallsInterceptor => ({
  scheduleActivity(input, next) {
    const { activityType } = input
    const args = stamped(input.args, { ...activityStamp(activityType, origin), asks: asking() })
    return next({ ...input, args }).then(
      (value) => checkResult(activityType, value),
      (error: unknown) => failed(activityType, error),
    )
  },

  scheduleLocalActivity(input, next) {
    const { activityType } = input
    const args = stamped(input.args, activityStamp(activityType, origin))
    return next({ ...input, args }).then((value) => checkLocalResult(activityType, value))
  },

  async startChildWorkflowExecution(input, next) {
    const { workflowType: name, options } = input
    const stamp: Stamp = { kind: 'child', name, run: workflowInfo().runId, asks: asking() }
    const args = stamped(options.args ?? [], stamp)
    const [started, result] = await next({ ...input, options: { ...options, args } })
    // The parent may never ask for the child's result.
    const checked = kept(
      result.then(
        (value) => checkResult(name, value),
        (error: unknown) => failed(name, error),
      ),
    )
    return [started, checked]
  },

  signalWorkflow(input, next) {
    origin.signalsSent += 1
    const id = `${workflowInfo().runId}/${origin.signalsSent}`
    const { signalName: name, target } = input
    const to = target.type === 'child' ? target.childWorkflowId : target.workflowExecution.workflowId!
    const stamp: Stamp = { kind: 'signal', name, id, atMs: Date.now(), to }
    return next({ ...input, args: stamped(input.args, stamp) })
  },

  continueAsNew(input, next) {
    const { workflowType: name } = input.options
    const { runId: run } = workflowInfo()
    const { asked: asks } = origin
    const carried = origin.received.carry(Date.now())
    return next({ ...input, args: stamped(input.args, { kind: 'continue', name, run, asks, ...carried }) })
  },
})

function activityStamp(name: string, { deployment }: Origin): Extract<Stamp, { kind: 'activity' }> {
  const { runId } = workflowInfo()
  return { kind: 'activity', name, run: runId, deployment }
}

/** Loaded by the worker into the sandbox of every workflow. */
export const interceptors: WorkflowInterceptorsFactory = () => {
  const origin: Origin = { received: new Received(), signalsSent: 0 }
  return { inbound: [inboundOf(origin)], outbound: [outboundOf(origin)] }
}
