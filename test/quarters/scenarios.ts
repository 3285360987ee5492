import { microUsd } from '../../core/money/money'
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../core/time/time'
import { LEAD_MS, onSale, PRICE, priceOf, SCHEDULE, trains, USUAL, type Scenario } from './world'

const LONG_MS = 8 * HOUR_MS
/** Less than the rest of a training costs elsewhere. */
const CHEAP = microUsd(5)
const OVERRUN = {
  extendMaxMicroUsd: microUsd(500),
  backends: [{ backend: 'scripted', capacityType: 'on-demand' as const }],
}

/** A person approves each model, the first one long after the next run is due. */
const ASKED = { promotion: { model: SCHEDULE, isAsked: true, askMs: 250 * DAY_MS } }
/** Runs begin this long before their windows. */
const ON_SALE_MS = LEAD_MS - 5 * DAY_MS
const APPROVED_MS = 4 * DAY_MS

const OVERLAPPING: readonly Scenario[] = [
  {
    name: 'overlap-queue',
    about: 'two runs become due while the first one waits for a person: each begins after the one before',
    spec: { ...ASKED, overlap: 'queue' },
    quarters: 3,
    quarter(quarter) {
      const { index, run, year } = quarter
      const [, second, third] = year.runs
      const freeAtMs = third!.startsAtMs + APPROVED_MS
      const approve = {
        atMs: [freeAtMs, freeAtMs + DAY_MS / 2, run.opensAtMs + DAY_MS][index]!,
        act: () => year.approve(run),
      }
      const due = [second!, third!].map((each) => ({
        atMs: each.startsAtMs,
        act: () => year.becomeDue(each),
      }))
      switch (index) {
        case 0:
          return { ...USUAL, events: [onSale(quarter), ...due, approve] }
        case 1:
          return { ...USUAL, begins: 'late-by-far', trains: 'elsewhere', paid: 0, events: [approve] }
        default:
          return { ...USUAL, begins: 'late', events: [onSale(quarter, ON_SALE_MS), approve] }
      }
    },
  },
  {
    name: 'overlap-skip',
    about: 'a run becomes due while the first one waits for a person: it is left out',
    spec: { ...ASKED, overlap: 'skip' },
    quarters: 2,
    quarter(quarter) {
      const { index, run, year } = quarter
      const second = year.runs[1]!
      if (index === 1) return { ...USUAL, ends: 'none', paid: 0 }
      const due = { atMs: second.startsAtMs, act: () => year.becomeDue(second) }
      const approve = { atMs: second.startsAtMs + APPROVED_MS, act: () => year.approve(run) }
      return { ...USUAL, events: [onSale(quarter), due, approve] }
    },
  },
  {
    name: 'overlap-allow',
    about: 'a run becomes due while the first one waits for a person: both go on',
    spec: { ...ASKED, overlap: 'allow' },
    quarters: 2,
    quarter(quarter) {
      const { index, run, year } = quarter
      const second = year.runs[1]!
      if (index === 1) {
        const approve = { atMs: run.opensAtMs + DAY_MS, act: () => year.approve(run) }
        return { ...USUAL, events: [onSale(quarter, ON_SALE_MS), approve] }
      }
      const due = { atMs: second.startsAtMs, act: () => year.begin(second) }
      const approve = { atMs: second.startsAtMs + APPROVED_MS, act: () => year.approve(run) }
      return { ...USUAL, events: [onSale(quarter), due, approve] }
    },
  },
]

