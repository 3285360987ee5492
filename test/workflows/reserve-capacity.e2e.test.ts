import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals'
import { Client, type WorkflowHandle } from '@temporalio/client'
import { without } from '../../core/defined'
import { RETRY_SIGNAL } from '../../core/messages'
import { microUsd } from '../../core/money/money'
import { buyerWorkflowId, ORCHESTRATOR_QUEUE, reservationWorkflowId, WORKFLOW_TYPES } from '../../core/queues'
import {
  quoteKey,
  RESERVATION_QUERY,
  type PurchaseRule,
  type ReservationInput,
  type ReservationResult,
  type ReservationState,
  type ReservationStatus,
} from '../../core/reservation/reserving'
import type { CapacityRequest } from '../../core/reservation/reservation'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../core/time/time'
import { Purchases } from '../../storage/purchases'
import { Authentication } from '../../workers/authentication'
import { readHolder, readReservationEntries } from '../../storage/reservations'
import { putWebhook } from '../../storage/webhooks'
import { RealClock } from '../backends/scripted/clock'
import { ReservationMarket, type MarketOptions } from '../backends/scripted/reserving/market'
import type { PrepaidLot } from '../backends/scripted/reserving/lots'
import { connectTo, quietWorkers, skipTime, type TestConnection } from '../support/temporal'
import { eventually, TEST_LIMIT_MS } from './looks'
import { DEPLOYMENT_ID, TEST_KEY, worldsOn, type Deployment } from './harness'

jest.setTimeout(TEST_LIMIT_MS)

let at: TestConnection
beforeAll(async () => {
  quietWorkers()
  at = await connectTo()
})
afterAll(() => at.close())
const inWorld = worldsOn(() => at)

const ID = 'res-test'
const BLOCK: PrepaidLot = {
  kind: 'prepaid',
  type: 'v100',
  region: 'r',
  zone: 'a',
  count: 8,
  startsAtMs: Date.now() + DAY_MS,
  durationMs: 7 * DAY_MS,
  upfrontMicro: microUsd(4_000),
}
const WISH: CapacityRequest = {
  backend: 'scripted',
  kind: 'prepaid',
  types: ['v100'],
  count: 8,
  durationMs: 6 * DAY_MS,
  latestStartAtMs: Date.now() + 14 * DAY_MS,
}
/** Without an end. */
const HOURLY_WISH = without({ ...WISH, kind: 'hourly' as const }, ['durationMs'])
const UNASKED: PurchaseRule = { unaskedMaxMicroUsd: microUsd(5_000) }

function marketWith(options: Partial<MarketOptions> = {}): ReservationMarket {
  const payment = { kind: 'confirmed', afterMs: 100 } as const
  return new ReservationMarket({ clock: new RealClock(), lots: [{ ...BLOCK }], payment, ...options })
}

interface Reservation extends WorkflowHandle {
  result(): Promise<ReservationResult>
}

const WEBHOOK = 'https://example.test/hook?token=secret'

/** What was posted about it, in order. */
function newsOf({ wishes }: Deployment): { event: string; text: string }[] {
  return wishes.posted!.map(({ url, body }) => {
    expect(url).toBe(WEBHOOK)
    return JSON.parse(body) as { event: string; text: string }
  })
}

