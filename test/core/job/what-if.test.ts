import { expect, it } from '@jest/globals'
import { formatWhatIf, type WhatIf } from '../../../core/job/what-if'
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../../core/time/time'

it.each<[text: string, change: WhatIf]>([
  ['price=0', { key: 'price', of: null, adjustment: { by: 'set', value: 0 } }],
  ['price.spot=12.5', { key: 'price', of: 'spot', adjustment: { by: 'set', value: 12_500_000 } }],
  ['price.spot=0.000001', { key: 'price', of: 'spot', adjustment: { by: 'set', value: 1 } }],
  ['price.spot=+0', { key: 'price', of: 'spot', adjustment: { by: 'add', value: 0 } }],
  ['price.spot=-0.1', { key: 'price', of: 'spot', adjustment: { by: 'add', value: -100_000 } }],
  ['price.spot=+0%', { key: 'price', of: 'spot', adjustment: { by: 'factor', value: 1 } }],
  ['price.spot=-50%', { key: 'price', of: 'spot', adjustment: { by: 'factor', value: 0.5 } }],
  ['price.spot=+150%', { key: 'price', of: 'spot', adjustment: { by: 'factor', value: 2.5 } }],
  ['speed.A100=10', { key: 'speed', of: 'A100', factor: 10 }],
  ['speed.A100=1.000001', { key: 'speed', of: 'A100', factor: 1.000_001_4 }],
  ['duration=0s', { key: 'duration', adjustment: { by: 'set', value: 0 } }],
  ['duration=1s', { key: 'duration', adjustment: { by: 'set', value: SECOND_MS } }],
  ['duration=0.001s', { key: 'duration', adjustment: { by: 'set', value: 1 } }],
  ['duration=59m59.999s', { key: 'duration', adjustment: { by: 'set', value: HOUR_MS - 1 } }],
  ['duration=1h', { key: 'duration', adjustment: { by: 'set', value: HOUR_MS } }],
  ['duration=1m', { key: 'duration', adjustment: { by: 'set', value: MINUTE_MS } }],
  ['duration=100h', { key: 'duration', adjustment: { by: 'set', value: 100 * HOUR_MS } }],
  ['duration=-1h30m', { key: 'duration', adjustment: { by: 'add', value: -90 * MINUTE_MS } }],
  ['deadline=48h', { key: 'deadline', adjustment: { by: 'after', value: 2 * DAY_MS } }],
  ['deadline=+2h5m7s', { key: 'deadline', adjustment: { by: 'add', value: 2 * HOUR_MS + 307 * SECOND_MS } }],
  [
    'deadline=2027-01-31T18:00:00.000Z',
    { key: 'deadline', adjustment: { by: 'set', value: Date.UTC(2027, 0, 31, 18) } },
  ],
  ['budget=none', { key: 'budget', adjustment: null }],
  ['backend=-ec2', { key: 'backend', choice: { backend: 'ec2' }, isLeftOut: true }],
  ['interruptible=no', { key: 'interruptible', isInterruptible: false }],
])('a change is written as --what-if takes it: %s', (text, change) => {
  expect(formatWhatIf(change)).toBe(text)
})