export const SCENARIOS: readonly Scenario[] = [
  ...OVERLAPPING,
  {
    name: 'normal',
    about:
      'a normal year, each with a rehearsal that is too long; the third model is worse, and the capacity of the fourth comes half a minute late',
    spec: { checkMs: HOUR_MS, rehearsal: { run: 'train', budget: '$50', backends: ['scripted:on-demand'] } },
    quarter(quarter) {
      const { index, run, market, reservation } = quarter
      const late = (): void => market.delay(reservation(), run.opensAtMs + 30 * SECOND_MS)
      return {
        ...USUAL,
        rehearses: true,
        loss: [1.5, 1.4, 1.9, 1.35][index]!,
        ends: index === 2 ? 'kept' : 'promoted',
        events: [onSale(quarter), ...(index === 3 ? [{ atMs: run.opensAtMs - HOUR_MS, act: late }] : [])],
      }
    },
  },
  {
    name: 'last-week',
    about: 'nothing is for sale until the last week',
    historyMax: 40,
    quarter: (quarter) => ({ ...USUAL, events: [onSale(quarter, (6 - quarter.index) * DAY_MS)] }),
  },
  {
    name: 'payment-failed',
    about: 'payments fail: once, twice so that the fallback is used, late, and once again',
    quarter(quarter) {
      const { index, market, run } = quarter
      const hasFallback = index === 1
      const failed = { kind: 'failed', afterMs: 5 * MINUTE_MS } as const
      const slow = { kind: 'confirmed', afterMs: 3 * HOUR_MS } as const
      const usual = { kind: 'confirmed', afterMs: 5 * MINUTE_MS } as const
      const pays = (payment: typeof failed | typeof slow | typeof usual) => () =>
        void (market.payment = payment)
      return {
        ...USUAL,
        ...(hasFallback ? { trains: 'elsewhere' as const, paid: 0 } : {}),
        events: [
          { atMs: run.startsAtMs - DAY_MS, act: pays(index === 2 ? slow : failed) },
          onSale(quarter, LEAD_MS + DAY_MS, { stock: 3 }),
          ...(hasFallback || index === 2 ? [] : [{ atMs: run.startsAtMs + MINUTE_MS, act: pays(usual) }]),
        ],
      }
    },
  },
  {
    name: 'too-dear',
    about: 'the price is above the rule: until four days before the opening, or all the time',
    quarter(quarter) {
      const { index, run } = quarter
      const isNever = index % 2 === 1
      const upfrontMicro = priceOf(
        [run.startsAtMs - 2 * DAY_MS, 2 * PRICE],
        ...(isNever ? [] : [[run.opensAtMs - 4 * DAY_MS, PRICE] as [number, number]]),
      )
      return {
        ...USUAL,
        ...(isNever ? { trains: 'elsewhere' as const, paid: 0 } : {}),
        events: [onSale(quarter, LEAD_MS + DAY_MS, { upfrontMicro })],
      }
    },
  },
  {
    name: 'cut-short',
    about: 'the provider ends a block early: during the training, before it, without a word, and by a little',
    quarter(quarter) {
      const { index, run, market, reservation } = quarter
      const opensAfter = (ms: number): number => run.opensAtMs + ms
      const shorten = (toMs: number) => () => market.shorten(reservation(), opensAfter(toMs))
      const cases = [
        { atMs: opensAfter(HOUR_MS), act: shorten(3 * HOUR_MS) },
        { atMs: opensAfter(-6 * HOUR_MS), act: () => market.cancel(reservation()) },
        { atMs: opensAfter(2 * HOUR_MS), act: () => market.cancel(reservation()) },
        { atMs: opensAfter(HOUR_MS), act: shorten(5 * HOUR_MS) },
      ]
      return {
        ...USUAL,
        behave: trains(4 * HOUR_MS),
        ...(index === 1 ? { trains: 'elsewhere' as const } : {}),
        ...(index === 2 ? { isTakenAway: true as const } : {}),
        events: [onSale(quarter), cases[index]!],
      }
    },
  },
  {
    name: 'extended',
    about:
      'the training is longer than its block, which is extended; the third payment for that fails, and the fourth is more expensive than moving',
    spec: { overrun: OVERRUN },
    quarter(quarter) {
      const { index, run, market, reservation } = quarter
      const sell = (): void => {
        if (index === 2) market.payment = { kind: 'failed', afterMs: 10 * MINUTE_MS }
        market.sell({
          kind: 'extension',
          reservation: reservation(),
          durationMs: 6 * HOUR_MS,
          upfrontMicro: index === 3 ? PRICE : CHEAP,
        })
      }
      const paysAgain = (): void => void (market.payment = { kind: 'confirmed', afterMs: 5 * MINUTE_MS })
      return {
        ...USUAL,
        behave: trains(LONG_MS),
        paid: index < 2 ? 2 : 1,
        events: [
          { atMs: run.startsAtMs - DAY_MS, act: paysAgain },
          onSale(quarter),
          { atMs: run.opensAtMs - HOUR_MS, act: sell },
        ],
      }
    },
  },
  {
    name: 'not-extended',
    about: 'the training is longer than its block, and no extension is for sale',
    spec: { overrun: OVERRUN },
    quarter: (quarter) => ({ ...USUAL, behave: trains(LONG_MS), events: [onSale(quarter)] }),
  },
  {
    name: 'daylight-saving',
    about: 'the clocks change in the window: its hour does not exist in March, and is there twice in October',
    spec: {
      calendar: {
        months: [3, 6, 10, 12],
        day: { kind: 'weekday', weekday: 'sunday', nth: 'last' },
        hour: 2,
        minute: 30,
        zone: 'Europe/Berlin',
        blackouts: [],
        onBlackout: 'skip',
      },
    },
    quarter: (quarter) => ({ ...USUAL, events: [onSale(quarter)] }),
  },
  {
    name: 'search-unserved',
    about: 'no worker runs for a week of the search, in which capacity comes on sale',
    quarter(quarter) {
      const { index, run, year } = quarter
      const beforeMs = (14 - index) * DAY_MS
      return {
        ...USUAL,
        events: [
          { atMs: run.opensAtMs - beforeMs, act: () => year.stopWorkers() },
          onSale(quarter, beforeMs - 3 * DAY_MS),
          { atMs: run.opensAtMs - beforeMs + 7 * DAY_MS, act: () => year.startWorkers() },
        ],
      }
    },
  },
  {
    name: 'opening-unserved',
    about: 'no worker runs for the day around the opening',
    step: { durationMs: 29 * HOUR_MS },
    quarter(quarter) {
      const { index, run, year } = quarter
      const beginsAtMs = run.opensAtMs - (6 + 3 * index) * HOUR_MS
      return {
        ...USUAL,
        events: [
          onSale(quarter, LEAD_MS + DAY_MS, { durationMs: 30 * HOUR_MS }),
          { atMs: beginsAtMs, act: () => year.stopWorkers() },
          { atMs: beginsAtMs + DAY_MS, act: () => year.startWorkers() },
        ],
      }
    },
  },
  {
    name: 'set-back',
    about:
      'the server is restored from a backup of yesterday, made before the purchase, the run, the payment, the opening',
    isSetBack: true,
    quarter(quarter) {
      const { index, run, year } = quarter
      const soldMs = LEAD_MS + DAY_MS
      // A search looks once a day at first: what comes on sale is bought within a day.
      const cases: [backUpAtMs: number, restoreAtMs: number, onSaleMs: number][] = [
        [run.startsAtMs + 2 * DAY_MS, run.startsAtMs + 3.1 * DAY_MS, LEAD_MS - 2.5 * DAY_MS],
        [run.startsAtMs - 6 * HOUR_MS, run.startsAtMs + 18 * HOUR_MS, soldMs],
        [run.startsAtMs + 2 * MINUTE_MS, run.startsAtMs + DAY_MS, soldMs],
        [run.opensAtMs - 2 * HOUR_MS, run.opensAtMs + 22 * HOUR_MS, soldMs],
      ]
      const [backUpAtMs, restoreAtMs, onSaleMs] = cases[index]!
      const restore = async (): Promise<void> => {
        await year.restore()
        // The schedule of the restored server starts what it has not started yet.
        if (backUpAtMs < run.startsAtMs) await year.begin(run)
      }
      return {
        ...USUAL,
        events: [
          onSale(quarter, onSaleMs, { stock: 3 }),
          { atMs: backUpAtMs, act: () => year.backUp() },
          { atMs: restoreAtMs, act: restore },
        ],
      }
    },
  },
]
