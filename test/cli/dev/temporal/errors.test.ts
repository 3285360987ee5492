import { expect, it } from '@jest/globals'
import { messageOf } from '../../../../cli/dev/temporal/errors'

it.each([
  [
    new Error('fetch failed', { cause: new Error('connect ECONNREFUSED') }),
    'fetch failed: connect ECONNREFUSED',
  ],
  [new Error('fetch failed', { cause: 'unknown' }), 'fetch failed'],
  [new Error('no space'), 'no space'],
  ['a text', 'a text'],
])('the message of %s is %j', (error, message) => {
  expect(messageOf(error)).toBe(message)
})
