/**
 * What every history shows of the life cycles' structure. Together with the replay of the same histories, which fails when the
 * code would do other steps, this holds the code to it.
 */
import { describe, expect, it } from '@jest/globals'
import type { Drain } from '../../core/documents'
import { microUsd } from '../../core/money/money'
import { unstamped } from '../../core/stamps'
import { historyFiles, isLived, readHistory, scenarioOf } from './histories'
import { pairsIn, type NamedEvent } from './pairs'

interface Payloads {
  payloads?: { data?: string }[]
}
interface Event extends NamedEvent {
  activityTaskScheduledEventAttributes?: { activityType: { name: string }; input?: Payloads }
  activityTaskCompletedEventAttributes?: { scheduledEventId: string; result?: Payloads }
  workflowExecutionStartedEventAttributes?: { input?: Payloads }
  workflowExecutionCompletedEventAttributes?: { result?: Payloads }
  markerRecordedEventAttributes?: { details?: { data?: Payloads } }
  workflowExecutionContinuedAsNewEventAttributes?: { input?: Payloads }
  signalExternalWorkflowExecutionInitiatedEventAttributes?: { signalName: string }
  startChildWorkflowExecutionInitiatedEventAttributes?: { input?: Payloads }
}

/** Those that a scenario has played: its name says what has happened. */
const histories = historyFiles()
  .filter((file) => !isLived(file))
  .map((file) => ({ name: scenarioOf(file), events: readHistory<Event>(file).events }))
const named = (prefix: string): [string, Event[]][] =>
  histories.filter(({ name }) => name.startsWith(prefix)).map(({ name, events }) => [name, events])

const byName = new Map(histories.map(({ name, events }) => [name, events]))

const scheduled = (events: Event[]): string[] =>
  events.flatMap(({ activityTaskScheduledEventAttributes: it }) =>
    it === undefined ? [] : [it.activityType.name],
  )

/** Without the stamp that says what the values are for. */
const valuesOf = (payloads: Payloads | undefined): unknown[] => {
  const values = (payloads?.payloads ?? []).map(({ data }) =>
    data === undefined ? undefined : (JSON.parse(Buffer.from(data, 'base64').toString()) as unknown),
  )
  return unstamped(values).args
}

/** How an attempt ended, in the result of the activity that settled or withdrew it. */
const endIn = (result: unknown): { kind: string } | undefined => {
  const { end, settlement } = (result ?? {}) as {
    end?: { kind: string }
    settlement?: { end: { kind: string } }
  }
  return settlement?.end ?? end
}

/** Local activities as their markers tell them. */
const localOf = (events: Event[]): string[] =>
  events.flatMap(({ markerRecordedEventAttributes: marker }) =>
    valuesOf(marker?.details?.data).map((value) => (value as { activity_type: string }).activity_type),
  )

const signalsOf = (events: Event[]): string[] =>
  events.flatMap(({ signalExternalWorkflowExecutionInitiatedEventAttributes: it }) => it?.signalName ?? [])

const children = (events: Event[]): number =>
  events.filter((event) => event.startChildWorkflowExecutionInitiatedEventAttributes).length

/** What its machine learned about stopping. */
const drainsOf = (events: Event[]): Drain[] =>
  events.flatMap(({ activityTaskScheduledEventAttributes: it }) =>
    ['drain', 'drainMachine'].includes(it?.activityType?.name ?? '')
      ? [(valuesOf(it!.input)[0] as { drain: Drain }).drain]
      : [],
  )

