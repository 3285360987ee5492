import { describe, expect } from '@jest/globals'
import { itHolds } from '../kit/jest'
import { chosen, IS_SELECTION } from '../support/selection'
import { QUARTERS, YEARS } from './harness'

/** Of `npm test`: the run that is cut short, in the only quarter that it lives there. */
const FEW = YEARS.filter(({ name }) => name === 'cut-short')

describe('four quarters of retraining', () => {
  itHolds('are lived without a breach: %s', QUARTERS, {
    cases: chosen(YEARS, FEW),
    values: { quarters: IS_SELECTION ? 1 : 4 },
    jobs: 1,
    limitMs: 600_000,
    also: ({ quarters, wanted }) => expect(quarters).toHaveLength(wanted),
  })
})
