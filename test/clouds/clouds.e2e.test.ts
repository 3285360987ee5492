import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { connectTo, quietWorkers, type TestConnection } from '../support/temporal'
import { CERTAIN_SEED, lonelyFault, worseFaults } from './alone'
import { FAULT_KINDS } from './faults'
import { liveThrough, type CloudReport } from './run'
import { seededCloud } from './world'
import { chosen } from '../support/selection'

/** A fixed selection; `npm run clouds -- --from 1 --count 300` runs as many as one likes. */
const SEEDS = chosen([1, 3, 5, 13], [5])
/** They wait for most of their time. */
const AT_ONCE = 12

/** One of each family: an answer, a pool, a launch, a boot, a machine, a command; `npm run test:all` meets every fault. */
const KINDS = chosen(FAULT_KINDS, [
  ...(['lost-answer', 'no-capacity', 'fleet-error', 'no-boot'] as const),
  ...(['interruption', 'crash', 'command-lost'] as const),
])
const WORSE = worseFaults()
const ALONE = [...KINDS.map((kind) => lonelyFault(kind, CERTAIN_SEED)), ...chosen(WORSE, WORSE.slice(0, 3))]
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
