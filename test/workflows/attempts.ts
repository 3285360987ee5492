/** Attempts of tests: begun with scripted activities, and what they show. */
import { afterEach, beforeEach, jest } from '@jest/globals'
import type { Settlement } from '../../core/activities'
import type { MachineHandle } from '../../core/handle'
import type { AttemptInput, AttemptOutcome, AttemptStatus } from '../../core/messages'
import type { Order } from '../../core/job/plan'
import { DEFAULT_TIMING } from '../../core/time/timing'
import type * as Attempt from '../../workflows/job/attempt'
import { activities, activity, attributesModule, begin, reply, workflowModule, world } from './scripted'

jest.mock('@temporalio/workflow', () => workflowModule())
jest.mock('../../workflows/attributes', () => attributesModule())
jest.mock('../../workflows/activities', () => {
  const verbs = { launching: activities(), verbs: activities(), ending: activities() }
  return {
    orchestrator: activities(),
    pressing: activities,
    drainWithin: activities,
    on: () => verbs,
    watching: activities,
    starting: (_: string, withinMs: number) => ({
      start: (input: object) => activity('start')({ ...input, withinMs }),
    }),
  }
})
const { attempt } = jest.requireActual<typeof Attempt>('../../workflows/job/attempt')

export const NOW_MS = Date.UTC(2026, 10, 28, 12)
export const HANDLE = {
  kind: 'machine',
  id: 'i-1',
  launchedAtMs: NOW_MS,
  realised: { capacityType: 'spot', type: 'p5', place: 'eu-west-1a', priceMicroUsdPerHour: 2_000_000 },
} as MachineHandle
const ORDER = {
  jobId: 'job-1',
  attempt: 2,
  backend: 'here',
  capacityType: 'spot',
  runnerStart: 'with-launch',
  priceMaxMicroUsdPerHour: 3_000_000,
  runner: { limits: { budget: null } },
} as Order
export const SAVED = { kind: 'stopped', by: 'cancelled' } as const
export const LOST = {
  kind: 'failed',
  isLaunched: true,
  failure: { class: 'interrupted', message: 'Taken back.' },
} as const

export const settlementOf = (end: Settlement['end']): Settlement =>
  ({ end, costMicroUsd: 1_500_000 }) as unknown as Settlement
export const status = (): AttemptStatus => world.handlers.get('status')!() as AttemptStatus

interface Begun {
  input: AttemptInput
  ended: Promise<AttemptOutcome>
}

export function start(more: Partial<AttemptInput> = {}, order: object = {}): Begun {
  const input = { timing: DEFAULT_TIMING, launchSeq: 3, settleSeq: 4, ...more, order: { ...ORDER, ...order } }
  const ended = attempt(input)
  ended.catch(() => undefined)
  return { input, ended }
}

/** An attempt whose machine was launched. */
export async function launched(order: object = {}): Promise<Begun> {
  const begun = start({}, order)
  await reply('launch', { kind: 'launched', handle: HANDLE })
  return begun
}

/** The watch sees this; what it was asked with. */
export const sees = (seen: object): Promise<object> => reply('watch', seen)

/** Settles it; what the settlement was asked with. */
export const settledAs = (end: Settlement['end']): Promise<object> => reply('settle', settlementOf(end))

export const page = (): string[] => world.page.split('\n').filter((line) => line !== '')

beforeEach(() => {
  jest.spyOn(Date, 'now').mockReturnValue(NOW_MS)
  begin()
})
// Jest reads the clock, too.
afterEach(() => void jest.restoreAllMocks())
