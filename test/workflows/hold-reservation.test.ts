/** What is held, look by look, with what the world answers: extensions by forecast, returns by rule, and the money of both. */
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { ApplicationFailure } from '@temporalio/common'
import { without } from '../../core/defined'
import type { OwnedReservation } from '../../core/reservation/reservation'
import type { HoldState, HoldOutcome } from '../../core/reservation/activities'
import { DAY_MS, HOUR_MS } from '../../core/time/time'
import type * as Holding from '../../workflows/reservation/hold'
import type { Retries } from '../../workflows/forever'
import type { ReservationRun } from '../../workflows/reservation/run'
import { NOW_MS, ownedOf, quoteOf } from '../planner/reserving/facts'

let asked: [what: string, input: Record<string, unknown>][]
let answers: Record<string, (input: never) => unknown>

const answer = async (name: string, input: object): Promise<unknown> => {
  asked.push([name, input as Record<string, unknown>])
  return answers[name]?.(input as never)
}

jest.mock('@temporalio/workflow', () => ({
  CancellationScope: { current: () => ({ consideredCancelled: false }) },
  defineSignal: String,
}))
jest.mock('../../workflows/reservation/activities', () => {
  const activities = new Proxy({}, { get: (_, name: string) => (input: object) => answer(name, input) })
  return { reservingOn: () => activities, reservationDocuments: activities }
})
jest.mock('../../workflows/reservation/purchasing', () => ({
  send: (_: object, order: object) => answer('send', order),
  lookForUndecided: (_: object, undecided: object) => answer('lookForUndecided', undecided),
  whatToDecide: () => 'Decide.',
}))
const { holdReservation } = jest.requireActual<typeof Holding>('../../workflows/reservation/hold')

const PAID = 900
const EXTENSION = quoteOf({ extends: 'cr-1', endsAtMs: NOW_MS + 4 * DAY_MS, upfrontMicro: 500 })

let run: ReservationRun & { held: HoldState }
let settled: number[]
let reports: string[]
let troubles: (string | undefined)[]
let pauses: number[]
/** Outcomes of looks; then it is over. */
let looks: ((held: HoldState) => Partial<HoldOutcome>)[]

function begin(kind: 'prepaid' | 'hourly', reservation: Partial<OwnedReservation> = {}): void {
  ;[settled, reports, troubles, pauses, looks] = [[], [], [], [], []]
  const wish = { backend: 'ec2', kind, types: ['p5'], count: 4, durationMs: DAY_MS }
  const rule = { extendMaxMicroUsd: 1_000 }
  const status: Record<string, unknown> = { state: 'active', wish, rule, spentMicroUsd: PAID }
  const page = {
    status,
    retries: {} as Retries,
    trouble: (failure?: { message: string }) => void troubles.push(failure?.message),
    move: (state: string, message: string, more: object = {}) =>
      void Object.assign(status, { state, message }, more),
    update: (more: object) => Object.assign(status, more),
    forget: (...names: string[]) => names.forEach((name) => delete status[name]),
  }
  run = {
    page,
    input: { wish, rule, reservationId: 'res-1' },
    requests: { close: () => undefined },
    sends: 1,
    lookedAtMs: undefined,
    earlierMicroUsd: 0,
    paymentFailures: 0,
    isLong: false,
    held: {
      state: 'active',
      reservation: { ...ownedOf({ kind, phase: 'active' }), ...reservation },
      upfrontMicroUsd: PAID,
      idleMicroUsd: 0,
      idleMs: 0,
      misses: 0,
    },
    task: () => ({ recordSeq: 7 }),
    figures: () => ({ spentMicroUsd: run.held.upfrontMicroUsd }),
    passed: async (sends: number) => void (run.sends = sends),
    order: (quote: object) => ({ send: run.sends + 1, quote, intent: 'res-1' }),
    promiseMoney: (_: object, microUsd: number) => answer('promiseMoney', { microUsd }),
    settleMoney: async (microUsd: number) => void settled.push(microUsd),
    report: (event: string, text: string) => void reports.push(`${event}: ${text}`),
    pause: async (forMs: number) => void pauses.push(forMs),
  } as unknown as typeof run
}
const hold = (): Promise<string> => holdReservation(run)
const names = (): string[] => asked.map(([name]) => name)
const inputsOf = (name: string): Record<string, unknown>[] =>
  asked.filter(([each]) => each === name).map(([, input]) => input)
