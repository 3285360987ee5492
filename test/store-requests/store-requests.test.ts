import { describe, expect } from '@jest/globals'
import { chunked } from '../kit/harness'
import { itHolds } from '../kit/jest'
import { chosen } from '../support/selection'
import { STORE_REQUESTS } from './harness'

/** `npm run proof -- store-requests` sends a hundred thousand. */
const SEEDS = Array.from({ length: 5_000 }, (_, index) => index + 1)

describe('what the front of the store lets through', () => {
  itHolds('touches nothing outside of the grant: %s', STORE_REQUESTS, {
    cases: chunked(chosen(SEEDS, SEEDS.slice(0, 1_000)), 500),
    jobs: 1,
    limitMs: 300_000,
    also: ({ counts }) => {
      // Without these the sentence above would say nothing.
      for (const method of ['GET', 'PUT', 'DELETE'])
        expect([method, (counts[`let through: ${method}`] ?? 0) > 0]).toEqual([method, true])
    },
  })
})
