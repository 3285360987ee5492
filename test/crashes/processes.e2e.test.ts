/** Real processes of the built product that die in a launch; `npm run proof -- processes` kills them in all of their calls (docs/design/chaos.md). */
import { describe, expect } from '@jest/globals'
import { MINUTE_MS } from '../../core/time/time'
import type { ProviderName } from '../clouds/provider'
import { PROVIDER_NAMES, PROVIDERS } from '../clouds/providers'
import { itHolds } from '../kit/jest'
import { chosen } from '../support/selection'
import { BUYING } from './harnesses/buying'
import { PROCESSES } from './harnesses/processes'
import { undisturbedProcesses } from './processes'

const LAUNCHES: Record<ProviderName, string> = {
  ec2: 'backend: CreateFleet',
  lambda: 'backend: POST instance-operations/launch',
  modal: 'backend: PUT jobs/*',
}

describe("a worker's process that is killed", () => {
  itHolds('in a launch at %s costs a job nothing but time', PROCESSES, {
    cases: chosen(PROVIDER_NAMES, ['modal']).map((name) => {
      const crash = { call: LAUNCHES[name], occurrence: 1, moment: 'in', lateMs: 0, isOfBoth: false } as const
      return {
        name,
        again: [],
        provider: PROVIDERS[name],
        plan: { ...undisturbedProcesses(), crashes: [crash] },
      }
    }),
    limitMs: 10 * MINUTE_MS,
    also: ({ struck, plan }) => expect(struck).toEqual(plan.crashes),
  })
})

describe("a worker's process that is killed while it buys", () => {
  itHolds('leaves one purchase, within its limit: %s', BUYING, {
    cases: [
      { name: 'in the purchase, alone', isServerKilled: false },
      { name: 'in the purchase, with the Temporal server', isServerKilled: true },
    ].map(({ name, isServerKilled }) => {
      const call = 'backend: PurchaseCapacityBlock'
      const crash = { call, occurrence: 1, moment: 'in', lateMs: 300, isOfBoth: false } as const
      return { name, again: [], plan: { ...undisturbedProcesses(), name, crashes: [crash], isServerKilled } }
    }),
    limitMs: 10 * MINUTE_MS,
    also: ({ state }) => expect(state).not.toMatch(/none died/),
  })
})
