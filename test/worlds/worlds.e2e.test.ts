import { describe } from '@jest/globals'
import { seeded } from '../kit/harness'
import { itHolds } from '../kit/jest'
import { chosen } from '../support/selection'
import { WORLDS } from './harness'
import { seededWorld } from './world'

/** `npm run proof -- worlds` runs as many as one likes. */
const SEEDS = Array.from({ length: 12 }, (_, index) => index + 1)
/** Of `npm test`. In the last two, an order that is sent twice would make two machines. */
const FEW = [1, 2, 5, 9]

describe('a seeded world', () => {
  itHolds('breaks no invariant: %s', WORLDS, {
    cases: seeded(chosen(SEEDS, FEW), seededWorld),
    limitMs: 120_000,
  })
})
