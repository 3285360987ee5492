import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { chosen } from '../support/selection'
import { connectTo, quietWorkers, type TestConnection } from '../support/temporal'
import { runPurchases } from './run'

/** `npm run purchases -- --from 1 --count 1000` runs as many as one likes. */
const SEEDS = Array.from({ length: 40 }, (_, index) => index + 1)
/** Of `npm test`. */
const FEW = [1, 2, 5, 8]

let at: TestConnection
beforeAll(async () => {
  quietWorkers()
  at = await connectTo()
})
afterAll(() => at.close())

describe('purchases in trouble', () => {
  it.concurrent.each(chosen(SEEDS, FEW))(
    'are made once, and are all accounted for: seed %i',
    async (seed) => {
      expect(await runPurchases(at, seed)).toMatchObject({ breaches: [] })
    },
    180_000,
  )
})
