import { describe, expect, it } from '@jest/globals'
import {
  age,
  attemptReason,
  bytes,
  clip,
  placementInWords,
  plural,
  progressInWords,
  usd,
} from '../../cli/words'
import { joinView } from '../../client/view'
import { machineOf, NOW, statusOf } from '../client/world'

describe('words', () => {
  it.each([
    [null, '-'],
    [{ step: null, stepsTotal: null, loss: 1, percent: null }, '-'],
    [{ step: 480, stepsTotal: null, loss: null, percent: null }, 'step 480'],
    [{ step: 480, stepsTotal: 1500, loss: null, percent: 32 }, '480/1500 (32 %)'],
    // Not done before it is.
    [{ step: 1499, stepsTotal: 1500, loss: null, percent: 99.9 }, '1499/1500 (99 %)'],
  ])('progress %j', (progress, words) => {
    expect(progressInWords(progress)).toBe(words)
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
