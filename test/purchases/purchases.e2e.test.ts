import { describe } from '@jest/globals'
import { seeded } from '../kit/harness'
import { itHolds } from '../kit/jest'
import { chosen } from '../support/selection'
import { PURCHASES } from './harness'

/** `npm run proof -- purchases` runs as many as one likes. */
const SEEDS = Array.from({ length: 40 }, (_, index) => index + 1)
/** Of `npm test`. */
const FEW = [1, 2, 5, 8]

describe('purchases in trouble', () => {
  itHolds('are made once, and are all accounted for: %s', PURCHASES, {
    cases: seeded(chosen(SEEDS, FEW), () => ({})),
    limitMs: 180_000,
  })
})
