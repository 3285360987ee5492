import { describe, expect } from '@jest/globals'
import { chunked } from '../kit/harness'
import { itHolds } from '../kit/jest'
import { chosen } from '../support/selection'
import { BEATS } from './harness'

/** `npm run proof -- beats` lives a thousand. */
const SEEDS = Array.from({ length: chosen([250], [50])[0]! }, (_, index) => index + 1)

describe('the beats of a runner', () => {
  itHolds('go on, whatever its job prints, names and asks for: %s', BEATS, {
    cases: chunked(SEEDS, 50),
    jobs: 1,
    limitMs: 240_000,
    // Without beats the sentence above would say nothing.
    also: ({ longestGapMs }) => expect(longestGapMs).toBeGreaterThan(0),
  })
})
