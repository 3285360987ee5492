import { describe, expect, it } from '@jest/globals'
import { spendOver } from '../../../core/money/meter'
import { microUsd } from '../../../core/money/money'
import { groupRejections, rejectionsInWords } from '../../../core/job/plan'
import { HOUR_MS, MINUTE_MS } from '../../../core/time/time'
import { outlook } from '../../../planner/plan/plan'
import { NOW_MS, SPEC, expected, offer, plan, rejection } from '../wishes'

describe('a job that gives its duration', () => {
  const spec = { ...SPEC, durationMs: 8 * HOUR_MS }
  const first = { spec, isFirst: true }
  const cheap = offer({ type: 'g6.xlarge', priceMicroUsdPerHour: microUsd(0.8048) })

  it('is not begun where the cheapest place costs more than its budget, with the arithmetic', () => {
    const dear = offer({ type: 'big', priceMicroUsdPerHour: microUsd(3) })
    const none = plan([dear, cheap], { ...first, remainingMicroUsd: microUsd(5) })
    expect(none.placements).toEqual([])
    expect(outlook(none)).toBe('never')
    expect(rejectionsInWords(groupRejections(none.rejections))).toEqual([
      'here/on-demand/big/a, here/on-demand/g6.xlarge/a: 8h 7m of g6.xlarge at $0.80, plus 2m to save and stop, cost about $6.56; the budget is $5.00',
    ])
    // What it can afford is worth waiting for.
    expect(
      outlook(
        plan([dear, { ...cheap, availability: 'unavailable' }], { ...first, remainingMicroUsd: microUsd(7) }),
      ),
    ).toBe('wait')
  })

  it('learns what moving its data adds to the machine, and that expected interruptions are in it', () => {
    const transfer = {
      storeRegion: 'us-east-1',
      bytesPerSecond: 50e6,
      upMicroUsdPerGb: microUsd(0.02),
      downMicroUsdPerGb: microUsd(0.02),
    }
    const far = offer({ region: 'eu-west-1', transfer })
    const sized = { ...spec, checkpoint: { everyMs: HOUR_MS, sizeBytes: 10e9 } }
    const wish = { spec: sized, isFirst: true }
    // Nine checkpoints of 10 GB go up, in addition to the machine and two minutes of it.
    const costMicroUsd = expected(far, wish).costMicroUsd + spendOver(2 * MINUTE_MS, microUsd(1))
    expect(costMicroUsd).toBeGreaterThan(8_033_334 + microUsd(1.8))
    expect(rejection(far, { ...wish, remainingMicroUsd: costMicroUsd - 1 })).toMatchObject({
      costMicroUsd,
      reason: expect.stringMatching(
        /^8h \d+m of small at \$1\.00, plus 2m to save and stop and \$1\.80 for moving its data, cost about \$10\.0\d; the budget is \$10\.0\d$/,
      ),
    })
    expect(rejection(far, { ...wish, remainingMicroUsd: costMicroUsd })).toBeUndefined()
    const spot = offer({ capacityType: 'spot', interruptionsPerHour: 1 })
    expect(rejection(spot, { ...first, remainingMicroUsd: microUsd(5) })?.reason).toMatch(
      /^1\dh \d+m \(expected interruptions included\) of small at \$1\.00, /,
    )
  })

  it('is not begun where the provider bills at least more than its budget', () => {
    const daily = offer({ billedAtLeastMs: 24 * HOUR_MS })
    expect(rejection(daily, { ...first, remainingMicroUsd: microUsd(20) })?.costMicroUsd).toBe(
      microUsd(24) + spendOver(2 * MINUTE_MS, microUsd(1)),
    )
  })

  it('is begun if it fits, and continues whatever is left', () => {
    expect(plan([cheap], { ...first, remainingMicroUsd: microUsd(6.6) }).placements).toHaveLength(1)
    expect(plan([cheap], { spec, remainingMicroUsd: microUsd(5) }).placements).toHaveLength(1)
  })

  it('is not begun where it cannot be done by its deadline', () => {
    expect(rejection(cheap, { ...first, deadlineAtMs: NOW_MS + 8 * HOUR_MS + 119_000 })?.reason).toBe(
      'it needs 8h, plus 2m to save and stop, but the deadline is in 8h 1m',
    )
    const deadlineAtMs = NOW_MS + 8 * HOUR_MS + 120_000
    expect(rejection(cheap, { ...first, deadlineAtMs })).toBeUndefined()
    expect(rejection(cheap, { ...first, deadlineAtMs, startsInMs: 1_000 })?.why).toBe('unfit')
    // A later attempt has less to do.
    expect(rejection(cheap, { spec, deadlineAtMs: NOW_MS + HOUR_MS })).toBeUndefined()
  })

  it('is rejected once for all, including those that get no useful time from the budget', () => {
    const offers = [offer({ place: 'a' }), offer({ type: 'huge', priceMicroUsdPerHour: microUsd(100) })]
    const spec = { ...SPEC, durationMs: 8 * HOUR_MS }
    const { rejections } = plan(offers, { spec, isFirst: true, remainingMicroUsd: microUsd(0.5) })
    expect(rejectionsInWords(groupRejections(rejections))).toEqual([
      expect.stringMatching(/^here\/.*huge.*: 8h .*the budget is \$0\.50$/),
    ])
  })
})
