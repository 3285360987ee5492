import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import type { MachineHandle } from '../../../../core/handle'
import { microUsd } from '../../../../core/money/money'
import { MINUTE_MS } from '../../../../core/time/time'
import { patiently } from '../../harness'
import { Ec2Harness, type PaperHarness } from '../harness'

const POOL = { type: 'g5.xlarge', zone: 'us-east-1a' }

let h: PaperHarness
let startMs: number

beforeEach(async () => {
  const changes: [string, number][] = [
    ['0s', 0.3],
    ['20m', 0.5],
    ['59m', 0.4],
  ]
  h = await Ec2Harness.onPaper({
    world: {
      prices: [
        { ...POOL, changes },
        { type: POOL.type, zone: 'us-east-1b', usdPerHour: 9 },
      ],
    },
    config: { staleForMs: 5 * MINUTE_MS },
  })
  startMs = h.clock.nowMs()
  await h.clock.advance(60 * MINUTE_MS)
})
afterEach(() => h.dispose())

function machine(capacityType: 'spot' | 'on-demand'): MachineHandle {
  return {
    backend: 'ec2',
    kind: 'machine',
    id: 'i-0123456789abcdef0',
    attemptId: 'job-a-1',
    data: { region: 'us-east-1' },
    launchedAtMs: startMs,
    realised: { capacityType, type: POOL.type, place: POOL.zone, priceMicroUsdPerHour: microUsd(0.2) },
  }
}
const ask = (handle: MachineHandle, toAtMs?: number) =>
  h.backend.prices!(handle, { fromAtMs: startMs, toAtMs }, patiently())

describe('what a machine of EC2 costs over time', () => {
  it('is the price of its pool for spot, known up to a while ago', async () => {
    expect(await ask(machine('spot'))).toEqual({
      prices: [
        { fromAtMs: startMs, priceMicroUsdPerHour: microUsd(0.3) },
        { fromAtMs: startMs + 20 * MINUTE_MS, priceMicroUsdPerHour: microUsd(0.5) },
        { fromAtMs: startMs + 59 * MINUTE_MS, priceMicroUsdPerHour: microUsd(0.4) },
      ],
      knownToAtMs: h.clock.nowMs() - 5 * MINUTE_MS,
    })
  })

  it('has the disk and the address in addition to the price of spot', async () => {
    const { prices } = await ask({ ...machine('spot'), data: { region: 'us-east-1', beside: '16111' } })
    expect(prices.map(({ priceMicroUsdPerHour: price }) => price)).toEqual([316_111, 516_111, 416_111])
    const fixed = await ask({ ...machine('on-demand'), data: { region: 'us-east-1', beside: '16111' } })
    expect(fixed.prices).toEqual([{ fromAtMs: startMs, priceMicroUsdPerHour: microUsd(0.2) }])
  })

  it('is asked once a minute for all machines of a pool, and anew for one that has ended', async () => {
    await ask(machine('spot'))
    await ask(machine('spot'))
    expect(h.calls('DescribeSpotPriceHistory')).toHaveLength(1)
    await ask(machine('spot'), h.clock.nowMs())
    expect(h.calls('DescribeSpotPriceHistory')).toHaveLength(2)
    await h.clock.advance(MINUTE_MS)
    await ask(machine('spot'))
    expect(h.calls('DescribeSpotPriceHistory')).toHaveLength(3)
  })

  it('is what it was ordered for on demand, whatever spot costs', async () => {
    expect(await ask(machine('on-demand'))).toEqual({
      prices: [{ fromAtMs: startMs, priceMicroUsdPerHour: microUsd(0.2) }],
    })
  })

  it('is nothing to guess where the history does not reach back', async () => {
    const older = { ...machine('spot'), launchedAtMs: startMs - 200 * 24 * 60 * MINUTE_MS }
    const asking = h.backend.prices!(older, { fromAtMs: older.launchedAtMs }, patiently())
    await expect(asking).rejects.toMatchObject({ failure: { class: 'transient' } })
  })
})
