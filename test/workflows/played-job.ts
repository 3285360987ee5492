/** The workflow of a job, or parts of it, whose activities, attempts, timers and waits a test plays. */
import { jest } from '@jest/globals'
import { Answers } from './answers'
import { CancellationScope, untilCancelled } from './scopes'
import { conditionOn, settledWith, type Wait } from './waits'

interface Handler {
  handle: (argument?: unknown) => unknown
  validate: (argument?: unknown) => void
  description: string | undefined
}

interface HandlerOptions {
  validator?: Handler['validate']
  description?: string
}

class Played extends Answers {
  handlers = new Map<string, Handler>()
  waiting: Wait[] = []
  /** Armed timers that have not fired. */
  timers: { forMs: number; fire: () => void }[] = []
  /** The page in the Temporal UI. */
  details = ''
  info: Record<string, unknown> = { runId: 'run-1' }
  /** What the workflow logs. */
  logged: [message: string, meta: object][] = []

  reset(): void {
    Object.assign(this, new Played())
    CancellationScope.root = new CancellationScope()
  }

  settled(): Promise<void> {
    return settledWith(this.waiting)
  }

  /** Lets a job, or a part of one, come to its end, which must need nothing more. */
  async endOf<T>(life: Promise<T>): Promise<T> {
    return Promise.race([life, this.settled().then(() => Promise.reject(new Error('It has not ended.')))])
  }

  /** As the server does it: what the validator refuses is not handled. */
  async tell(name: string, argument?: unknown): Promise<unknown> {
    const { validate, handle } = this.handlers.get(name)!
    validate(argument)
    return handle(argument)
  }

  /** Ends the pause of a step that is retried. */
  async endPause(): Promise<number | undefined> {
    const at = this.waiting.findIndex(({ limitMs }) => limitMs !== undefined)
    const [pause] = this.waiting.splice(at, 1)
    pause!.end(false)
    await this.settled()
    return pause!.limitMs
  }
}

export const played = new Played()

/** Stands for `@temporalio/workflow`. */
export const playedWorkflow = (): object => ({
  ...jest.requireActual<object>('@temporalio/common'),
  CancellationScope,
  ParentClosePolicy: { REQUEST_CANCEL: 'REQUEST_CANCEL' },
  allHandlersFinished: () => true,
  log: { warn: (message: string, meta: object) => void played.logged.push([message, meta]) },
  condition: conditionOn(() => played.waiting),
  sleep: (forMs: number) => {
    const fired = new Promise<void>((fire) => played.timers.push({ forMs, fire }))
    return Promise.race([fired, untilCancelled()])
  },
  startChild: async (type: string, options: object) => {
    const result = played.ask('attempt', { type, ...options })
    return {
      result: () => result,
      signal: (name: string, request: unknown) => played.ask('signal', { name, request }),
    }
  },
  workflowInfo: () => played.info,
  defineQuery: String,
  defineSignal: String,
  defineUpdate: String,
  setHandler: (
    name: string,
    handle: Handler['handle'],
    { validator = () => undefined, description }: HandlerOptions = {},
  ) => played.handlers.set(name, { handle, validate: validator, description }),
  setCurrentDetails: (details: string) => (played.details = details),
  upsertSearchAttributes: () => undefined,
})

/** Stands for `workflows/activities.ts`. */
export const playedActivities = (): object => {
  const activities = new Proxy({}, { get: (_, name: string) => (input: object) => played.ask(name, input) })
  const withPage = (name: string) => (_page: unknown, input: object) => played.ask(name, input)
  return {
    orchestrator: activities,
    local: activities,
    copying: activities,
    waiting: activities,
    on: () => ({ ending: activities }),
    interrupting: (backend: string) => ({
      interrupt: (input: object) => played.ask('interrupt', { backend, ...input }),
    }),
    plan: withPage('plan'),
    decide: withPage('decide'),
  }
}
