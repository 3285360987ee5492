import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import type { FaultKind } from '#small-cloud/world/fault-schema'
import { connectTo, quietWorkers, type TestConnection } from '../support/temporal'
import { CERTAIN_SEED, lonelyFault, worseFaults } from './alone'
import { kindsOf } from './faults'
import type { ProviderName } from './provider'
import { PROVIDER_NAMES, PROVIDERS } from './providers'
import { liveThrough, type CloudReport } from './run'
import { seededCloud } from './world'
import { chosen } from '../support/selection'

/** They wait for most of their time. */
const AT_ONCE = 12

/**
 * Of `npm test`: of EC2 one fault of each family (an answer, a pool, a launch, a boot, a machine, a command), of the others what only they
 * have; and a fixed selection of seeds. `npm run clouds -- --from 1 --count 300` runs as many as one likes, `npm run test:all` every fault.
 */
const FEW: Record<ProviderName, { kinds: FaultKind[]; seeds: [number[], number[]] }> = {
  ec2: {
    kinds: [
      ...(['lost-answer', 'no-capacity', 'fleet-error', 'no-boot'] as const),
      ...(['interruption', 'crash', 'command-lost'] as const),
    ],
    seeds: [[1, 3, 5, 13], [5]],
  },
  lambda: { kinds: ['lost-answer', 'unhealthy'], seeds: [[2, 34, 35], [35]] },
  modal: { kinds: ['queued', 'interruption'], seeds: [[5, 30, 57], [30]] },
}

const WORSE = worseFaults()
const ALONE = [
  ...PROVIDER_NAMES.flatMap((name) =>
    chosen(kindsOf(PROVIDERS[name].faults), FEW[name].kinds).map((kind) =>
      lonelyFault(kind, CERTAIN_SEED, PROVIDERS[name]),
    ),
  ),
  ...chosen(WORSE, WORSE.slice(0, 3)),
]
const MIXES = PROVIDER_NAMES.flatMap((name) =>
  chosen(...FEW[name].seeds).map((seed) => seededCloud(seed, PROVIDERS[name])),
)

let at: TestConnection
let reports: Map<string, Promise<CloudReport>>

beforeAll(async () => {
  quietWorkers()
  at = await connectTo()
  reports = liveThrough(at, [...ALONE, ...MIXES], AT_ONCE)
})
afterAll(() => at.close())

/** What broke in a cloud, with its story. */
async function brokenIn(name: string): Promise<CloudReport | undefined> {
  const report = await reports.get(name)!
  return report.breaches.length === 0 ? undefined : report
}

describe('a job on a cloud', () => {
  it.each(ALONE.map(({ name }) => name))(
    'gets over a fault, the invariants held: %s',
    async (name) => {
      expect(await brokenIn(name)).toBeUndefined()
    },
    180_000,
  )

  it.each(MIXES.map(({ name }) => name))(
    'gets through a mix of everything, the invariants held: %s',
    async (name) => {
      expect(await brokenIn(name)).toBeUndefined()
    },
    180_000,
  )
})
