import type { PlanInput } from '../../core/activities'
import { withoutInstants } from '../../core/market'
import type { JobSpec } from '../../core/job/job'
import { EMPTY_LEDGER } from '../../core/job/ledger'
import type { Offer } from '../../core/offer'
import { excerptOf, type PlanFacts } from '../../core/job/plan'
import type { RecordEntryOf } from '../../core/job/record'
import { DEFAULT_TIMING } from '../../core/time/timing'
import { planFor } from '../../planner/policy/outcome'
import type { RecordedQuestion } from '../../planner/why/why'
import { answer, NOW_MS, SPEC } from './wishes'

export interface RecordedWishes {
  spec?: Partial<JobSpec>
  input?: Partial<PlanInput>
  facts?: Partial<PlanFacts>
}

/** A plan as its worker puts it on record, with the offers that its record names. */
export function recordedPlan(offers: Offer[], { spec, input, facts }: RecordedWishes = {}): RecordedQuestion {
  const inputs: PlanInput = {
    jobId: 'job-a',
    deployment: 'd',
    recordSeq: 2,
    attempt: 1,
    bundle: null,
    avoid: [],
    ledger: EMPTY_LEDGER,
    resolved: {
      spec: { ...SPEC, ...spec },
      timing: DEFAULT_TIMING,
      runnerSha256: '',
      storeUrl: 's3://jobs',
      policy: { failuresMax: 0, interruptionsMax: 9, unclassifiedMax: 3 },
    },
    ...input,
  }
  const answers = [{ ...answer(offers), backend: offers[0]?.backend ?? 'here' }]
  const { answers: asked, ...rest }: PlanFacts = {
    nowMs: NOW_MS,
    answers,
    silentBackends: [],
    inputSizes: [],
    ...facts,
  }
  const { plan, outcome } = planFor(inputs, { ...rest, answers: asked })
  const market = asked.map((one) => ({ backend: one.backend, sha256: 'a'.repeat(64), ...instantsOf(one) }))
  const entry: RecordEntryOf<'planned'> = {
    seq: 2,
    atMs: NOW_MS,
    kind: 'planned',
    attempt: 1,
    summary: 'planned',
    data: { inputs, facts: { ...rest, market }, plan: excerptOf(plan), outcome, rules: 'r' },
  }
  return { number: 1, entry, answers: asked, submittedAtMs: NOW_MS - 60_000, isSearched: true }
}

function instantsOf(one: PlanFacts['answers'][number]): { instantsMs: number[] } {
  return { instantsMs: withoutInstants(one).instantsMs }
}

/** A record of an earlier version, which lacks some keys. */
export const without = <T extends object, Key extends keyof T>(values: T, ...keys: Key[]): Omit<T, Key> =>
  Object.fromEntries(
    Object.entries(values).filter(([name]) => !(keys as PropertyKey[]).includes(name)),
  ) as Omit<T, Key>