async function reserve(
  { client, world, store, wishes }: Deployment,
  {
    wish = {},
    rule = UNASKED,
    isHurried = true,
    ...input
  }: Partial<Omit<ReservationInput, 'wish'>> & {
    wish?: Partial<CapacityRequest>
    /** Skips what it waits for, so that it looks again and again. */
    isHurried?: boolean
  } = {},
): Promise<Reservation> {
  const workflowId = reservationWorkflowId(ID)
  const isTold = wishes.posted !== undefined
  if (isTold) await putWebhook(store, TEST_KEY, { id: ID, url: WEBHOOK })
  const handle = await client.workflow.start(WORKFLOW_TYPES.reserveCapacity, {
    workflowId,
    workflowIdReusePolicy: 'REJECT_DUPLICATE',
    taskQueue: ORCHESTRATOR_QUEUE,
    args: [
      {
        reservationId: ID,
        wish: { ...(wish.kind === 'hourly' ? HOURLY_WISH : WISH), backend: world.name, ...wish },
        rule,
        owner: 'ada',
        deployment: DEPLOYMENT_ID,
        submittedAtMs: Date.now(),
        lookPausesMs: [0, 100, 200, 400, 800],
        ...(isTold ? { webhookOf: ID, pageUrl: 'http://ui.test/res' } : {}),
        ...input,
      } satisfies ReservationInput,
    ],
  })
  if (isHurried) await skipTime(client, workflowId)
  return handle as Reservation
}

const statusOf = (one: WorkflowHandle): Promise<ReservationStatus> =>
  one.query<ReservationStatus>(RESERVATION_QUERY)

async function until(one: WorkflowHandle, state: ReservationState): Promise<ReservationStatus> {
  await eventually(async () => (await statusOf(one)).state === state)
  return statusOf(one)
}

/** Makes it look, and holds the look back before its answer. Returns what lets it go on. */
async function lookBegun({ store }: Deployment, reservation: Reservation): Promise<() => void> {
  let release!: () => void
  const released = new Promise<void>((resolve) => (release = resolve))
  const put = store.putIfAbsent.bind(store)
  const begun = new Promise<void>((resolve) => {
    store.putIfAbsent = async (key, body) => {
      if (key.includes('/record/')) {
        resolve()
        await released
      }
      return put(key, body)
    }
  })
  await reservation.signal(RETRY_SIGNAL)
  await begun
  return release
}

