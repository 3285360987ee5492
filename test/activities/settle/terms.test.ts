/** Settlements with providers that queue launches, or that do not confirm ends. */
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { AttemptDocuments } from '../../../activities/documents'
import type { SettleInput, Settlement } from '../../../core/activities'
import { spendOver } from '../../../core/money/meter'
import { CLOCK_SLACK_MS, DAY_MS, HOUR_MS, MINUTE_MS } from '../../../core/time/time'
import { layout } from '../../../storage/layout'
import { readRecords } from '../../../storage/record'
import type { WorldOptions } from '../../backends/scripted/world'
import { until } from '../../support/until'
import { perform, Place, QUICK, SPOT } from '../place'

const QUEUE_MS = 10 * MINUTE_MS
const PRICE = SPOT.priceMicroUsdPerHour as number

let place: Place

async function anew(wishes: Partial<WorldOptions>): Promise<void> {
  await place.dispose()
  place = await Place.make(wishes)
}

beforeEach(async () => {
  place = await Place.make()
})
afterEach(() => place.dispose())

function inputOf(): SettleInput {
  const { order, handle } = place.launched(place.order({ runner: { queueMs: QUEUE_MS } }))
  return {
    order,
    handle,
    timing: { ...QUICK, powerOffMs: 0 },
    windowMs: 0,
    end: null,
    drainReason: null,
    recordSeq: 4,
  }
}
const settle = (input: SettleInput): Promise<Settlement> => perform(place.verbs(), 'settle', input)
const documentsOf = ({ order }: SettleInput): AttemptDocuments =>
  new AttemptDocuments(place.store, order, place.now)

describe('the settlement of a machine that may have been queued', () => {
  it('costs nothing while it is, and does not wait for a runner', async () => {
    await anew({ capabilities: { queues: true } })
    place.world.holdQueue()
    const input = { ...inputOf(), windowMs: HOUR_MS, drainReason: 'cancelled' } as const
    const settlement = await settle(input)
    expect(settlement).toMatchObject({ costMicroUsd: 0, end: { kind: 'stopped', by: 'cancelled' } })
    expect(settlement.billedFromAtMs).toBeUndefined()
    expect(settlement.metering).toBeUndefined()
    expect(place.lives()).toEqual(['gone'])
  })

  it('costs nothing either when it was ended by a settlement whose worker died', async () => {
    await anew({ capabilities: { queues: true } })
    place.world.holdQueue()
    const input = inputOf()
    await documentsOf(input).putBilling({ machine: input.handle!.id, fromAtMs: null })
    place.world.machines[0]!.end('ended')
    expect(await settle(input)).toMatchObject({
      costMicroUsd: 0,
      end: { kind: 'failed', failure: { class: 'capacity' } },
    })
  })

  it.each([
    ['the provider tells', true],
    ['the watch has put on record', false],
  ])('costs what it costs since billing began, which %s', async (_, tellsBilling) => {
    await anew({ capabilities: { queues: true }, tellsBilling })
    const input = inputOf()
    const [machine] = place.world.machines
    machine!.billedFromMs = input.handle!.launchedAtMs - MINUTE_MS
    if (!tellsBilling)
      await documentsOf(input).putBilling({ machine: input.handle!.id, fromAtMs: machine!.billedFromMs })
    input.handle!.launchedAtMs -= HOUR_MS
    const { costMicroUsd, billedFromAtMs, endedAtMs } = await settle(input)
    expect(billedFromAtMs).toBe(machine!.billedFromMs)
    expect(costMicroUsd).toBe(spendOver(endedAtMs! - billedFromAtMs!, PRICE))
    expect(costMicroUsd).toBeLessThan(spendOver(5 * MINUTE_MS, PRICE))
  })

  it('counts from the launch where a machine worked and nothing tells when it began', async () => {
    await anew({ capabilities: { queues: true }, tellsBilling: false })
    const input = inputOf()
    input.handle!.launchedAtMs -= HOUR_MS
    await place.beat(input.order)
    const { costMicroUsd } = await settle(input)
    expect(costMicroUsd).toBeGreaterThanOrEqual(PRICE)
  })

  it.each([
    ['runs', undefined],
    ['is gone, and its provider does not say how', 'unknown'],
  ] as const)('counts from the launch where a machine left the queue unseen and %s', async (_, cause) => {
    await anew({ capabilities: { queues: true }, tellsBilling: false })
    const input = inputOf()
    await documentsOf(input).putBilling({ machine: input.handle!.id, fromAtMs: null })
    input.handle!.launchedAtMs -= HOUR_MS
    if (cause !== undefined) place.world.machines[0]!.end(cause)
    const { costMicroUsd } = await settle(input)
    expect(costMicroUsd).toBeGreaterThanOrEqual(PRICE)
  })

  it('is rounded to the steps that its offer is billed in', async () => {
    await anew({ wares: [{ ...SPOT, billedInStepsOfMs: MINUTE_MS, billedAtLeastMs: 90_000 }] })
    const { costMicroUsd } = await settle(inputOf())
    expect(costMicroUsd).toBe(spendOver(2 * MINUTE_MS, PRICE))
  })
})

