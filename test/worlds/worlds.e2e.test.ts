import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { connectTo, quietWorkers, type TestConnection } from '../support/temporal'
import { runWorld } from './run'
import { chosen } from '../support/selection'

/** A fixed selection; `npm run worlds -- --from 1 --count 500` runs as many as one likes. */
const SEEDS = Array.from({ length: 12 }, (_, index) => index + 1)

/** Of `npm test`. In the last two, an order that is sent twice would make two machines. */
const FEW = [1, 2, 5, 9]

let at: TestConnection

beforeAll(async () => {
  quietWorkers()
  at = await connectTo()
})
afterAll(() => at.close())

describe('a seeded world', () => {
  it.concurrent.each(chosen(SEEDS, FEW))(
    'breaks no invariant: seed %i',
    async (seed) => {
      expect(await runWorld(at, seed)).toMatchObject({ breaches: [] })
    },
    120_000,
  )
})
