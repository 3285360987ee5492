import { describe, expect, it } from '@jest/globals'
import { costOfOthers, meterEnded } from '../../../activities/money/metering'
import type { Backend } from '../../../backends/backend'
import type { MachineHandle } from '../../../core/handle'
import { spendOver } from '../../../core/money/meter'
import type { Order } from '../../../core/job/plan'
import { HOUR_MS, MINUTE_MS } from '../../../core/time/time'

const LAUNCHED_AT_MS = 1_795_321_363_396
const PRICE = 360_000

const handle: MachineHandle = {
  backend: 'here',
  kind: 'machine',
  id: 'm-1',
  attemptId: 'job-test-1',
  launchedAtMs: LAUNCHED_AT_MS,
  realised: {
    capacityType: 'on-demand',
    type: 'small',
    place: 'a',
    priceMicroUsdPerHour: PRICE,
    billedAtLeastMs: MINUTE_MS,
  },
}
const order = { offers: [], priceMaxMicroUsdPerHour: PRICE } as unknown as Order

describe('an ended machine', () => {
  it.each([
    ['whose end is reported in whole seconds, before its launch', LAUNCHED_AT_MS - 396],
    ['that ended as it was launched', LAUNCHED_AT_MS],
  ])('%s, costs the least that is billed', async (_, toAtMs) => {
    const billed = { handle, order, fromAtMs: LAUNCHED_AT_MS, toAtMs }
    const { signal } = new AbortController()
    const { costMicroUsd } = await meterEnded({} as Backend, billed, { signal })
    expect(costMicroUsd).toBe(spendOver(MINUTE_MS, PRICE))
  })

  it('counts as dear as its order allows where its prices are not told and its pool was not ordered', async () => {
    const dearer = { ...order, priceMaxMicroUsdPerHour: 3 * PRICE }
    const billed = { handle, order: dearer, fromAtMs: LAUNCHED_AT_MS, toAtMs: LAUNCHED_AT_MS + HOUR_MS }
    const backend = { prices: () => Promise.reject(new Error('silent')) } as unknown as Backend
    const asking = { signal: new AbortController().signal, wait: () => Promise.resolve() }
    expect(await meterEnded(backend, billed, asking)).toMatchObject({
      costMicroUsd: 3 * PRICE,
      metering: { basis: 'dearest' },
    })
  })
})

describe('another machine that the provider made of the order', () => {
  it('costs whole steps and the least that is billed, from its launch to its end, or until now', () => {
    const other = (id: string, realised: object): MachineHandle => ({
      ...handle,
      id,
      realised: { ...handle.realised, ...realised },
    })
    const perHour = other('m-2', { billedInStepsOfMs: HOUR_MS })
    const nowMs = LAUNCHED_AT_MS + 61 * MINUTE_MS
    const costOf = (one: MachineHandle, endedAtMs: number | null): number =>
      costOfOthers([{ handle: one, endedAtMs }], { order, handle, nowMs })
    expect(costOf(perHour, LAUNCHED_AT_MS + MINUTE_MS)).toBe(PRICE)
    expect(costOf(perHour, null)).toBe(2 * PRICE)
    expect(costOf(other('m-3', {}), LAUNCHED_AT_MS + 1)).toBe(spendOver(MINUTE_MS, PRICE))
    expect(costOf(handle, null)).toBe(0)
  })
})
