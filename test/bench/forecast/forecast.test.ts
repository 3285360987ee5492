import { describe, expect, it } from '@jest/globals'
import { judge } from './judge'

/** A selection of `npm run bench -- --only forecast`, seeded. */
describe('the forecast of jobs whose speed, starts, interruptions and prices are hidden', () => {
  const verdicts = judge({ from: 1, count: 300 })

  it.each(verdicts.map((verdict) => [verdict.class, verdict] as const))(
    'holds nine of ten final costs of %s capacity, with narrower ranges than the class average',
    (_, { costCoverage, score, classScore }) => {
      expect(costCoverage).toBeGreaterThanOrEqual(0.85)
      expect(costCoverage).toBeLessThanOrEqual(0.95)
      expect(score).toBeLessThan(classScore)
    },
  )
})