describe('an attempt', () => {
  it.each(named('attempt.'))('keeps to sixty events, with three watches at most: %s', (_name, events) => {
    // A shorter window costs its signal, its document and another timer.
    const shorter = drainsOf(events).length - 1
    expect(events.length).toBeLessThanOrEqual(60 + 15 * Math.max(0, shorter))
    expect(scheduled(events).filter((name) => name === 'watch').length).toBeLessThanOrEqual(3)
  })

  it.each(named('attempt.'))('never continues as new, and ends with the settlement: %s', (name, events) => {
    expect(events.map(({ eventType }) => eventType)).not.toContain(
      'EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW',
    )
    // Of an order that never went out nothing is left to be looked for. A shorter window is put while the settlement is under way.
    const last = {
      'attempt.called-off-in-its-pause': 'withdraw',
      'attempt.called-off-before-its-turn': 'withdraw',
      'attempt.unserved': 'withdraw',
      'attempt.given-up-then-shorter': 'drain',
    }[name]
    expect(scheduled(events).at(-1)).toBe(last ?? 'settle')
    const ends = events
      .flatMap(({ activityTaskCompletedEventAttributes: it }) => valuesOf(it?.result))
      .flatMap((result) => endIn(result) ?? [])
    // Temporal's list shows an attempt that failed as failed.
    const closing = ends.at(-1)?.kind === 'failed' ? 'FAILED' : 'COMPLETED'
    expect(events.at(-1)!.eventType).toBe(`EVENT_TYPE_WORKFLOW_EXECUTION_${closing}`)
  })

  it.each(named('attempt.'))('keeps progress out of its history until it is settled: %s', (_name, events) => {
    const watches = new Set(
      events
        .filter((event) => event.activityTaskScheduledEventAttributes?.activityType.name === 'watch')
        .map(({ eventId }) => eventId),
    )
    const answers = events
      .flatMap(({ activityTaskCompletedEventAttributes: it }) =>
        it !== undefined && watches.has(it.scheduledEventId) ? valuesOf(it.result) : [],
      )
      .map((answer) => Object.keys(answer as object).sort())
    const known = [['kind'], ['end', 'kind'], ['kind', 'leftMs'], ['kind', 'silentMs']]
    expect(answers.filter((keys) => !known.some((one) => one.join() === keys.join()))).toEqual([])
  })
})

describe('a job', () => {
  const several =
    /^job\.(interrupted|lost|capacity-|quota-|workload-retried|unreachable|migrated$|migrated-to|attempt-terminated)/
  it.each([...byName].filter(([name]) => several.test(name)))(
    'takes at most twenty events for each further attempt, whatever ended the one before: %s',
    (_name, events) => {
      const one = byName.get('job.succeeded')!
      expect(children(one)).toBe(1)
      expect(children(events)).toBeGreaterThan(1)
      expect(events.length - one.length).toBeLessThanOrEqual(20 * (children(events) - 1))
    },
  )

  it('leaves the pause before an attempt to the attempt', () => {
    const timers = (name: string): number =>
      byName.get(name)!.filter(({ eventType }) => eventType === 'EVENT_TYPE_TIMER_STARTED').length
    expect(timers('job.workload-retried-then-failed')).toBe(0)
    expect(timers('attempt.paused')).toBe(1)
  })

  it.each(named('job.'))(
    'decides after each attempt, and plans, by local activities only: %s',
    (name, events) => {
      const decisions = localOf(events).filter((type) => type === 'decide')
      expect(decisions.length).toBeGreaterThanOrEqual(children(events))
      // Once a local activity has failed, an ordinary one takes over.
      const again = /job\.(?:plan|decide)\w*-after-trouble/.exec(name) === null ? 0 : 1
      expect(scheduled(events).filter((type) => ['decide', 'plan'].includes(type))).toHaveLength(again)
    },
  )

  it.each(named('job.'))('never cancels an attempt: %s', (_name, events) => {
    expect(events.map(({ eventType }) => eventType)).not.toContain(
      'EVENT_TYPE_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED',
    )
  })

  it('has an attempt notice that its budget is reached, and end a machine that does not obey', () => {
    const [, events] = named('attempt.budget')[0]!
    const types = events.flatMap(
      ({ activityTaskScheduledEventAttributes: it }) => it?.activityType?.name ?? [],
    )
    expect(types.filter((type) => type !== 'watch')).toEqual(['launch', 'drain', 'settle'])
  })

  const STOPS = ['job.cancelled', 'job.migrated', 'job.deadline']
  it.each(STOPS)('asks its attempt to save and stop, whatever asked for that, for one event: %s', (name) => {
    expect(localOf(byName.get(name)!)).toContain('stopAttempt')
    expect(signalsOf(byName.get(name)!)).toEqual([])
  })

  it('settles on its own an attempt that was ended by hand', () => {
    const [, events] = named('job.attempt-terminated-by-hand')[0]!
    expect(scheduled(events)).toContain('settle')
  })

  it.each(named('job.').filter(([name]) => name !== 'job.attempt-terminated-by-hand'))(
    'leaves to its attempt what the attempt has settled: %s',
    (_name, events) => {
      expect(scheduled(events)).not.toContain('settle')
    },
  )
})

