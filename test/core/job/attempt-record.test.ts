import { describe, expect, it } from '@jest/globals'
import { stopReason } from '../../../core/job/attempt-record'

describe('the reason why an attempt stopped', () => {
  it('is the run limit of the provider where the time of a machine was up that no reservation held', () => {
    expect(stopReason('expired', { capacityType: 'on-demand' })).toBe('run-limit')
    expect(stopReason('expired', { capacityType: 'spot' })).toBe('run-limit')
    expect(stopReason('expired', { capacityType: 'reserved' })).toBe('expired')
    expect(stopReason('lease', { capacityType: 'on-demand' })).toBe('lease')
  })
})
