import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { connectTo, quietWorkers, type TestConnection } from '../support/temporal'
import { CERTAIN_SEED, lonelyFault, worseFaults } from './alone'
import { FAULT_KINDS } from './faults'
import { liveThrough, type CloudReport } from './run'
import { seededCloud } from './world'

/** A fixed selection; `npm run clouds -- --from 1 --count 300` runs as many as one likes. */
const SEEDS = [1, 3, 5, 13]
/** They wait for most of their time. */
const AT_ONCE = 12

const ALONE = [...FAULT_KINDS.map((kind) => lonelyFault(kind, CERTAIN_SEED)), ...worseFaults()]
const MIXES = SEEDS.map(seededCloud)

let at: TestConnection
let reports: Map<string, Promise<CloudReport>>

beforeAll(async () => {
  quietWorkers()
  at = await connectTo()
  reports = liveThrough(at, [...ALONE, ...MIXES], AT_ONCE)
})
afterAll(() => at.close())

describe('a job on a cloud', () => {
  it.each(ALONE.map(({ name }) => name))(
    'gets over a fault, the invariants held: %s',
    async (name) => {
      expect(await reports.get(name)).toMatchObject({ breaches: [] })
    },
    180_000,
  )

  it.each(MIXES.map(({ name }) => name))(
    'gets through a mix of everything, the invariants held: %s',
    async (name) => {
      expect(await reports.get(name)).toMatchObject({ breaches: [] })
    },
    180_000,
  )
})
