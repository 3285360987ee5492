/** A reservation of tests whose activities, waits and children a test plays. `jest.mock` takes `temporal` and `activities` from here. */
import { afterEach, jest } from '@jest/globals'
import * as common from '@temporalio/common'
import type { ReservationInput, ReservationStatus } from '../../core/reservation/reserving'
import type { HoldState } from '../../core/reservation/activities'
import { DAY_MS } from '../../core/time/time'
import { INTENT, NOW_MS, ownedOf } from '../planner/reserving/facts'
import { Answers } from './answers'
import { conditionOn, endMet, settled, type Wait } from './waits'

export interface Handler {
  handle: (argument?: unknown) => unknown
  validate: (argument?: unknown) => void
}

class World extends Answers {
  handlers = new Map<string, Handler>()
  waiting: Wait[] = []
  /** What each pause is for. */
  pauses: string[] = []
  signals: [workflowId: string, signal: string, notice: unknown][] = []
  continued: ReservationInput[] = []
  isLong = false
  /** Requests that have no answer yet. */
  handling = 0
  details = ''

  /** As the server does it: what the validator refuses is not handled. The answer, in words. */
  async tell(name: string, argument: object = {}): Promise<string> {
    const { validate, handle } = this.handlers.get(name)!
    const update = { by: 'ada', ...argument }
    this.handling += 1
    try {
      validate(update)
      return ((await handle(update)) as { message: string }).message
    } catch (error) {
      return `refused: ${(error as Error).message}`
    } finally {
      this.handling -= 1
    }
  }

  status(): ReservationStatus {
    return this.handlers.get('reservation')!.handle() as ReservationStatus
  }
}

// Jest reads the clock that a test sets, too.
afterEach(() => void jest.restoreAllMocks())

/** Set anew by `begin`. */
export let world = new World()
export function begin(): World {
  return (world = new World())
}

export class Continued extends Error {}

const none = (): void => undefined

/** Of `@temporalio/workflow`. */
export const temporal = {
  ...common,
  CancellationScope: {
    nonCancellable: async (work: () => unknown) => work(),
    current: () => ({ cancelRequested: new Promise(none), consideredCancelled: false }),
  },
  /** Ends with its test, and lets others run even if it has nothing to wait for: a loop of such waits would never end. */
  condition: async (isSo: () => boolean, limitMs?: number, { summary }: { summary?: string } = {}) => {
    const own = world
    if (!isSo()) {
      if (summary !== undefined) own.pauses.push(summary)
      return conditionOn(() => own.waiting)(isSo, limitMs, { summary })
    }
    await settled()
    return world === own || new Promise(none)
  },
  allHandlersFinished: () => world.handling === 0,
  continueAsNew: async (input: ReservationInput) => {
    world.continued.push(input)
    throw new Continued('continues in a fresh history')
  },
  executeChild: (type: string, options: object) => world.ask(type, options),
  startChild: (type: string, options: object) => world.ask(type, options),
  getExternalWorkflowHandle: (id: string) => ({
    signal: async (signal: string, notice: unknown) => {
      world.signals.push([id, signal, notice])
      return world.answers['signal']?.(notice as never)
    },
  }),
  workflowInfo: () => ({ runId: 'run', continueAsNewSuggested: world.isLong }),
  setHandler: (
    name: string,
    handle: Handler['handle'],
    { validator = none }: { validator?: Handler['validate'] } = {},
  ) => world.handlers.set(name, { handle, validate: validator }),
  setCurrentDetails: (text: string) => (world.details = text),
  upsertSearchAttributes: none,
  defineSignal: String,
  defineUpdate: String,
  defineQuery: String,
}

const acts = new Proxy({}, { get: (_, name: string) => (input: object) => world.ask(name, input) })

/** Of `workflows/reservation-activities`. */
export const activities = {
  reservingOn: () => acts,
  looking: () => acts,
  telling: acts,
  reservationDocuments: acts,
}

/** Lets everything happen that waits for nothing, or for what has come about. */
export async function turns(count = 3): Promise<void> {
  for (let turn = 0; turn < count; turn++) {
    await settled()
    endMet(world.waiting)
  }
}

/** Ends the pauses, by what each waits for or by its limit; returns the limits. */
export async function endPauses(): Promise<(number | undefined)[]> {
  await turns()
  const ended = world.waiting.filter(({ limitMs }) => limitMs !== undefined)
  world.waiting = world.waiting.filter((one) => !ended.includes(one))
  for (const { isSo, end } of ended) end(isSo())
  await turns()
  return ended.map(({ limitMs }) => limitMs)
}

/** More than anything here takes: what comes later never comes. */
const PAUSES_MAX = 20

/** What becomes of a reservation that waits for nothing more of its test: its pauses end by their limits. */
export async function over<T>(running: Promise<T>): Promise<T> {
  let isOver = false
  void running.catch(() => undefined).finally(() => (isOver = true))
  for (let pauses = 0; pauses < PAUSES_MAX && !isOver; pauses++) await endPauses()
  if (!isOver) throw new Error('it is not over')
  return running
}

export const INPUT: ReservationInput = {
  reservationId: INTENT,
  owner: 'ada',
  deployment: 'dep',
  submittedAtMs: NOW_MS - DAY_MS,
  rule: {},
  wish: { backend: 'ec2', kind: 'prepaid', types: ['p5'], count: 4, durationMs: DAY_MS },
}
export const HOURLY: ReservationInput = {
  ...INPUT,
  wish: { backend: 'ec2', kind: 'hourly', types: ['p5'], count: 4 },
  rule: { spendMaxMicroUsd: 60 },
}

export const UNPROMISED = { sends: 1, recordSeq: 7, paymentFailures: 0 }

/** The same, when it holds four machines, for which 900 were paid. */
export function holding(
  { wish, ...input }: ReservationInput,
  { held, status }: { held?: Partial<HoldState>; status?: Partial<ReservationStatus> } = {},
): ReservationInput {
  const { reservationId: id, owner, rule, submittedAtMs } = input
  const reservation = ownedOf({ kind: wish.kind, phase: 'active', free: 3 })
  return {
    ...input,
    wish,
    carry: {
      ...UNPROMISED,
      held: {
        state: 'active',
        reservation,
        upfrontMicroUsd: 900,
        idleMicroUsd: 0,
        idleMs: 0,
        misses: 0,
        ...held,
      },
      status: {
        id,
        owner,
        rule,
        submittedAtMs,
        wish,
        reservation,
        state: 'active',
        message: 'It is held.',
        alternatives: [],
        spentMicroUsd: 900,
        idleMicroUsd: 0,
        ...status,
      },
    },
  }
}
