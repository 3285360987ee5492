import { describe, expect, it } from '@jest/globals'
import { RESULT_REASONS, type ResultReason, type RunnerResult } from '../../../core/documents'
import type { AttemptEnd } from '../../../core/job/ledger'
import type { Observation } from '../../../core/observation'
import { MINUTE_MS } from '../../../core/time/time'
import { endFromLoss, endFromResult, endOfStart } from '../../../planner/policy/ending'

const result = (reason: ResultReason, outcome: RunnerResult['outcome'] = 'failed'): RunnerResult =>
  ({ version: 1, attemptId: 'job-1-1', outcome, reason, message: 'What happened.' }) as RunnerResult

const stopped = (by: Extract<AttemptEnd, { kind: 'stopped' }>['by']): AttemptEnd => ({ kind: 'stopped', by })
const failed = (failure: object): unknown => ({
  kind: 'failed',
  isLaunched: true,
  failure: { message: 'What happened.', ...failure },
})
const hint = (words: string): unknown => expect.stringContaining(words)

/** What each reason of a runner means; a new reason does not compile until it is here. */
const MEANINGS: Record<ResultReason, unknown> = {
  cancelled: stopped('cancelled'),
  migrated: stopped('migrated'),
  deadline: stopped('deadline'),
  budget: stopped('budget'),
  superseded: stopped('superseded'),
  expired: stopped('expired'),
  lease: stopped('lease'),
  // The provider took the machine back, or gave it too late.
  interrupted: failed({ class: 'interrupted' }),
  late: failed({ class: 'capacity' }),
  // The program's own.
  workload: failed({ class: 'workload', code: 'workload' }),
  setup: failed({ class: 'workload', code: 'setup' }),
  'disk-full': failed({ class: 'workload', code: 'disk-full', hint: hint('resources.disk') }),
  // Only a person can correct it.
  image: failed({ class: 'invalid', code: 'image', hint: hint('under image') }),
  'image-login': failed({ class: 'auth', code: 'image-login', hint: hint('image_login') }),
  bundle: failed({ class: 'invalid', code: 'bundle' }),
  secrets: failed({ class: 'invalid', code: 'secrets' }),
  'no-input': failed({ class: 'invalid', code: 'input', hint: hint('under inputs') }),
  'store-refused': failed({ class: 'auth', code: 'store', hint: hint('Allow the machines') }),
  // Another machine may have a working one.
  engine: failed({ class: 'unreachable', code: 'engine', hint: hint('container engine') }),
  // Another machine would wait in vain, too.
  input: failed({ class: 'transient', code: 'input', hint: hint('the machines can reach it') }),
  registry: failed({
    class: 'transient',
    code: 'registry',
    retryAfterMs: 5 * MINUTE_MS,
    hint: hint('the machines can reach it'),
  }),
  // Unexpected of a program that failed.
  completed: failed({ class: 'unclassified', code: 'completed' }),
  runner: failed({ class: 'unclassified', code: 'runner' }),
}

describe('the result of a runner', () => {
  it.each(RESULT_REASONS)('with the reason %s has one meaning', (reason) => {
    expect(endFromResult(result(reason))).toEqual(MEANINGS[reason])
  })

  it.each(RESULT_REASONS)('that succeeded has succeeded, whatever its reason: %s', (reason) => {
    expect(endFromResult(result(reason, 'succeeded'))).toEqual({ kind: 'succeeded' })
  })
})

describe('a machine that starts no runner', () => {
  it('is unreachable, unless it says that the store refuses it', () => {
    expect(endOfStart('the image has no python3')).toMatchObject({
      failure: { class: 'unreachable', code: 'start-failed' },
    })
    const said = 'no runner: the store refuses this machine: GET s3://b/k: 403 AccessDenied'
    expect(endOfStart(`booting\n${said}\nPower down`)).toMatchObject({
      failure: {
        class: 'auth',
        code: 'store',
        message: 'The store refuses this machine: GET s3://b/k: 403 AccessDenied.',
      },
    })
  })
})

describe('a machine that is gone without a result', () => {
  const refused = { class: 'quota', message: 'No quota.', code: 'MaxSpotInstanceCountExceeded' } as const
  const lost = (observation: Partial<Observation>, hasSpoken = false): unknown =>
    endFromLoss({ state: 'gone', ...observation }, { hasSpoken })

  it.each<[string, Partial<Observation>, object]>([
    ['was taken back', { cause: 'interrupted' }, { class: 'interrupted', message: /was interrupted\.$/ }],
    ['never started', { cause: 'failed-to-start' }, { class: 'capacity', message: /never started\.$/ }],
    [
      'never started for a reason that its provider tells',
      { cause: 'failed-to-start', failure: refused },
      { class: 'quota', code: refused.code, message: /^The machine never started\.$/ },
    ],
    [
      'never started for a reason that its provider does not explain, so that only another machine can do',
      {
        cause: 'failed-to-start',
        failure: { class: 'unclassified', message: 'x', code: 'Client.InternalError' },
      },
      { class: 'unreachable', code: 'Client.InternalError', message: /^The machine never started\.$/ },
    ],
    ['ended', { cause: 'ended' }, { class: 'interrupted', message: /ended without a result\.$/ }],
    [
      'ended for an unknown reason',
      { cause: 'unknown' },
      { class: 'interrupted', message: /without a result/ },
    ],
    ['is no longer known', {}, { class: 'interrupted', message: /without a result/ }],
  ])('%s', (_name, observation, { message, ...failure }: { message?: RegExp }) => {
    expect(lost(observation)).toEqual({
      kind: 'failed',
      isLaunched: true,
      failure: { ...failure, message: expect.stringMatching(message!) },
    })
  })

  it('had started if its runner has spoken, whatever its provider calls the failure', () => {
    const observation = { cause: 'failed-to-start', failure: refused } as const
    expect(lost(observation, true)).toMatchObject({
      failure: { class: 'interrupted', message: 'The machine failed.' },
    })
    expect(lost({ cause: 'interrupted' }, true)).toMatchObject({
      failure: { message: 'The machine was interrupted.' },
    })
  })

  it("is reported with the provider's own words", () => {
    const detail = 'Server.SpotInstanceTermination'
    expect(lost({ cause: 'interrupted', detail })).toMatchObject({
      failure: { message: `The machine was interrupted (${detail}).` },
    })
  })
})
