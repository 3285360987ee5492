/** The first attempt of a job and what its activities answer, for tests that play it. */
import type { Settlement } from '../../core/activities'
import { EMPTY_LEDGER, type Decision } from '../../core/job/ledger'
import type { JobInput, ResolvedJob } from '../../core/messages'
import { microUsd } from '../../core/money/money'
import type { Order } from '../../core/job/plan'
import { HOUR_MS } from '../../core/time/time'
import { DEFAULT_TIMING } from '../../core/time/timing'
import { SPEC } from '../support/spec'

export const NOW_MS = Date.UTC(2026, 10, 21, 12)
export const INPUT: JobInput = {
  jobId: 'job-1',
  bundle: null,
  owner: 'ada',
  deployment: 'dep-1',
  submittedAtMs: NOW_MS,
  spec: { ...SPEC, budgetMicroUsd: microUsd(20), deadlineAtMs: NOW_MS + 10 * HOUR_MS },
}
export const RESOLVED: ResolvedJob = {
  spec: INPUT.spec,
  timing: DEFAULT_TIMING,
  runnerSha256: '',
  storeUrl: '',
  policy: { failuresMax: 1, interruptionsMax: 9, unclassifiedMax: 3 },
}
const offerAt = (place: string): object => ({ backend: 'here', capacityType: 'spot', type: 'v100', place })
export const orderOf = (attempt: number): Order =>
  ({
    jobId: 'job-1',
    attempt,
    attemptId: `job-1-${attempt}`,
    backend: 'here',
    capacityType: 'spot',
    offers: [offerAt('a'), offerAt('b')],
    priceMaxMicroUsdPerHour: microUsd(3),
  }) as unknown as Order
const SETTLEMENT: Settlement = {
  end: { kind: 'succeeded' },
  handle: null,
  costMicroUsd: microUsd(5),
  artifacts: [],
  phases: [],
}
export const DONE: Decision = { kind: 'finish', state: 'succeeded', reason: 'completed', message: 'Done.' }
export const RESULT = { id: 'job-1' }

/** What follows attempt by attempt. */
export interface Script {
  decisions: Decision[]
  settlements: Partial<Settlement>[]
}

/** Every step succeeds, with a decision after each attempt. */
export function answersWith(script: Script): Record<string, () => unknown> {
  let attempt = 0
  return {
    resolveJob: () => RESOLVED,
    plan: () => ({
      kind: 'place',
      order: orderOf(++attempt),
      words: { summary: 'here, $3.00/h', reasons: ['cheapest', 'at $3.00/h'] },
    }),
    attempt: () => ({ settlement: { ...SETTLEMENT, ...script.settlements.shift() } }),
    decide: () => ({ decision: script.decisions.shift(), ledger: { ...EMPTY_LEDGER, attempts: attempt } }),
    finishJob: () => RESULT,
  }
}
