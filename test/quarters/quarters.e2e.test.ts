import { beforeAll, describe, expect, it } from '@jest/globals'
import { chosen } from '../support/selection'
import { quietWorkers } from '../support/temporal'
import { runYear } from './run'
import { SCENARIOS } from './scenarios'

const NAMES = SCENARIOS.map(({ name }) => name)
/** Of `npm test`: the run that is cut short, in the only quarter that it lives there. */
const FEW = ['cut-short']
const QUARTERS = chosen([4], [1])[0]!

beforeAll(quietWorkers)

describe('four quarters of retraining', () => {
  it.each(chosen(NAMES, FEW))(
    'are lived without a breach: %s',
    async (name) => {
      const scenario = SCENARIOS.find((one) => one.name === name)!
      const { quarters, breaches } = await runYear(scenario, QUARTERS)
      expect([...quarters.flatMap((one) => one.breaches), ...breaches]).toEqual([])
      expect(quarters).toHaveLength(Math.min(QUARTERS, scenario.quarters ?? 4))
    },
    600_000,
  )
})