describe('a reservation', () => {
  const bought = marketWith()
  it.concurrent(
    'is bought within the rule, paid, and held until it ends',
    inWorld({ market: bought }, async (deployment) => {
      const reservation = await reserve(deployment)
      const { reservation: held, spentMicroUsd } = await until(reservation, 'scheduled')
      expect(held).toMatchObject({ intent: ID, deployment: DEPLOYMENT_ID, total: 8 })
      expect(spentMicroUsd).toBe(microUsd(4_000))
      bought.shorten(held!.id, Date.now())
      expect(await reservation.result()).toMatchObject({ state: 'ended', spentMicroUsd: microUsd(4_000) })
      expect(bought.purchases).toHaveLength(1)
      const kinds = (await readReservationEntries(deployment.store, ID)).map(({ kind }) => kind)
      expect(kinds.slice(0, 2)).toEqual(['looked', 'sent'])
      expect(kinds.at(-1)).toBe('over')
    }),
  )

  const asked = marketWith({ payment: { kind: 'confirmed', afterMs: 0 } })
  it.concurrent(
    'waits for approval of exactly what is shown, and looks again once that is sold',
    inWorld({ market: asked, posted: [] }, async (deployment) => {
      const reservation = await reserve(deployment, { rule: {}, isHurried: false })
      const { quote } = await until(reservation, 'awaiting-approval')
      asked.withdraw(asked.lots[0]!)
      await reservation.signal(RETRY_SIGNAL)
      await until(reservation, 'searching')
      const approve = (key: string): Promise<unknown> =>
        reservation.executeUpdate('approve', { args: [{ by: 'ada', quote: key }] })
      await expect(approve(quoteKey(quote!.quote))).rejects.toMatchObject({
        cause: { message: expect.stringMatching(/Nothing waits for approval/) as unknown },
      })
      asked.sell({ ...BLOCK, upfrontMicro: microUsd(3_000) })
      await reservation.signal(RETRY_SIGNAL)
      const { quote: second } = await until(reservation, 'awaiting-approval')
      await expect(approve(quoteKey(quote!.quote))).rejects.toMatchObject({
        cause: { message: expect.stringMatching(/has changed/) as unknown },
      })
      await approve(quoteKey(second!.quote))
      expect(await until(reservation, 'scheduled')).toMatchObject({
        decision: { kind: 'approved', by: 'ada' },
      })
      expect(asked.purchases.map((one) => one.quote.upfrontMicro)).toEqual([microUsd(3_000)])
      await eventually(() => newsOf(deployment).length === 3)
      expect(newsOf(deployment).map(({ event }) => event)).toEqual([
        'waits-for-approval',
        'waits-for-approval',
        'begins',
      ])
      expect(newsOf(deployment)[1]!.text).toMatch(
        /^Reservation res-test: 8 × v100 .* \$3000\.00 upfront.* crucible reservations approve res-test\. .* http:\/\/ui\.test\/res$/,
      )
    }),
  )

  const never = marketWith()
  it.concurrent(
    'fails at once if what is wanted is never sold',
    inWorld({ market: never }, async (deployment) => {
      const reservation = await reserve(deployment, { wish: { types: ['v1000'] } })
      expect(await reservation.result()).toMatchObject({
        state: 'failed',
        message: expect.stringMatching(/^None of v1000 is sold prepaid/) as unknown,
      })
    }),
  )

  const dear = marketWith()
  it.concurrent(
    'buys nothing above the rule, and says what is nearest',
    inWorld({ market: dear }, async (deployment) => {
      const reservation = await reserve(deployment, {
        rule: { ...UNASKED, upfrontMaxMicroUsd: microUsd(3_999) },
        isHurried: false,
      })
      await eventually(async () =>
        (await statusOf(reservation)).message.includes('above the limit of $3999.00'),
      )
      await reservation.executeUpdate('reject', { args: [{ by: 'ada', reason: 'too dear' }] })
      expect(await reservation.result()).toMatchObject({ state: 'rejected', spentMicroUsd: 0 })
      expect(dear.purchases).toEqual([])
    }),
  )

  it.each([
    ['ahead', 2 * HOUR_MS],
    ['behind', -2 * HOUR_MS],
  ])('is approved, or rejected, by a client whose clock is 2 h %s', async (_, byMs) => {
    for (const [update, state] of [
      ['approve', 'scheduled'],
      ['reject', 'rejected'],
    ] as const) {
      const market = marketWith({ payment: { kind: 'confirmed', afterMs: 0 } })
      await inWorld({ market }, async (deployment) => {
        const reservation = await reserve(deployment, { rule: {}, isHurried: false })
        const { quote } = await until(reservation, 'awaiting-approval')
        const wrong = new Authentication(TEST_KEY, () => Date.now() + byMs)
        const client = wrong.client(at.client.connection, deployment.namespace)
        const args: [object] = [{ by: 'ada', quote: quoteKey(quote!.quote) }]
        await client.workflow.getHandle(reservation.workflowId).executeUpdate(update, { args })
        await until(reservation, state)
        expect(market.purchases).toHaveLength(update === 'approve' ? 1 : 0)
      })()
    }
  })

  const taken = marketWith({ payment: { kind: 'confirmed', afterMs: 0 } })
  it.concurrent(
    'names who has the id of its buyer, and is bought once that workflow is terminated',
    inWorld({ market: taken }, async (deployment) => {
      const { client, namespace, world } = deployment
      const stranger = new Client({ connection: client.connection, namespace })
      const workflowId = buyerWorkflowId({ backend: world.name, account: 'account-1', region: 'r' })
      const buyer = await stranger.workflow.start('stranger', { workflowId, taskQueue: 'nowhere' })
      const reservation = await reserve(deployment)
      await eventually(
        async () =>
          (await statusOf(reservation)).trouble?.endsWith(
            `workflow terminate --workflow-id ${workflowId}.`,
          ) === true,
      )
      expect(taken.purchases).toEqual([])
      await buyer.terminate()
      await until(reservation, 'scheduled')
      expect(taken.purchases).toHaveLength(1)
    }),
  )

  const lost = marketWith({ listsLagMs: 1_000 })
  lost.faults.add('reserve', { kind: 'loses-answer', hasEffect: true })
  it.concurrent(
    'finds a purchase whose answer is lost',
    inWorld({ market: lost }, async (deployment) => {
      const reservation = await reserve(deployment)
      expect((await until(reservation, 'scheduled')).reservation).toMatchObject({ intent: ID })
      expect(lost.purchases).toHaveLength(1)
    }),
  )

  const unknown = marketWith()
  unknown.faults.add('reserve', { kind: 'loses-answer', hasEffect: false })
  it.concurrent(
    'leaves a purchase without a trace to a person, with an account of it',
    inWorld({ market: unknown, purchaseLimitMs: 500, posted: [] }, async (deployment) => {
      const reservation = await reserve(deployment)
      const { undecided } = await until(reservation, 'undecided')
      expect(undecided!.account.length).toBeGreaterThan(3)
      await reservation.executeUpdate('decidePurchase', { args: [{ by: 'ada', kind: 'not-bought' }] })
      await until(reservation, 'scheduled')
      expect(newsOf(deployment).slice(0, 1)).toMatchObject([
        {
          event: 'undecided',
          text: expect.stringMatching(/\$4000\.00 was sent, .* decide res-test --bought/),
        },
      ])
      expect(unknown.purchases).toHaveLength(1)
      expect(unknown.purchases[0]).toMatchObject({ send: 2 })
    }),
  )

  const before = marketWith()
  it.concurrent(
    'takes up a purchase that its own history does not know, instead of buying again',
    inWorld({ market: before, purchaseLimitMs: 500 }, async (deployment) => {
      const { store, world } = deployment
      const wish = { ...WISH, backend: world.name }
      const [quote] = before.quotes(wish, 'r')
      const order = {
        intent: ID,
        send: 1,
        deployment: DEPLOYMENT_ID,
        owner: 'ada',
        backend: world.name,
        quote: quote!,
      }
      await new Purchases(store, Date.now).mark(order, { ownedBefore: [] })
      const reservation = await reserve(deployment)
      expect((await until(reservation, 'undecided')).undecided!.order).toEqual(order)
      expect(before.purchases).toEqual([])
      await reservation.executeUpdate('decidePurchase', { args: [{ by: 'ada', kind: 'not-bought' }] })
      await until(reservation, 'scheduled')
      expect(before.purchases.map(({ send }) => send)).toEqual([2])
    }),
  )

  const prolonged = marketWith({ payment: { kind: 'confirmed', afterMs: 0 } })
  it.concurrent(
    'is extended once for one request, however often that is sent',
    inWorld({ market: prolonged }, async (deployment) => {
      const reservation = await reserve(deployment, { isHurried: false })
      const { reservation: held } = await until(reservation, 'scheduled')
      prolonged.sell({
        kind: 'extension',
        reservation: held!.id,
        durationMs: DAY_MS,
        stock: 5,
        upfrontMicro: microUsd(500),
      })
      const update = { by: 'ada', durationMs: DAY_MS, upfrontMaxMicroUsd: microUsd(500) }
      const ask = async (more: object = {}): Promise<string> => {
        const { message } = await reservation.executeUpdate<{ message: string }, [object]>(
          'extendReservation',
          {
            args: [{ ...update, ...more }],
          },
        )
        return message
      }
      const seen = { seenEndsAtMs: held!.endsAtMs! }
      expect(await ask(seen)).toMatch(/is extended to/)
      expect(await ask(seen)).toMatch(/^It is already extended/)
      expect(prolonged.purchases.map(({ kind }) => kind)).toEqual(['reservation', 'extension'])
      // A person may want more.
      await ask()
      expect(prolonged.purchases).toHaveLength(3)
    }),
  )

  const asking = marketWith()
  asking.faults.add('reserve', { kind: 'loses-answer', hasEffect: false })
  it.concurrent(
    'hears a decision that comes while it looks for the purchase',
    inWorld({ market: asking, purchaseLimitMs: 500 }, async (deployment) => {
      const reservation = await reserve(deployment, { isHurried: false })
      await until(reservation, 'undecided')
      const release = await lookBegun(deployment, reservation)
      const decision = await reservation.startUpdate<{ message: string }, [object]>('decidePurchase', {
        args: [{ by: 'ada', kind: 'not-bought' }],
        waitForStage: 'ACCEPTED',
      })
      release()
      expect(await decision.result()).toEqual({ message: 'Nothing was bought. The search continues.' })
    }),
  )

  const approved = marketWith({ payment: { kind: 'confirmed', afterMs: 0 } })
  it.concurrent(
    'is bought if it is approved while it looks',
    inWorld({ market: approved }, async (deployment) => {
      const reservation = await reserve(deployment, { rule: {}, isHurried: false })
      const { quote } = await until(reservation, 'awaiting-approval')
      const release = await lookBegun(deployment, reservation)
      await reservation.executeUpdate('approve', { args: [{ by: 'ada', quote: quoteKey(quote!.quote) }] })
      release()
      await until(reservation, 'scheduled')
    }),
  )

  const rejected = marketWith({ lots: [{ ...BLOCK, zone: 'b', stock: 0 }] })
  it.concurrent(
    'is not bought if it is rejected while it looks',
    inWorld({ market: rejected }, async (deployment) => {
      const reservation = await reserve(deployment, { isHurried: false })
      await eventually(async () => (await statusOf(reservation)).nextLookAtMs !== undefined)
      rejected.sell({ ...BLOCK })
      const release = await lookBegun(deployment, reservation)
      await reservation.executeUpdate('reject', { args: [{ by: 'ada' }] })
      release()
      expect(await reservation.result()).toMatchObject({ state: 'rejected', spentMicroUsd: 0 })
      expect(rejected.purchases).toEqual([])
    }),
  )

  const hourly = marketWith({
    lots: [{ kind: 'hourly', type: 'v100', region: 'r', zone: 'a', perHourMicro: microUsd(3) }],
  })
  it.concurrent(
    'gives hourly capacity back once it was idle for long enough',
    inWorld({ market: hourly, posted: [] }, async (deployment) => {
      const reservation = await reserve(deployment, {
        wish: { kind: 'hourly', durationMs: 10 * DAY_MS },
        rule: {
          unaskedMaxMicroUsd: microUsd(6_000),
          spendMaxMicroUsd: microUsd(6_000),
          idleMaxMs: HOUR_MS / 2,
        },
      })
      const result = await reservation.result()
      expect(result.state).toBe('ended')
      expect(result.idleMicroUsd).toBeGreaterThanOrEqual(0.5 * 8 * microUsd(3))
      expect(result.idleMicroUsd).toBeLessThan(8 * microUsd(3))
      const listed = hourly.listed('r')
      expect(listed).toMatchObject([{ phase: 'ended' }])
      expect(newsOf(deployment).map(({ event }) => event)).toEqual(['released'])
    }),
  )

  const HOURLY_LOT = {
    kind: 'hourly',
    type: 'v100',
    region: 'r',
    zone: 'a',
    perHourMicro: microUsd(3),
  } as const
  const HOURLY_PLAY = {
    wish: { kind: 'hourly', count: 2 },
    rule: { unaskedMaxMicroUsd: microUsd(60), spendMaxMicroUsd: microUsd(60) },
    isHurried: false,
  } as const

  const resized = marketWith({ lots: [{ ...HOURLY_LOT, stock: 5 }] })
  it.concurrent(
    'grows and shrinks within its limit, once, even if the answer is lost, and takes an end',
    inWorld({ market: resized, monthly: { owners: {}, monthMicroUsd: microUsd(90) } }, async (deployment) => {
      const reservation = await reserve(deployment, HOURLY_PLAY)
      await until(reservation, 'active')
      const resize = (change: object): Promise<{ message: string }> =>
        reservation.executeUpdate('resizeReservation', { args: [{ by: 'ada', ...change }] })
      const refused = (message: RegExp): object => ({
        cause: { message: expect.stringMatching(message) as unknown },
      })
      resized.faults.add('change', { kind: 'loses-answer', hasEffect: true })
      expect((await resize({ count: 4 })).message).toMatch(/has 4 machines, until it is released\.$/)
      await expect(resize({ count: 6 })).rejects.toMatchObject(refused(/there are no more machines/))
      await expect(resize({ count: 21 })).rejects.toMatchObject(refused(/Raise it: --max-spend 6\d/))
      // Its own money of the month is no obstacle, and the limit of the month is one.
      await expect(resize({ spendMaxMicroUsd: microUsd(91) })).rejects.toMatchObject(
        refused(/the budget for .* has \$90\.00 left/),
      )
      expect((await resize({ spendMaxMicroUsd: microUsd(90) })).message).toMatch(/may cost \$90\.00 before/)
      const endsAtMs = Date.now() + 3 * HOUR_MS
      expect((await resize({ count: 1, endsAtMs })).message).toMatch(/has 1 machine, until 20/)
      expect((await resize({ share: 'all' })).message).toMatch(/Idle places are for /)
      expect(await readHolder(deployment.store, ID)).toMatchObject({ share: 'all' })
      const { rule, reservation: held, wish } = await statusOf(reservation)
      expect({ rule, held, wish }).toMatchObject({
        rule: { spendMaxMicroUsd: microUsd(90), share: 'all' },
        held: { total: 1, endsAtMs },
        wish: { count: 1 },
      })
      expect(resized.held()).toMatchObject([{ total: 1, endsAtMs }])
      const changes = (await readReservationEntries(deployment.store, ID)).filter(
        ({ kind }) => kind === 'changed',
      )
      expect(changes).toHaveLength(3)
    }),
  )

  const split = marketWith({ lots: [HOURLY_LOT] })
  it.concurrent(
    'is split once into a reservation of its own, which buys nothing and outlives it',
    inWorld({ market: split, monthly: { owners: {}, monthMicroUsd: microUsd(100) } }, async (deployment) => {
      const reservation = await reserve(deployment, HOURLY_PLAY)
      const { reservation: source } = await until(reservation, 'active')
      split.faults.add('change', { kind: 'loses-answer', hasEffect: true })
      const update = { by: 'ada', count: 1, newId: 'res-part' }
      const { message } = await reservation.executeUpdate<{ message: string }, [object]>('splitReservation', {
        args: [update],
      })
      expect(message).toMatch(/^1 machine of r-1 is r-2 now, held by res-part\.$/)
      const part = deployment.client.workflow.getHandle(reservationWorkflowId('res-part'))
      expect(await statusOf(part)).toMatchObject({
        id: 'res-part',
        state: 'active',
        rule: { spendMaxMicroUsd: microUsd(30) },
        wish: { count: 1 },
        reservation: { id: 'r-2', intent: 'res-part', deployment: DEPLOYMENT_ID, total: 1 },
      })
      expect(await statusOf(reservation)).toMatchObject({
        rule: { spendMaxMicroUsd: microUsd(30) },
        reservation: { id: source!.id, total: 1 },
      })
      expect(split.held().map(({ intent, total }) => [intent, total])).toEqual([
        [ID, 1],
        ['res-part', 1],
      ])
      await reservation.executeUpdate('release', { args: [{ by: 'ada', chargeMaxMicroUsd: 0 }] })
      expect(await reservation.result()).toMatchObject({ state: 'ended' })
      await part.executeUpdate('release', { args: [{ by: 'ada', chargeMaxMicroUsd: 0 }] })
      expect(await part.result()).toMatchObject({ id: 'res-part', state: 'ended' })
      expect(split.held()).toEqual([])
      expect(split.purchases).toHaveLength(1)
    }),
  )

  const vanished = marketWith({ lots: [{ ...BLOCK, stock: 2 }], listsLagMs: DAY_MS })
  it.concurrent(
    'that is no longer listed is not bought again, and counts as paid',
    inWorld({ market: vanished }, async (deployment) => {
      const reservation = await reserve(deployment)
      expect(await reservation.result()).toMatchObject({
        state: 'failed',
        spentMicroUsd: microUsd(4_000),
        message: expect.stringMatching(/no longer reports/) as unknown,
      })
      expect(vanished.purchases).toHaveLength(1)
    }),
  )

  const failing = marketWith({ payment: { kind: 'failed', afterMs: 100 } })
  it.concurrent(
    'is looked for again if its payment fails',
    inWorld({ market: failing, posted: [] }, async (deployment) => {
      failing.sell({ ...BLOCK, startsAtMs: BLOCK.startsAtMs + MINUTE_MS })
      const reservation = await reserve(deployment)
      await eventually(async () => failing.purchases.length === 1)
      failing.payment = { kind: 'confirmed', afterMs: 0 }
      await until(reservation, 'scheduled')
      expect(failing.purchases.map(({ send, isPaid }) => [send, isPaid])).toEqual([
        [1, false],
        [2, true],
      ])
      await eventually(() => newsOf(deployment).some(({ event }) => event === 'payment-failed'))
    }),
  )

  const takenBack = marketWith({ lots: [{ ...BLOCK, stock: 2 }], payment: { kind: 'confirmed', afterMs: 0 } })
  it.concurrent(
    'that the provider takes back before its start still counts as paid, with the one after it',
    inWorld({ market: takenBack }, async (deployment) => {
      const rule = { unaskedMaxMicroUsd: microUsd(8_000) }
      const reservation = await reserve(deployment, { rule })
      const { reservation: first } = await until(reservation, 'scheduled')
      takenBack.refuse(first!.id)
      await eventually(() => takenBack.purchases.length === 2)
      const { reservation: second } = await until(reservation, 'scheduled')
      takenBack.shorten(second!.id, Date.now())
      expect(await reservation.result()).toMatchObject({ state: 'ended', spentMicroUsd: microUsd(8_000) })
    }),
  )

  const unpaid = marketWith({ payment: { kind: 'confirmed', afterMs: 0 } })
  it.concurrent(
    'pays nothing for an extension whose payment fails, of the month either',
    inWorld(
      { market: unpaid, monthly: { owners: {}, monthMicroUsd: microUsd(4_600) } },
      async (deployment) => {
        const reservation = await reserve(deployment, { isHurried: false })
        const { reservation: held } = await until(reservation, 'scheduled')
        const lot = { kind: 'extension', reservation: held!.id, durationMs: DAY_MS, stock: 5 } as const
        unpaid.sell({ ...lot, upfrontMicro: microUsd(500) })
        unpaid.payment = { kind: 'pending' }
        const ask = (): Promise<{ message: string }> =>
          reservation.executeUpdate('extendReservation', {
            args: [{ by: 'ada', durationMs: DAY_MS, upfrontMaxMicroUsd: microUsd(500) }],
          })
        expect((await ask()).message).toMatch(/is extended to .* once \$500\.00 are paid/)
        await expect(ask()).rejects.toMatchObject({
          cause: { message: expect.stringMatching(/not paid yet/) },
        })
        expect(await statusOf(reservation)).toMatchObject({ spentMicroUsd: microUsd(4_500) })
        unpaid.settle(held!.id, 'failed')
        await reservation.signal(RETRY_SIGNAL)
        await eventually(async () => (await statusOf(reservation)).spentMicroUsd === microUsd(4_000))
        // The month has its money again: without it, there would be no other extension.
        unpaid.payment = { kind: 'confirmed', afterMs: 0 }
        await ask()
        expect(await statusOf(reservation)).toMatchObject({ spentMicroUsd: microUsd(4_500) })
      },
    ),
  )
})
