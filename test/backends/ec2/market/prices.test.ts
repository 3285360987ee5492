import { beforeEach, describe, expect, it } from '@jest/globals'
import type { MachineHandle } from '../../../../core/handle'
import { microUsd } from '../../../../core/money/money'
import { MINUTE_MS } from '../../../../core/time/time'
import { patiently } from '../../harness'
import { Ec2Harness } from '../harness'

const START_MS = Date.UTC(2026, 10, 21)
const POOL = { type: 'g5.xlarge', zone: 'us-east-1a' }

let nowMs: number
let h: Ec2Harness

beforeEach(() => {
  nowMs = START_MS + 60 * MINUTE_MS
  h = new Ec2Harness({ staleForMs: 5 * MINUTE_MS }, { clock: () => nowMs })
  const at = (minutes: number, usdPerHour: string) => ({
    ...POOL,
    atMs: START_MS + minutes * MINUTE_MS,
    usdPerHour,
  })
  h.aws.spotHistory = [at(-30, '0.3'), at(20, '0.5'), at(59, '0.4'), { ...at(30, '9'), zone: 'us-east-1b' }]
})

function machine(capacityType: 'spot' | 'on-demand'): MachineHandle {
  return {
    ...{
      backend: 'ec2',
      kind: 'machine',
      id: 'i-0123456789abcdef0',
      attemptId: 'job-a-1',
      launchedAtMs: START_MS,
    },
    realised: { capacityType, type: POOL.type, place: POOL.zone, priceMicroUsdPerHour: microUsd(0.2) },
  }
}
const ask = (handle: MachineHandle, toAtMs?: number) =>
  h.backend.prices!(handle, { fromAtMs: START_MS, ...(toAtMs === undefined ? {} : { toAtMs }) }, patiently())

describe('what a machine of EC2 costs over time', () => {
  it('is the price of its pool for spot, known up to a while ago', async () => {
    expect(await ask(machine('spot'))).toEqual({
      prices: [
        { fromAtMs: START_MS, priceMicroUsdPerHour: microUsd(0.3) },
        { fromAtMs: START_MS + 20 * MINUTE_MS, priceMicroUsdPerHour: microUsd(0.5) },
        { fromAtMs: START_MS + 59 * MINUTE_MS, priceMicroUsdPerHour: microUsd(0.4) },
      ],
      knownToAtMs: nowMs - 5 * MINUTE_MS,
    })
  })

  it('has the disk and the address in addition to the price of spot', async () => {
    const { prices } = await ask({ ...machine('spot'), data: { beside: '16111' } })
    expect(prices.map(({ priceMicroUsdPerHour: price }) => price)).toEqual([316_111, 516_111, 416_111])
    const fixed = await ask({ ...machine('on-demand'), data: { beside: '16111' } })
    expect(fixed.prices).toEqual([{ fromAtMs: START_MS, priceMicroUsdPerHour: microUsd(0.2) }])
  })

  it('is asked once a minute for all machines of a pool, and anew for one that has ended', async () => {
    await ask(machine('spot'))
    await ask(machine('spot'))
    expect(h.aws.countOf('spotPriceHistory')).toBe(1)
    await ask(machine('spot'), nowMs)
    expect(h.aws.countOf('spotPriceHistory')).toBe(2)
    nowMs += MINUTE_MS
    await ask(machine('spot'))
    expect(h.aws.countOf('spotPriceHistory')).toBe(3)
  })

  it('is what it was ordered for on demand, whatever spot costs', async () => {
    expect(await ask(machine('on-demand'))).toEqual({
      prices: [{ fromAtMs: START_MS, priceMicroUsdPerHour: microUsd(0.2) }],
    })
  })

  it('is nothing to guess where the history does not reach back', async () => {
    h.aws.spotHistory = h.aws.spotHistory.slice(1)
    await expect(ask(machine('spot'))).rejects.toMatchObject({ failure: { class: 'transient' } })
  })
})
