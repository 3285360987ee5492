/** Figures that no provider and no writer of Crucible would give: nothing is bought, chosen or counted by them. */
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AttemptDocuments } from '../../activities/documents'
import { answerOf } from '../../activities/plan/asking'
import type { Backend } from '../../backends/backend'
import { isAmount, isInstant } from '../../core/figures'
import { emptyTreasury, settle } from '../../core/money/treasury'
import type { Offer } from '../../core/offer'
import type { CapacityQuote, OwnedReservation } from '../../core/reservation/reservation'
import type { PurchaseRule } from '../../core/reservation/reserving'
import { DAY_MS } from '../../core/time/time'
import { adoptable } from '../../planner/reserving/adopt'
import { judgeExtension } from '../../planner/reserving/extend'
import { judgeHold } from '../../planner/reserving/hold'
import { judgeCapacity } from '../../planner/reserving/judge'
import { readJobCosts } from '../../storage/job-costs'
import { layout } from '../../storage/layout'
import { readBilling, readMachine } from '../../storage/machines'
import { openPurchases, Purchases } from '../../storage/purchases'
import { OFFER } from '../client/world'
import { factsOf, hourlyOf, NOW_MS, ownedOf, quoteOf } from '../planner/reserving/facts'
import type { ObjectStore } from '../../storage/store'
import { markedStore } from '../support/marked-store'

const FORGED: readonly [string, unknown][] = [
  ['negative', -1],
  ['very negative', -1e15],
  ['NaN', NaN],
  ['Infinity', Infinity],
  ['1e308', 1e308],
  ['beyond whole numbers', 2 ** 60],
  ['a text', '1'],
  ['an empty text', ''],
  ['null', null],
  ['true', true],
  ['a list', [1]],
  ['an object', { valueOf: 1 }],
]
/** Instants may be fractions, and money may not. */
const OF_MONEY: readonly [string, unknown][] = [...FORGED, ['half a micro-dollar', 0.5]]
const OF_TIME: readonly [string, unknown][] = [
  ...FORGED,
  ['the year 9999', Date.UTC(9999, 5)],
  ['beyond dates', 8.64e15 + 1],
]

describe('a figure', () => {
  it.each(OF_MONEY)('that is %s is not money', (_, value) => expect(isAmount(value)).toBe(false))
  it.each(OF_TIME)('that is %s is not an instant', (_, value) => expect(isInstant(value)).toBe(false))
})

describe('an offer', () => {
  const whole: Offer = {
    ...OFFER,
    priceMaxMicroUsdPerHour: 5_000_000,
    besideMicroUsdPerHour: 1,
    listPriceMicroUsdPerHour: 4_000_000,
    billedAtLeastMs: 60_000,
    billedInStepsOfMs: 1_000,
    usableUntilMs: NOW_MS,
    runMsMax: 1,
    interruptionsPerHour: 0.5,
    freePlaces: 3,
    shape: { ...OFFER.shape, cpus: 0.5, memoryGiB: 2, diskGiB: 3, gpus: 1, gpuMemoryGiB: 24 },
    reservation: { free: 1, total: 2, startsAtMs: NOW_MS, endsAtMs: NOW_MS, idleMicroUsdPerHour: 0 },
    transfer: { storeRegion: 'east', upMicroUsdPerGb: 1.5, downMicroUsdPerGb: 2, bytesPerSecond: 1e8 },
  }
  const ask = (offers: Offer[]): ReturnType<typeof answerOf> => {
    const backend = { name: 'ec2', capabilities: {}, offers: async () => offers } as unknown as Backend
    return answerOf(backend, { request: {} }, new AbortController().signal)
  }
  const places: readonly (keyof Offer | null)[] = [null, 'shape', 'reservation', 'transfer']
  const fields = places.flatMap((part) =>
    Object.entries(part === null ? whole : (whole[part] as object))
      .filter(([, value]) => typeof value === 'number')
      .map(([name]): [string, (value: unknown) => Offer] => [
        part === null ? name : `${part}.${name}`,
        (value) =>
          part === null
            ? { ...whole, [name]: value }
            : { ...whole, [part]: { ...(whole[part] as object), [name]: value } },
      ]),
  )

  it('with every figure in its limits is chosen from', async () => {
    const answer = await ask([whole, OFFER])
    expect([answer.offers.length, answer.silentPlaces]).toEqual([2, undefined])
    expect(fields).toHaveLength(23)
  })

  it.each(fields)('whose %s is forged is left out, and the answer says so', async (_, forged) => {
    for (const [what, value] of FORGED) {
      const answer = await ask([forged(value), OFFER, forged(value)])
      expect([what, answer.offers]).toEqual([what, [OFFER]])
      expect(answer.silentPlaces).toEqual([
        {
          place: OFFER.place,
          reason: expect.stringMatching(/and 1 other offer cannot be used: \w+ is .{1,40}$/),
        },
      ])
    }
  })
})