describe('the settlement of a machine that its provider ends after a while', () => {
  const RUN_MS = 30 * MINUTE_MS

  /** A machine that has run for a while and is gone without a result. */
  async function goneAfter(ranMs: number, { queues }: { queues: boolean }): Promise<Settlement> {
    await anew({ capabilities: { queues } })
    const beganAtMs = place.now() - ranMs
    const limit = queues
      ? { queueMs: QUEUE_MS, runMsMax: RUN_MS }
      : { usableUntilMs: Math.round(beganAtMs + RUN_MS) }
    const { order, handle } = place.launched(place.order({ runner: limit }))
    const [machine] = place.world.machines
    handle.launchedAtMs = machine!.billedFromMs = beganAtMs
    machine!.end('unknown')
    const timing = { ...QUICK, powerOffMs: 0 }
    return settle({ order, handle, timing, windowMs: 0, end: null, drainReason: null, recordSeq: 4 })
  }

  it.each([true, false])('is a planned hand-over when that time was up (queued: %s)', async (queues) => {
    const { end } = await goneAfter(RUN_MS, { queues })
    expect(end).toEqual({ kind: 'stopped', by: 'expired' })
    const [record] = await readRecords(place.store, place.world.machines[0]!.owner.jobId)
    expect(record!.summary).toMatch(
      /^Attempt 1 stopped at the provider's run limit \(a planned hand-over\), /,
    )
  })

  it.each([true, false])('is an interruption when it came long before (queued: %s)', async (queues) => {
    const { end } = await goneAfter(RUN_MS / 2, { queues })
    expect(end).toMatchObject({ kind: 'failed', failure: { class: 'interrupted' } })
  })
})

describe('the settlement with a provider that does not confirm ends', () => {
  const REQUESTED = { capabilities: { ends: 'requested' }, endsAfterMs: HOUR_MS } as const
  const claim = ({ order, handle }: SettleInput): Promise<void> =>
    new AttemptDocuments(place.store, order, place.now).putClaim(handle!.id)
  /** Ordered, started as late as it may be, and never renewed. */
  const FENCE_MS = QUEUE_MS + QUICK.startWithinMs + QUICK.leaseMs + QUICK.drainMs + CLOCK_SLACK_MS

  beforeEach(() => anew(REQUESTED))

  it('holds the job up until the lease of a machine that was at work has certainly expired', async () => {
    const input = inputOf()
    await claim(input)
    await expect(settle(input)).rejects.toMatchObject({
      type: 'transient',
      nonRetryable: false,
      message: expect.stringMatching(/does not confirm that the machine has stopped/),
    })
    expect(place.world.machines[0]).toMatchObject({ isShownGone: true, endedAtMs: undefined })
    place.aheadMs = FENCE_MS - 1_000
    await expect(settle(input)).rejects.toMatchObject({ type: 'transient' })
    place.aheadMs = FENCE_MS + 1_000
    expect(await settle(input)).toMatchObject({ end: { kind: 'failed' } })
  })

  it.each([2 * HOUR_MS, 30 * DAY_MS])(
    'holds the job up while the machine beats, although a clock that was set %i ms ahead says that its lease has expired',
    async (byMs) => {
      const input = { ...inputOf(), timing: { ...QUICK, beatMs: 200 } }
      await claim(input)
      place.aheadMs = FENCE_MS + byMs
      let seq = 0
      const beating = setInterval(() => void place.beat(input.order, { seq: ++seq }), 50)
      await until(() => seq > 1)
      await expect(settle(input)).rejects.toMatchObject({ type: 'transient' })
      clearInterval(beating)
      expect(await settle(input)).toMatchObject({ end: { kind: 'failed' } })
    },
  )

  it.each([2 * HOUR_MS, -2 * HOUR_MS, 30 * DAY_MS])(
    'counts the lease by the time that passed when the clock is set by %i ms meanwhile',
    async (stepMs) => {
      const [input, worker] = [inputOf(), place.verbs()]
      await claim(input)
      await expect(perform(worker, 'settle', input)).rejects.toMatchObject({ type: 'transient' })
      place.aheadMs = stepMs
      await expect(perform(worker, 'settle', input)).rejects.toMatchObject({ type: 'transient' })
      place.passedMs += FENCE_MS + 1_000
      expect(await perform(worker, 'settle', input)).toMatchObject({ end: { kind: 'failed' } })
    },
  )

  it('costs until it was first seen gone, however long the job was held up', async () => {
    const input = inputOf()
    await claim(input)
    await expect(settle(input)).rejects.toMatchObject({ type: 'transient' })
    place.aheadMs = FENCE_MS + 1_000
    expect((await settle(input)).costMicroUsd).toBeLessThan(spendOver(10 * MINUTE_MS, PRICE))
  })

  it('costs as long as its runner has spoken, if that is longer', async () => {
    const input = inputOf()
    await claim(input)
    const finishedAtMs = input.handle!.launchedAtMs + HOUR_MS
    await place.result(input.order, { finishedAtMs })
    expect(await settle(input)).toMatchObject({
      endedAtMs: finishedAtMs,
      costMicroUsd: spendOver(HOUR_MS, PRICE),
    })
  })

  it('is over with the result', async () => {
    const input = inputOf()
    await claim(input)
    const settling = settle(input).catch(() => undefined)
    await until(async () => (await place.store.head(layout.drain(input.order.jobId, 1))) !== undefined)
    await place.result(input.order, { outcome: 'stopped', reason: 'cancelled' })
    await settling
    expect(await settle({ ...input, drainReason: 'cancelled' })).toMatchObject({
      end: { kind: 'stopped', by: 'cancelled' },
    })
  })

  it('is over at once where no runner has claimed the attempt: none will start the workload', async () => {
    expect(await settle(inputOf())).toMatchObject({ end: { kind: 'stopped', by: 'superseded' } })
  })

  it('holds the job up, too, where its machine is found no more', async () => {
    const input = { ...inputOf(), handle: null }
    await documentsOf(input).putOrder(input.order.runner)
    await new AttemptDocuments(place.store, input.order, place.now).putClaim('m-1')
    place.world.machines[0]!.terminate()
    await expect(settle(input)).rejects.toMatchObject({ type: 'transient' })
    place.aheadMs = FENCE_MS + 1_000
    expect(await settle(input)).toMatchObject({ handle: null })
  })
})