const refusing = (message: string) => (): never => {
  throw ApplicationFailure.create({ message })
}

// Jest reads the clock, too.
afterEach(() => void jest.restoreAllMocks())
beforeEach(() => {
  jest.spyOn(Date, 'now').mockReturnValue(NOW_MS)
  asked = []
  answers = {
    holdReservation: ({ held }: { held: HoldState }) => ({
      held,
      message: 'It ended.',
      next: 'over',
      lookInMs: HOUR_MS,
      ...looks.shift()?.(held),
    }),
    lookForExtension: () => ({ jobs: ['job'] }),
    decideExtension: () => ({
      kind: 'extend',
      durationMs: DAY_MS,
      upfrontMaxMicroUsd: 600,
      message: 'The job needs a day more.',
    }),
    lookForCapacity: () => ({
      kind: 'buy',
      sends: 1,
      judged: { quote: EXTENSION },
      account: 'a',
      alternatives: [],
    }),
    send: () => ({ kind: 'reserved', reservation: ownedOf() }),
  }
})

describe('a hold whose end is near', () => {
  const isNear = (): Partial<HoldOutcome> => ({ message: 'Held.', next: 'hold', isEndNear: true })
  beforeEach(() => {
    begin('prepaid')
    looks = [isNear]
  })

  it('is extended for the jobs that need it, with money that is promised first', async () => {
    expect(await hold()).toBe('over')
    expect(names().slice(1, 6)).toEqual([
      'lookForExtension',
      'decideExtension',
      'lookForCapacity',
      'promiseMoney',
      'send',
    ])
    expect(inputsOf('decideExtension')[0]).toMatchObject({
      rule: { extendMaxMicroUsd: 1_000 },
      extendedMicroUsd: 0,
      look: { jobs: ['job'] },
    })
    expect(inputsOf('lookForCapacity')[0]).toEqual({
      recordSeq: 7,
      isFirst: true,
      sends: 1,
      wish: {
        backend: 'ec2',
        kind: 'prepaid',
        types: ['p5'],
        count: 4,
        durationMs: DAY_MS,
        extends: { id: 'cr-1', region: 'east' },
      },
      rule: { upfrontMaxMicroUsd: 600, unaskedMaxMicroUsd: 600 },
    })
    expect(inputsOf('promiseMoney')).toEqual([{ microUsd: 500 }])
    expect(run.held).toMatchObject({
      upfrontMicroUsd: PAID + 500,
      extendedMicroUsd: 500,
      extendedToMs: EXTENSION.endsAtMs,
    })
    expect(run.sends).toBe(2)
    // What was held, the extension, and all at the end.
    expect(settled).toEqual([PAID, 500, PAID + 500])
    expect(reports).toEqual([expect.stringMatching(/^extended: The job needs a day more\. cr-1 is extended/)])
    expect(pauses).toEqual([HOUR_MS])
  })

  it('settles an extension that is not paid yet with its payment, and buys no second one until then', async () => {
    const extension = { phase: 'unpaid', endsAtMs: EXTENSION.endsAtMs!, boughtAtMs: NOW_MS } as const
    answers['send'] = () => ({ kind: 'reserved', reservation: ownedOf({ extension }) })
    const paid = (held: HoldState): Partial<HoldOutcome> => ({
      held: without(held, ['extending']),
      message: 'Held.',
      next: 'hold',
    })
    looks = [isNear, isNear, paid]
    await hold()
    expect(inputsOf('send')).toHaveLength(1)
    expect(troubles).toContain('The last extension of cr-1 is not paid yet: ask again then.')
    expect(settled).toEqual([PAID, 500, PAID + 500])
  })

  it('gives back the money of an extension whose payment failed', async () => {
    const extension = { phase: 'unpaid', endsAtMs: EXTENSION.endsAtMs! } as const
    answers['send'] = () => ({ kind: 'reserved', reservation: ownedOf({ extension }) })
    const failed = (held: HoldState): Partial<HoldOutcome> => ({
      held: { ...without(held, ['extending']), upfrontMicroUsd: PAID },
      message: 'Held.',
      next: 'hold',
    })
    looks = [isNear, failed]
    await hold()
    expect(settled).toEqual([PAID, 0, PAID])
  })

  it.each<[string, Record<string, () => unknown>, string]>([
    ['no job needs it', { lookForExtension: () => ({ jobs: [] }) }, 'lookForExtension'],
    [
      'moving the jobs is cheaper',
      { decideExtension: () => ({ kind: 'leave', message: 'Moving is cheaper.' }) },
      'decideExtension',
    ],
  ])('is left as it is if %s', async (_, more, last) => {
    answers = { ...answers, ...more }
    await hold()
    expect(names().slice(1, -1).at(-1)).toBe(last)
    expect([reports, troubles.filter(Boolean), settled]).toEqual([[], [], [PAID, PAID]])
  })

  it.each<[string, Record<string, () => unknown>, string]>([
    ['no worker looks', { lookForExtension: refusing('No worker.') }, 'No worker.'],
    ['no budget allows it', { promiseMoney: () => 'No money is left.' }, 'No money is left.'],
    ['it is refused', { send: () => ({ kind: 'refused', failure: { message: 'Sold out.' } }) }, 'Sold out.'],
    [
      'none is for sale',
      { lookForCapacity: () => ({ kind: 'give-up', sends: 1, alternatives: [], message: 'So.' }) },
      'cr-1 was not extended: none is for sale.',
    ],
    [
      'it is too dear',
      {
        lookForCapacity: () => ({
          kind: 'give-up',
          sends: 1,
          message: 'So.',
          alternatives: [{ quote: EXTENSION, refusal: 'it costs more' }],
        }),
      },
      'cr-1 was not extended: it costs more.',
    ],
  ])('shows why it was not extended if %s', async (_, more, message) => {
    answers = { ...answers, ...more }
    await hold()
    expect(troubles).toContain(message)
    expect(run.held.upfrontMicroUsd).toBe(PAID)
    expect([reports, settled.at(-1)]).toEqual([[], PAID])
  })

  it('waits for a person if it is unknown whether the extension was bought', async () => {
    answers['send'] = () => ({ kind: 'undecided', sentAtMs: 1, account: [], candidates: [] })
    looks = [isNear, isNear]
    await hold()
    expect(inputsOf('send')).toHaveLength(1)
    expect(reports).toEqual(['undecided: Decide.'])
    // Asked again at the end, and counted as spent in the month.
    expect(inputsOf('lookForUndecided')).toHaveLength(1)
    expect(settled).toEqual([PAID, 500, PAID])
    expect(run.page.status.message).toMatch(
      /^It ended\. Whether its extension .* is unknown: check the bill\.$/,
    )
  })
})

describe('a hold that its rule ends', () => {
  const idle = (): Partial<HoldOutcome> => ({ message: 'Idle for an hour.', next: 'release' })
  beforeEach(() => {
    begin('hourly')
    looks = [idle]
  })

  it('gives it back without a charge, and says so', async () => {
    await hold()
    expect(inputsOf('releaseReservation')).toEqual([
      {
        recordSeq: 7,
        ref: { id: 'cr-1', region: 'east' },
        reason: 'Idle for an hour.',
        chargeMaxMicroUsd: 0,
      },
    ])
    expect(reports).toEqual(['released: Idle for an hour.'])
    expect([pauses, run.held.releasedForMs]).toEqual([[], 0])
  })

  it('tries again at the next look if that fails', async () => {
    answers['releaseReservation'] = refusing('No answer.')
    await hold()
    expect([reports, pauses]).toEqual([[], [HOUR_MS]])
    expect(troubles).toContain('No answer.')
  })

  it('settles nothing before its end', async () => {
    await hold()
    expect(settled).toEqual([PAID])
  })
})
