import {
  ApplicationFailure,
  log,
  workflowInfo,
  type WorkflowInboundCallsInterceptor,
  type WorkflowInterceptorsFactory,
  type WorkflowOutboundCallsInterceptor,
} from '@temporalio/workflow'
import { carrying } from '../core/failure'
import {
  deploymentOf,
  refusalOf,
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

/** Facts about a workflow from its input, for the stamps of its activities. */
interface Origin {
  deployment?: string
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
    if (problem !== undefined) return Promise.reject(refuse('the input', problem))
    const deployment = deploymentOf(args[0])
    if (deployment !== undefined) origin.deployment = deployment
    return next({ ...input, args })
  },

  handleSignal(input, next) {
    const { signalName } = input
    const { args, problem } = opened(input.args, (stamp) => signalProblem(stamp, signalName))
    if (problem === undefined) return next({ ...input, args })
    log.warn(`Refused the signal ${signalName}: ${problem}.`)
    return Promise.resolve()
  },

  validateUpdate(input, next) {
    const { args, problem } = openedUpdate(input)
    if (problem !== undefined) throw refuse(`the update ${input.name}`, problem)
    next({ ...input, args })
  },

  // The handler is not async: one more promise tick would change the order of commands in the histories of running jobs.
  handleUpdate(input, next) {
    // An update without a validator arrives here unchecked.
    const { args, problem } = openedUpdate(input)
    if (problem === undefined) return next({ ...input, args })
    return Promise.reject(refuse(`the update ${input.name}`, problem))
  },
})

function openedUpdate(input: { args: unknown[]; name: string; updateId: string }): ReturnType<typeof opened> {
  const { name, updateId } = input
  const runStartedAtMs = workflowInfo().startTime.getTime()
  return opened(input.args, (stamp) => updateProblem(stamp, { name, updateId, runStartedAtMs }))
}

/** A result that no worker of this deployment produced. */
function checkResult<T>(of: string, value: T): T {
  const problem = refusalOf(value)
  if (problem === undefined) return value
  const message = `Refused the result of ${of}: ${problem}.`
  throw ApplicationFailure.create({ ...carrying({ class: 'unclassified', message }), nonRetryable: true })
}

const outboundOf = (origin: Origin): WorkflowOutboundCallsInterceptor => ({
  scheduleActivity(input, next) {
    const { activityType } = input
    const args = stamped(input.args, activityStamp(activityType, origin))
    return next({ ...input, args }).then((value) => checkResult(activityType, value))
  },

  scheduleLocalActivity(input, next) {
    const { activityType } = input
    const args = stamped(input.args, activityStamp(activityType, origin))
    return next({ ...input, args }).then((value) => checkResult(activityType, value))
  },

  async startChildWorkflowExecution(input, next) {
    const { workflowType: name, options } = input
    const stamp: Stamp = { kind: 'child', name, run: workflowInfo().runId }
    const args = stamped(options.args ?? [], stamp)
    const [started, result] = await next({ ...input, options: { ...options, args } })
    // The parent may never ask for the child's result.
    const checked = kept(result.then((value) => checkResult(name, value)))
    return [started, checked]
  },

  signalWorkflow(input, next) {
    return next({ ...input, args: stamped(input.args, { kind: 'signal', name: input.signalName }) })
  },

  continueAsNew(input, next) {
    const { workflowType: name } = input.options
    return next({
      ...input,
      args: stamped(input.args, { kind: 'continue', name, run: workflowInfo().runId }),
    })
  },
})

function activityStamp(name: string, { deployment }: Origin): Stamp {
  const { runId } = workflowInfo()
  return { kind: 'activity', name, run: runId, deployment }
}

/** Loaded by the worker into the sandbox of every workflow. */
export const interceptors: WorkflowInterceptorsFactory = () => {
  const origin: Origin = {}
  return { inbound: [inboundOf(origin)], outbound: [outboundOf(origin)] }
}