describe('a long history', () => {
  const continued = (name: string): boolean =>
    byName.get(name)!.at(-1)!.eventType === 'EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW'

  it('is followed by a fresh one, between two attempts of a job', () => {
    const events = byName.get('job.continued-as-new')!
    expect(continued('job.continued-as-new')).toBe(true)
    expect(localOf(events).at(-1)).toBe('decide')
    expect(valuesOf(events.at(-1)!.workflowExecutionContinuedAsNewEventAttributes?.input)).toMatchObject([
      { jobId: 'job-test', carry: { status: { attemptsTotal: 1 }, ledger: { attempts: 1 } } },
    ])
  })

  it('continues while a job still has to move', () => {
    expect(children(byName.get('job.migrated-with-a-long-history')!)).toBe(2)
    expect(continued('job.migrated-with-a-long-history')).toBe(false)
  })

  it('is followed by a fresh one with all the money of the month', () => {
    const events = byName.get('treasury.continued-as-new')!
    expect(continued('treasury.continued-as-new')).toBe(true)
    expect(valuesOf(events.at(-1)!.workflowExecutionContinuedAsNewEventAttributes?.input)).toMatchObject([
      { promised: { 'job-test': { microUsd: microUsd(500) } }, spent: { ada: expect.any(Number) } },
    ])
  })
})

describe('a launch that no worker takes', () => {
  it('is withdrawn, and settled by its backend only where the order may have been sent', () => {
    expect(scheduled(byName.get('attempt.unserved')!)).toEqual(['launch', 'withdraw'])
    expect(scheduled(byName.get('attempt.unserved-though-sent')!)).toEqual(['launch', 'withdraw', 'settle'])
  })
})

describe('a purchase', () => {
  it.each(named('buyCapacity.'))(
    'is sent by its first step, never again, and only looked for: %s',
    (_name, events) => {
      const [first, ...others] = scheduled(events)
      expect(first).toBe('buyCapacity')
      expect(new Set(others)).toEqual(new Set(others.length === 0 ? [] : ['findPurchase']))
    },
  )
})

describe('a reservation', () => {
  const PURCHASES = {
    'refused-then-bought': 2,
    'undecided-then-decided': 2,
    'payment-failed': 2,
    extended: 2,
    // The part that was split off has a workflow of its own, too.
    split: 2,
  }
  /** The money of a higher limit is promised as well, and that of a part is moved to it. */
  const RAISES = { resized: 1 }
  const SETTLED = { split: 1 }

  it.each(named('reserveCapacity.'))(
    'buys by a workflow of its own, with money promised first: %s',
    (name, events) => {
      const scenario = name.replace('reserveCapacity.', '')
      const purchases = new Map(Object.entries(PURCHASES)).get(scenario) ?? 1
      const raises = new Map(Object.entries(RAISES)).get(scenario) ?? 0
      const settled = new Map(Object.entries(SETTLED)).get(scenario) ?? purchases
      expect(children(events)).toBe(purchases)
      const steps = scheduled(events)
      expect(steps.filter((step) => step === 'promiseBudget')).toHaveLength(purchases + raises)
      expect(steps.filter((step) => step === 'settleBudget')).toHaveLength(settled)
      expect(steps).not.toContain('buyCapacity')
      expect(steps.at(-1)).toBe('endReservation')
    },
  )
})

describe('a garbage collection of two backends', () => {
  it('gives to each its own candidates only', () => {
    const looks = byName
      .get('garbageCollection.two-backends')!
      .flatMap(({ activityTaskScheduledEventAttributes: it }) => valuesOf(it?.input))
      .map((input) => input as { backend: string; candidates: string[] })
    const second = looks.slice(3)
    expect(second.map(({ backend }) => backend)).toEqual(['scripted', 'other', 'store'])
    expect(second.map(({ candidates }) => candidates)).toEqual([['m-1'], ['m-1', 'm-2'], []])
  })
})

