import { describe, expect } from '@jest/globals'
import { itHolds } from '../kit/jest'
import { patient } from '../support/patience'
import { FUZZ, READERS } from './harness'

/** `npm run proof -- fuzz` gives each reader texts for most of a minute. */
const TEXTS = 40

describe('a reader of texts of strangers', () => {
  itHolds('ends soon with what it announces: %s', FUZZ, {
    cases: READERS,
    jobs: 2,
    limitMs: patient(240_000),
    values: { seconds: 60, texts: TEXTS },
    also: ({ texts }) => expect(texts).toBeGreaterThan(TEXTS),
  })
})
