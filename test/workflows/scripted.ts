/** Workflow code without a server: each activity waits for the answer that its test gives, and each timer for its end. */
import { jest } from '@jest/globals'
import { ActivityFailure, ApplicationFailure, CancelledFailure, RetryState } from '@temporalio/common'
import { carrying, type Failure } from '../../core/failure'
import { CancellationScope, untilCancelled } from './scopes'
import { conditionOn, settled, settledWith, type Wait } from './waits'

interface OpenActivity {
  name: string
  input: object
  resolve: (answer: unknown) => void
  reject: (error: unknown) => void
  /** Then its cancellation comes too late. */
  hasBegun: boolean
}

/** What the workflow of a test has done so far; `begin` empties it. */
export const world = {
  waiting: [] as Wait[],
  open: [] as OpenActivity[],
  /** Names of all activities so far, in order. */
  asked: [] as string[],
  handlers: new Map<string, (argument?: unknown) => unknown>(),
  /** What the Temporal UI says of each query and signal. */
  descriptions: [] as (string | undefined)[],
  /** The page in the Temporal UI. */
  page: '',
  attributes: [] as object[],
  parent: undefined as { workflowId: string } | undefined,
}

/** Forgets the workflow of the test before. */
export function begin(): void {
  world.waiting.length =
    world.open.length =
    world.asked.length =
    world.attributes.length =
    world.descriptions.length =
      0
  world.handlers.clear()
  Object.assign(world, { page: '', parent: undefined })
  CancellationScope.root = new CancellationScope()
}

const activityFailure = (cause: Error, state: RetryState = RetryState.TIMEOUT): ActivityFailure =>
  new ActivityFailure('failed', 'activity', '1', state, undefined, cause)

/** An activity that waits for `reply`; cancelled with its scope. */
export function activity(name: string): (input: object) => Promise<unknown> {
  return (input) => {
    world.asked.push(name)
    return new Promise((resolve, reject) => {
      const opened: OpenActivity = { name, input, resolve, reject, hasBegun: false }
      world.open.push(opened)
      untilCancelled().catch((error: Error) => {
        if (!opened.hasBegun) reject(error)
      })
    })
  }
}

/** An object whose every property is an activity of that name. */
export const activities = (): object => new Proxy({}, { get: (_, name: string) => activity(name) })

/** In place of `@temporalio/workflow`. */
export function workflowModule(): object {
  const wait = conditionOn(() => world.waiting)
  const condition: typeof wait = (...args) => Promise.race([wait(...args), untilCancelled()])
  return {
    ...jest.requireActual<object>('@temporalio/common'),
    CancellationScope,
    condition,
    isCancellation: (error: { cause?: unknown }) => error.cause instanceof CancelledFailure,
    sleep: (limitMs: number, options?: { summary: string }) => condition(() => false, limitMs, options),
    defineQuery: String,
    patched: () => true,
    defineSignal: String,
    defineUpdate: String,
    setHandler: (
      name: string,
      handle: (argument?: unknown) => unknown,
      options: { description?: string } = {},
    ) => {
      world.handlers.set(name, handle)
      world.descriptions.push(options.description)
    },
    setCurrentDetails: (page: string) => void (world.page = page),
    workflowInfo: () => ({ parent: world.parent }),
    getExternalWorkflowHandle: (workflowId: string) => ({
      signal: (signal: string, notice: object) => activity('signal')({ workflowId, signal, notice }),
    }),
  }
}

/** How an activity fails that refuses for good. */
export const refusal = (failure: Failure): ActivityFailure =>
  activityFailure(
    ApplicationFailure.create({ ...carrying(failure), nonRetryable: true }),
    RetryState.NON_RETRYABLE_FAILURE,
  )

/** In place of `workflows/attributes`. */
export const attributesModule = (): object => ({
  setAttributes: (attributes: object) => void world.attributes.push(attributes),
})

/** Lets everything happen that waits for no answer and no timer. */
export const settle = (): Promise<void> => settledWith(world.waiting)

/** Names of the activities that wait for an answer. */
export const openNames = (): string[] => world.open.map(({ name }) => name)

/** Answers the oldest open activity of this name; an error fails it. Returns its input. */
export async function reply(name: string, answer?: unknown): Promise<object> {
  await settle()
  const index = world.open.findIndex((each) => each.name === name)
  if (index < 0) throw new Error(`${name} is not waited for, but ${openNames().join(', ') || 'nothing'}`)
  const [{ input, resolve, reject }] = world.open.splice(index, 1) as [OpenActivity]
  if (answer instanceof Error) reject(answer)
  else resolve(answer)
  await settle()
  return input
}

/** Lengths of the timers that run, by what they are for. */
export const timers = (): Record<string, number> =>
  Object.fromEntries(
    world.waiting.flatMap(({ limitMs, summary }) => (limitMs === undefined ? [] : [[summary, limitMs]])),
  )

/** Lets a timer come to its end. */
export async function expire(summary: string): Promise<void> {
  await settle()
  const index = world.waiting.findIndex((wait) => wait.limitMs !== undefined && wait.summary === summary)
  if (index < 0) throw new Error(`no timer runs ${summary}, but ${JSON.stringify(timers())}`)
  const [wait] = world.waiting.splice(index, 1) as [Wait]
  wait.end(wait.isSo())
  await settle()
}

/** Sends a signal. */
export async function signal(name: string, argument?: unknown): Promise<void> {
  await settle()
  world.handlers.get(name)!(argument)
  await settle()
}

/** How a promise has ended by now, or `open`. */
export async function stateOf(promise: Promise<unknown>): Promise<unknown> {
  await settle()
  const open = settled().then(() => 'open')
  return Promise.race([promise.then((value) => ({ value })).catch((error: unknown) => ({ error })), open])
}