describe('an attempt that is asked to stop', () => {
  it.each(named('attempt.').filter(([name]) => /drain|cancelled/.test(name)))(
    'puts one drain.json, whatever the reason, and one document more for each shorter window: %s',
    (name, events) => {
      const drains = drainsOf(events)
      expect(drains).toHaveLength(name === 'attempt.cancelled-then-now' ? 2 : 1)
      expect(drains.map(({ seq = 1 }) => seq)).toEqual(drains.map((_, index) => index + 1))
      const windows = drains.map(({ windowMs }) => windowMs)
      expect(windows).toEqual([...new Set(windows)].sort((a, b) => b - a))
    },
  )
})

describe('whatever goes in and out', () => {
  it.each(named(''))('is one JSON object: %s', (_name, events) => {
    const all = events.flatMap((event) => [
      event.workflowExecutionStartedEventAttributes?.input,
      event.workflowExecutionCompletedEventAttributes?.result,
      event.activityTaskScheduledEventAttributes?.input,
      event.startChildWorkflowExecutionInitiatedEventAttributes?.input,
    ])
    for (const payloads of all.filter((one) => one !== undefined && one !== null)) {
      const values = valuesOf(payloads)
      expect(values).toHaveLength(1)
      expect(typeof values[0]).toBe('object')
    }
  })

  /** Instants that activities are given: the user's own, or those that an activity or a provider has told. */
  const TOLD = ['deadlineAtMs', 'launchedAtMs', 'endedAtMs', 'observedAtMs', 'submittedAtMs', 'startedAtMs']
  /** Of schedules, by the calendar and the server, and of reservations, by their provider. */
  const CALENDAR = ['scheduledAtMs', 'opensAtMs', 'promotedAtMs']
  const RESERVED = ['startsAtMs', 'createdAtMs', 'endsAtMs', 'readAtMs']
  const ALLOWED = [...TOLD, ...CALENDAR, ...RESERVED, 'atMs', 'issuedAtMs', 'usableUntilMs']

  it.each(named(''))("has no instant of the workflow's own clock in it: %s", (_name, events) => {
    const keys = new Set<string>()
    const collect = (value: unknown): void => {
      if (value === null || typeof value !== 'object') return
      for (const [key, inner] of Object.entries(value)) {
        if (/AtMs$|UntilMs$|^atMs$/.test(key)) keys.add(key)
        collect(inner)
      }
    }
    for (const event of events) valuesOf(event.activityTaskScheduledEventAttributes?.input).forEach(collect)
    expect([...keys].filter((key) => !ALLOWED.includes(key))).toEqual([])
  })
})

/** Histories whose pairs of events others have too, by what else they are for. */
const KEPT_FOR = {
  'the guide to failures (test/docs/failures.test.ts)': [
    'attempt.drain-window-over',
    'attempt.launched-and-never-came-up',
    'attempt.reservation-ends-unheeded',
    'attempt.stopped-speaking',
    'job.capacity-then-fallback',
    'job.image-absent',
    'job.image-refused',
    'job.interrupted-then-resumed',
    'job.interrupted-too-often',
    'job.quota-then-fallback',
    'job.registry-away-then-back',
    'job.reservation-ended-then-elsewhere',
    'job.unreachable-then-elsewhere',
    'job.unreachable-twice',
    'job.workload-retried-then-failed',
  ],
  'the structure of life cycles': [
    'attempt.budget',
    'attempt.unserved',
    'job.cancelled',
    'job.migrated',
    'job.migrated-with-a-long-history',
    'job.succeeded',
  ],
  'the tests of replays': ['attempt.drained', 'attempt.succeeded'],
}

describe('a golden history', () => {
  it('brings a pair of events that no other history of its workflow has, or has another purpose', () => {
    const pairs = new Map(
      historyFiles().map((file) => [
        scenarioOf(file),
        pairsIn(file.split('.')[0]!, readHistory<Event>(file).events),
      ]),
    )
    const counts = new Map<string, number>()
    for (const pair of [...pairs.values()].flat()) counts.set(pair, (counts.get(pair) ?? 0) + 1)
    const redundant = [...pairs].filter(([, own]) => own.every((pair) => counts.get(pair)! > 1))
    expect(redundant.map(([name]) => name).sort()).toEqual(Object.values(KEPT_FOR).flat().sort())
  })
})
