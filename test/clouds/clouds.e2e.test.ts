import { describe } from '@jest/globals'
import type { FaultKind } from '#small-cloud/world/fault-schema'
import { itHolds } from '../kit/jest'
import { CERTAIN_SEED, lonelyFault, worseFaults } from './alone'
import { kindsOf } from './faults'
import { CLOUDS } from './harness'
import type { ProviderName } from './provider'
import { PROVIDER_NAMES, PROVIDERS } from './providers'
import { seededCloud } from './world'
import { chosen } from '../support/selection'

/** They wait for most of their time. */
const AT_ONCE = 12

/**
 * Of `npm test`: of EC2 one fault of each family (an answer, a pool, a launch, a boot, a machine, a command), of the others what only they
 * have; and a fixed selection of seeds. `npm run proof -- clouds` runs as many as one likes, `npm run test:all` every fault.
 */
const FEW: Record<ProviderName, { kinds: FaultKind[]; seeds: [number[], number[]] }> = {
  ec2: {
    kinds: ['lost-answer', 'no-capacity', 'fleet-error', 'no-boot', 'interruption', 'crash', 'command-lost'],
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

describe('a job on a cloud', () => {
  itHolds('gets over a fault or a mix of everything, the invariants held: %s', CLOUDS, {
    cases: [...ALONE, ...MIXES].map((world) => ({ ...world, again: [] })),
    limitMs: 180_000,
    jobs: AT_ONCE,
  })
})