describe('a quote', () => {
  const RULE: PurchaseRule = {
    upfrontMaxMicroUsd: 960_000_000,
    machineHourMaxMicroUsd: 1e10,
    unaskedMaxMicroUsd: 960_000_000,
    spendMaxMicroUsd: 960_000_000,
    searchUntilAtMs: NOW_MS + 1e9,
    idleMaxMs: 1,
    extendMaxMicroUsd: 960_000_000,
  }
  const full: CapacityQuote = quoteOf({ committedMs: 1 })
  const numbers = (of: object): string[] =>
    Object.entries(of).flatMap(([name, value]) => (typeof value === 'number' ? [name] : []))

  it('with every figure in its limits is bought', () => {
    expect(judgeCapacity(factsOf({ rule: RULE, quotes: [full] })).kind).toBe('buy')
  })

  it.each(numbers(full))('whose %s is forged is never bought and never offered for approval', (name) => {
    for (const [what, value] of FORGED) {
      const quote = { ...full, [name]: value }
      const approved = judgeCapacity(factsOf({ rule: RULE, quotes: [quote], approved: quote }))
      expect([what, approved.kind]).toEqual([what, 'wait'])
      expect(approved.alternatives[0]?.refusal).toMatch(/ is /)
      const hourly = { ...hourlyOf(), [name]: value }
      const facts = factsOf({ wish: { kind: 'hourly', durationMs: 0 }, rule: RULE, quotes: [hourly] })
      expect([what, judgeCapacity(facts).kind]).toEqual([what, 'wait'])
    }
  })

  it.each(numbers(RULE))('is not bought by a rule whose %s is forged', (name) => {
    for (const [what, value] of FORGED) {
      const rule = { ...RULE, [name]: value }
      const verdict = judgeCapacity(factsOf({ rule, quotes: [full] }))
      expect([what, ['buy', 'ask'].includes(verdict.kind)]).toEqual([what, false])
    }
  })

  const ofOther = (value: unknown): Partial<CapacityQuote> => value as Partial<CapacityQuote>
  it.each([
    ['sold in another currency', { currency: 'EUR' }],
    ['sold in a currency that looks like the right one', { currency: 'USD ' }],
    ['sold in no currency', ofOther({ currency: null })],
    ['over', { startsAtMs: NOW_MS - 9 * DAY_MS, endsAtMs: NOW_MS - DAY_MS, usableUntilMs: NOW_MS - DAY_MS }],
    ['over when it begins', { endsAtMs: NOW_MS, usableUntilMs: NOW_MS }],
    ['usable until yesterday', { usableUntilMs: NOW_MS - DAY_MS }],
    ['almost over', { startsAtMs: NOW_MS - 9 * DAY_MS, endsAtMs: NOW_MS + 1, usableUntilMs: NOW_MS + 1 }],
    ['of another type', { type: 'p5e' }],
    ['of fewer machines', { count: 3 }],
    ['an extension that is not wanted', { extends: 'cr-1' }],
    ['of a kind that is not sold', ofOther({ kind: 'free' })],
    ['one micro-dollar above the limit', { upfrontMicro: 960_000_001 }],
  ] as const)('that is %s is never bought', (_, changes) => {
    const facts = factsOf({ rule: RULE, quotes: [quoteOf({ ...full, ...changes })] })
    expect(['buy', 'ask']).not.toContain(judgeCapacity(facts).kind)
  })

  it('whose id is sold a thousand times, at many prices, is bought once and below the limit', () => {
    const quotes = Array.from({ length: 1_000 }, (_, index) =>
      quoteOf({ ...full, upfrontMicro: 959_000_500 + 1_001_000 * (index % 7) }),
    )
    const verdict = judgeCapacity(factsOf({ rule: RULE, quotes }))
    expect(verdict).toMatchObject({
      kind: 'buy',
      judged: { quote: { id: full.id, upfrontMicro: 959_000_500 } },
    })
  })

  it.each(['upfrontMicro', 'endsAtMs', 'count'])(
    'of an extension whose %s is forged is not bought',
    (name) => {
      const reservation = ownedOf({ phase: 'active', endsAtMs: NOW_MS + 1e7, usableUntilMs: NOW_MS + 1e7 })
      const jobs = [{ jobId: 'job-a', attempt: 1, left: { ms: 2e7, isMeasured: true } }] as never
      const good = quoteOf({ extends: 'cr-1', endsAtMs: NOW_MS + 1e8 })
      const judge = (quote: CapacityQuote): string =>
        judgeExtension({
          reservation,
          rule: RULE,
          extendedMicroUsd: 0,
          jobs,
          quotes: [quote],
          elsewhere: {},
          nowMs: NOW_MS,
        }).kind
      expect(judge(good)).toBe('extend')
      for (const [what, value] of FORGED)
        expect([what, judge({ ...good, [name]: value })]).toEqual([what, 'move'])
    },
  )
})

