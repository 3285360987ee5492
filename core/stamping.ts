/**
 * Interceptors for a Temporal client that stamp its messages. They match the SDK's types structurally, because `core/` may not import them.
 */
import { defined } from './defined'
import { stamped, type Stamp } from './stamps'

interface Options {
  args?: readonly unknown[] | unknown[]
}
interface StartOptions extends Options {
  workflowId: string
}
interface Start {
  workflowType: string
  options: StartOptions
}
interface Receiver {
  workflowId?: string | null
}
interface Signal {
  workflowExecution: Receiver
  signalName: string
  args: unknown[]
}
interface Update {
  workflowExecution: Receiver
  updateName: string
  args: unknown[]
  options: { updateId?: string }
}
interface UpdateWithStart {
  workflowType: string
  workflowStartOptions: StartOptions
  updateName: string
  updateArgs: unknown[]
  updateOptions: { updateId?: string }
}
interface SignalWithStart extends Start {
  signalName: string
  signalArgs: unknown[]
}
interface Activity {
  activityType: string
  options: Options
}
interface ScheduleCreation {
  options: { action: { workflowType: string; args?: unknown[] } }
}

type Next<Input, Result> = (input: Input) => Promise<Result>

export interface StampingInterceptors {
  workflow: [
    {
      startWithDetails<I extends Start, R>(input: I, next: Next<I, R>): Promise<R>
      signal<I extends Signal, R>(input: I, next: Next<I, R>): Promise<R>
      signalWithStart<I extends SignalWithStart, R>(input: I, next: Next<I, R>): Promise<R>
      startUpdate<I extends Update, R>(input: I, next: Next<I, R>): Promise<R>
      startUpdateWithStart<I extends UpdateWithStart, R>(input: I, next: Next<I, R>): Promise<R>
    },
  ]
  schedule: [{ create<I extends ScheduleCreation, R>(input: I, next: Next<I, R>): Promise<R> }]
  activity: [{ start<I extends Activity, R>(input: I, next: Next<I, R>): Promise<R> }]
}

/**
 * The `interceptors` of a Temporal client.
 *
 * @param makeId makes the ids of signals, and of updates that have none
 * @param deploymentOf whose work the activities outside any workflow are; `undefined` while that is not known
 */
export function stampingInterceptors(
  now: () => number,
  makeId: () => string,
  deploymentOf: () => Promise<string | undefined> = async () => undefined,
): StampingInterceptors {
  const withStart = <O extends Options>(options: O, name: string): O => ({
    ...options,
    args: stamped(options.args ?? [], { kind: 'start', name, atMs: now() }),
  })
  const updateOf = (name: string, updateId: string, { workflowId }: Receiver): Stamp => ({
    kind: 'update',
    name,
    updateId,
    atMs: now(),
    ...defined({ to: workflowId ?? undefined }),
  })
  const signalOf = (name: string, { workflowId }: Receiver): Stamp => ({
    kind: 'signal',
    name,
    id: makeId(),
    atMs: now(),
    ...defined({ to: workflowId ?? undefined }),
  })
  return {
    workflow: [
      {
        startWithDetails: (input, next) =>
          next({ ...input, options: withStart(input.options, input.workflowType) }),
        signal: (input, next) =>
          next({
            ...input,
            args: stamped(input.args, signalOf(input.signalName, input.workflowExecution)),
          }),
        signalWithStart: (input, next) =>
          next({
            ...input,
            options: withStart(input.options, input.workflowType),
            signalArgs: stamped(input.signalArgs, signalOf(input.signalName, input.options)),
          }),
        startUpdate: (input, next) => {
          const updateId = input.options.updateId ?? makeId()
          const args = stamped(input.args, updateOf(input.updateName, updateId, input.workflowExecution))
          return next({ ...input, args, options: { ...input.options, updateId } })
        },
        startUpdateWithStart: (input, next) => {
          const updateId = input.updateOptions.updateId ?? makeId()
          return next({
            ...input,
            workflowStartOptions: withStart(input.workflowStartOptions, input.workflowType),
            updateArgs: stamped(
              input.updateArgs,
              updateOf(input.updateName, updateId, input.workflowStartOptions),
            ),
            updateOptions: { ...input.updateOptions, updateId },
          })
        },
      },
    ],
    schedule: [
      {
        create: (input, next) => {
          const { action } = input.options
          const args = stamped(action.args ?? [], { kind: 'schedule', name: action.workflowType })
          return next({ ...input, options: { ...input.options, action: { ...action, args } } })
        },
      },
    ],
    activity: [
      {
        start: async (input, next) => {
          const deployment = await deploymentOf()
          const args = stamped(input.options.args ?? [], {
            kind: 'activity',
            name: input.activityType,
            deployment,
          })
          return next({ ...input, options: { ...input.options, args } })
        },
      },
    ],
  }
}
