import { describe, expect, it } from '@jest/globals'
import {
  age,
  attemptReason,
  bytes,
  clip,
  lossInWords,
  placementInWords,
  plural,
  progressInWords,
  usd,
} from '../../../cli/kit/words'
import { joinView } from '../../../client/job/view'
import { machineOf, NOW, statusOf } from '../../client/world'

describe('words', () => {
  const UNKNOWN = {
    step: null,
    stepsTotal: null,
    loss: null,
    percent: null,
    epoch: null,
    epochsTotal: null,
    batch: null,
    batchesTotal: null,
  }

  it.each([
    [{ loss: 1 }, '-'],
    [{ step: 480 }, 'step 480'],
    [{ step: 480, stepsTotal: 1500, percent: 32 }, '480/1,500 (32 %)'],
    [{ step: 12_345, stepsTotal: 500_000, percent: 2.4 }, '12,345/500,000 (2.4 %)'],
    // Not done before it is.
    [{ step: 1499, stepsTotal: 1500, percent: 99.9 }, '1,499/1,500 (99 %)'],
    [{ step: 7, epoch: 1, epochsTotal: 4, percent: 5.96 }, 'step 7 (5.9 %)'],
    [{ epoch: 2, epochsTotal: 5, batch: 40, batchesTotal: 100, percent: 28 }, 'epoch 2/5 (28 %)'],
    [{ epoch: 0, batch: 40, batchesTotal: 1000 }, 'epoch 0, 40/1,000'],
    [{ epoch: 1.23456 }, 'epoch 1.23'],
    [{ batch: 40, batchesTotal: 100 }, '40/100'],
    [{ batch: 40 }, '40'],
  ])('progress %j', (progress, words) => {
    expect(progressInWords({ ...UNKNOWN, ...progress })).toBe(words)
  })

  it('are empty for unknown progress', () => {
    expect(progressInWords(null)).toBe('-')
  })

  it.each([
    [2.373574, '2.374'],
    [0.1234567, '0.1235'],
    [2, '2'],
    [1.7872662e-6, '0.000001787'],
    [6738.515625, '6739'],
  ])('a loss of %d', (loss, words) => {
    expect(lossInWords(loss)).toBe(words)
  })

  it('tell what was asked for, and what was got where that is another kind', () => {
    const realised = machineOf(1).realised
    const asked = { backend: 'ec2', capacityType: 'spot' } as const
    expect(placementInWords({ placement: null })).toBe('-')
    expect(placementInWords({ placement: { ...asked, realised: null } })).toBe('ec2 spot')
    expect(placementInWords({ placement: { ...asked, realised } })).toBe('ec2 spot')
    const dearer = { ...realised, capacityType: 'on-demand' } as const
    expect(placementInWords({ placement: { ...asked, realised: dearer } })).toBe('ec2 spot > on-demand')
  })

  it("call the end of a machine at its provider's run limit a planned hand-over", () => {
    expect(attemptReason({ state: 'stopped', reason: 'run-limit' })).toBe('run limit: planned hand-over')
  })

  it('say the reason of an attempt without its state', () => {
    const [attempt] = joinView({
      status: statusOf(),
      spec: undefined,
      newest: undefined,
      endedAtMs: undefined,
      nowMs: NOW,
      isLive: true,
      checkpoints: [],
      recoveries: [],
      uiUrl: undefined,
    }).attempts
    expect(attemptReason({ ...attempt!, state: 'interrupted', reason: 'interrupted: Taken back.' })).toBe(
      'Taken back.',
    )
    expect(attemptReason({ ...attempt!, state: 'failed', reason: 'workload: Exit code 1.' })).toBe(
      'workload: Exit code 1.',
    )
  })

  it('are short', () => {
    expect(age(NOW - 3_700_000, NOW)).toBe('1h')
    expect(clip('one\n  two three', 8)).toBe('one two…')
    expect(plural(1, 'step')).toBe('1 step')
    expect(plural(2, 'is', 'are')).toBe('2 are')
    expect(usd(null)).toBe('-')
    expect([0, 999, 1_500, 2_500_000_000].map(bytes)).toEqual(['0 B', '999 B', '1.5 kB', '2.5 GB'])
  })
})
