import { describe, expect, it } from '@jest/globals'
import type { JobSpec } from '../../core/job'
import { microUsd } from '../../core/money'
import { HOUR_MS, MINUTE_MS } from '../../core/time'
import { ASSUMED_SPOT_INTERRUPTIONS_PER_HOUR, RECOVERY_MS } from '../../planner/assumptions'
import { estimate, withTransfer } from '../../planner/price'
import { offer, SPEC } from './wishes'

const job = (changes: Partial<JobSpec>): JobSpec => ({ ...SPEC, ...changes })
const spot = (interruptionsPerHour?: number) =>
  offer({ capacityType: 'spot', ...(interruptionsPerHour === undefined ? {} : { interruptionsPerHour }) })

describe('the expected time of a job', () => {
  it('is its duration plus, for each interruption, a recovery and half an interval of checkpoints', () => {
    const spec = job({ durationMs: 4 * HOUR_MS, checkpoint: { everyMs: 30 * MINUTE_MS } })
    expect(estimate(spot(0.5), spec)).toEqual({
      interruptions: 2,
      durationMs: 4 * HOUR_MS + 2 * (RECOVERY_MS + 15 * MINUTE_MS),
      costMicroUsd: microUsd(4.9),
    })
  })

  it('counts the usual interruptions where the provider tells none, and none of what is not taken back', () => {
    const spec = job({ durationMs: 10 * HOUR_MS })
    expect(estimate(spot(), spec).interruptions).toBe(10 * ASSUMED_SPOT_INTERRUPTIONS_PER_HOUR)
    expect(estimate(offer({ interruptionsPerHour: 3 }), spec).interruptions).toBe(0)
  })

  it('adds one recovery for each change of machines that a run limit forces', () => {
    const limited = offer({ runMsMax: 24 * HOUR_MS })
    const lasting = (hours: number) => estimate(limited, job({ durationMs: hours * HOUR_MS })).durationMs
    expect([23, 24, 25, 48, 49].map((hours) => lasting(hours) - hours * HOUR_MS)).toEqual(
      [0, 0, 1, 1, 2].map((moves) => moves * RECOVERY_MS),
    )
  })
})

describe('the expected cost of a job', () => {
  it('is no less than what the provider bills at least', () => {
    const hourly = offer({ billedAtLeastMs: HOUR_MS })
    expect(estimate(hourly, job({ durationMs: 6 * MINUTE_MS })).costMicroUsd).toBe(microUsd(1))
    expect(estimate(hourly, job({ durationMs: 2 * HOUR_MS })).costMicroUsd).toBe(microUsd(2))
    expect(estimate(offer(), job({ durationMs: 6 * MINUTE_MS })).costMicroUsd).toBe(microUsd(0.1))
  })

  it('of a reservation is extra only as far as it exceeds what is billed while idle', () => {
    const held = (idle: number) =>
      offer({
        ...{ capacityType: 'reserved', reservationId: 'r-1', priceMicroUsdPerHour: microUsd(5) },
        reservation: { free: 1, total: 1, idleMicroUsdPerHour: microUsd(idle) },
      })
    const extra = (idle: number) => estimate(held(idle), job({ durationMs: 2 * HOUR_MS })).extraCostMicroUsd
    expect([0, 4, 5, 6].map(extra)).toEqual([10, 2, 0, 0].map(microUsd))
    expect(estimate(offer(), SPEC)).not.toHaveProperty('extraCostMicroUsd')
  })

  it('with a transfer has its price, and the machine while it waits for it', () => {
    const transfer = { costMicroUsd: microUsd(3), durationMs: HOUR_MS / 2 }
    const plain = { durationMs: HOUR_MS, costMicroUsd: microUsd(5), interruptions: 1 }
    const priceMicroUsdPerHour = microUsd(5)
    expect(withTransfer(plain, { priceMicroUsdPerHour }, transfer)).toEqual({
      ...{ durationMs: 1.5 * HOUR_MS, costMicroUsd: microUsd(10.5), interruptions: 1 },
    })
    // The waiting is billed either way, the transfer is not.
    const reservation = { free: 1, total: 1, idleMicroUsdPerHour: microUsd(4) }
    const held = { ...plain, extraCostMicroUsd: microUsd(1) }
    expect(withTransfer(held, { priceMicroUsdPerHour, reservation }, transfer)).toMatchObject({
      ...{ costMicroUsd: microUsd(10.5), extraCostMicroUsd: microUsd(4.5) },
    })
    const dearer = { ...reservation, idleMicroUsdPerHour: microUsd(9) }
    expect(
      withTransfer(held, { priceMicroUsdPerHour, reservation: dearer }, transfer).extraCostMicroUsd,
    ).toBe(microUsd(4))
  })
})