describe('an owned reservation', () => {
  it.each(['total', 'free', 'startsAtMs', 'endsAtMs', 'idleMicroUsdPerHour'])(
    'whose %s is forged is not adopted',
    (name) => {
      const facts = factsOf({ owned: [ownedOf({ deployment: 'dep' })] })
      expect(adoptable(facts)?.kind).toBe('adopt')
      for (const [what, value] of FORGED) {
        const owned = { ...ownedOf({ deployment: 'dep' }), [name]: value }
        expect([what, adoptable({ ...facts, owned: [owned] })]).toEqual([what, undefined])
      }
    },
  )

  it('costs its last known price when the price is forged', () => {
    const hourly = ownedOf({ kind: 'hourly', phase: 'active', free: 4, idleMicroUsdPerHour: 1_000_000 })
    const known = { state: 'active', reservation: hourly, idleMicroUsd: 5, idleMs: 0, misses: 0 } as never
    const look = (reservation: OwnedReservation): number =>
      judgeHold({
        reservation,
        held: known,
        reservationId: 'res-a',
        rule: {},
        elapsedMs: 3_600_000,
        nowMs: NOW_MS + 1e8,
      }).held.idleMicroUsd
    for (const [what, value] of OF_MONEY)
      expect([what, look({ ...hourly, idleMicroUsdPerHour: value as number })]).toEqual([what, look(hourly)])
  })
})

describe('the money of a month', () => {
  it('never grows by forged spending: all that was reserved counts as spent', () => {
    const promised = { 'job-a': { owner: 'ada', microUsd: 7 } }
    for (const [what, value] of OF_MONEY) {
      const state = { ...emptyTreasury('2026-11'), promised, spent: { ada: 3 } }
      const after = settle(state, { jobId: 'job-a', owner: 'ada', spentMicroUsd: value as number })
      expect([what, after.spent]).toEqual([what, { ada: 10 }])
    }
  })
})

describe('a document of the store', () => {
  let folder: string
  let store: ObjectStore
  const at = { jobId: 'job-a', attempt: 1 }
  /** As JSON writes them, and as JSON cannot. */
  const TEXTS = ['-1', '1e308', '1e999', '"1"', 'null', 'true', '[1]', '{}', '-8640000000000001']

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'crucible-figures-'))
    store = markedStore(folder)
  })
  afterEach(() => rmSync(folder, { recursive: true, force: true }))

  const put = (key: string, document: object, name: string, text: string): Promise<void> =>
    store.put(key, JSON.stringify(document).replace(new RegExp(`"${name}":[^,}]+`), `"${name}":${text}`))

  it.each(['costMicroUsd', 'finishedAtMs', 'machineMs', 'listMicroUsd'])(
    'with the costs of a job whose %s is forged is not added up, and is named',
    async (name) => {
      const parts = [{ backend: 'ec2', capacityType: 'spot', machineMs: 1, listMicroUsd: 9, costMicroUsd: 5 }]
      const costs = { version: 1, jobId: 'job-a', owner: 'ada', name: 'a', state: 'succeeded' }
      const whole = { ...costs, finishedAtMs: NOW_MS, costMicroUsd: 5, parts }
      const key = `${layout.costs('2026-11')}job-a.json`
      await store.put(key, JSON.stringify(whole))
      expect((await readJobCosts(store)).costs).toHaveLength(1)
      for (const text of TEXTS) {
        if (name === 'listMicroUsd' && text === 'null') continue
        await put(key, whole, name, text)
        expect([text, await readJobCosts(store)]).toEqual([text, { costs: [], unreadable: [key] }])
      }
    },
  )

  it('with the costs of a job whose tags are no texts is not added up', async () => {
    const key = `${layout.costs('2026-11')}job-a.json`
    const costs = { version: 1, jobId: 'job-a', finishedAtMs: NOW_MS, costMicroUsd: 5, parts: [] }
    for (const team of ['ml', { a: 1 }])
      await store.put(`${key}${typeof team}`, JSON.stringify({ ...costs, tags: { team } }))
    expect(await readJobCosts(store)).toMatchObject({
      costs: [{ tags: { team: 'ml' } }],
      unreadable: [`${key}object`],
    })
  })

  it.each(['upfrontMicro', 'count', 'startsAtMs', 'endsAtMs', 'atMs'])(
    'with the mark of a purchase whose %s is forged is not read, and may stand for any purchase',
    async (name) => {
      const purchases = new Purchases(store, () => NOW_MS)
      const order = {
        intent: 'res-a',
        send: 1,
        deployment: 'dep',
        owner: 'ada',
        backend: 'ec2',
        quote: quoteOf(),
      }
      const mark = { kind: 'sent', order, atMs: NOW_MS, ownedBefore: [] }
      await store.put(layout.purchase('res-a', 1), JSON.stringify(mark))
      expect(await purchases.read(order)).toEqual(mark)
      for (const text of TEXTS) {
        await put(layout.purchase('res-a', 1), mark, name, text)
        await expect(purchases.read(order)).rejects.toThrow(/the mark of a purchase/)
        expect([text, await openPurchases(store)]).toEqual([text, { sent: [], unreadable: ['res-a'] }])
      }
    },
  )

  it.each(['priceMicroUsdPerHour', 'launchedAtMs'])(
    'with a machine whose %s is forged does not count',
    async (name) => {
      const realised = { capacityType: 'spot', type: 't', place: 'p', priceMicroUsdPerHour: 5 }
      const machine = { attemptId: 'job-a/1', id: 'm', kind: 'machine', launchedAtMs: NOW_MS, realised }
      for (const text of TEXTS) {
        await put(layout.machine('job-a', 1), machine, name, text)
        expect([text, await readMachine(store, at)]).toEqual([text, undefined])
      }
    },
  )

  it('with the bounds of a bill that are forged does not count', async () => {
    const documents = new AttemptDocuments(store, at, () => NOW_MS)
    const machine = { attemptId: 'job-a/1', id: 'm' }
    for (const text of TEXTS) {
      if (text === 'null') continue
      await put(layout.billing('job-a', 1), { fromAtMs: NOW_MS }, 'fromAtMs', text)
      expect([text, await readBilling(store, at)]).toEqual([text, undefined])
      await put(layout.endedMachine('job-a', 1, 'm'), { endedAtMs: 5, handle: machine }, 'endedAtMs', text)
      expect([text, await documents.readEnded()]).toEqual([text, []])
    }
  })
})
