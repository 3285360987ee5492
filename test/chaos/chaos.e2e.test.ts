import { existsSync } from 'node:fs'
import { describe, expect } from '@jest/globals'
import { itHolds } from '../kit/jest'
import { chosen } from '../support/selection'
import { CHAOS } from './harness'
import { paceOf, type Plan, type Strike } from './plan'

type Chosen = Pick<Strike, 'fault'> & Partial<Strike>

const at = (step: number): Pick<Strike, 'moment'> => ({ moment: { on: 'step', step } })

/** Every fault, each where it is sure to find something; `npm run proof -- chaos` draws any number of others (docs/design/chaos.md). */
const CHOSEN: Chosen[][] = [
  [
    { fault: 'blackout', ...at(10) },
    { fault: 'kill-runner', process: 'runner', ...at(45) },
  ],
  [
    { fault: 'full-machines', ms: 2_000, ...at(5) },
    { fault: 'kill-backend-worker', ...at(20) },
    { fault: 'server-outage', ms: 12_000, ...at(35) },
  ],
  [
    { fault: 'kill-orchestrator', ...at(5) },
    { fault: 'kill-workload', ...at(20) },
    { fault: 'notice', ms: 4_000, ...at(40) },
  ],
  [
    { fault: 'disturb-provider', disturbance: { verb: 'launch', kind: 'lost-answer', ms: 300 } },
    { fault: 'kill-server', ms: 500, ...at(15) },
    { fault: 'terminate-child', ...at(35) },
  ],
  [
    { fault: 'full-store', ms: 3_000, ...at(10) },
    { fault: 'freeze-machine', ms: 2_000, ...at(30) },
    { fault: 'kill-machine', ...at(45) },
  ],
  [{ fault: 'missing-store', ms: 3_000, ...at(20) }],
]

/** Of `npm test`: machines, workers, the server and the store are each struck once. */
const STRUCK = chosen(CHOSEN, [CHOSEN[1]!, CHOSEN[4]!])
/** Machines are looked at through `/proc`. */
const onLinux = existsSync('/proc/self/environ') ? describe : describe.skip

onLinux('a deployment of real processes that faults strike', () => {
  itHolds('breaks no invariant: %s', CHAOS, {
    cases: STRUCK.map((strikes, index) => {
      const name = strikes.map(({ fault }) => fault).join(', ')
      return { name, again: [], plan: planOf(strikes, index) }
    }),
    limitMs: 300_000,
    // A fault that finds nothing to strike tests nothing.
    also: ({ plan, landed, leftOut }) =>
      expect([...landed, ...leftOut].sort()).toEqual(plan.strikes.map(({ fault }) => fault).sort()),
  })
})

function planOf(chosen: Chosen[], index: number): Plan {
  const strikes = chosen.map((strike): Strike => ({
    job: 0,
    moment: { on: 'now' },
    afterMs: 0,
    ms: 0,
    ...strike,
  }))
  const job = { style: 'folders', saveEvery: 4, retries: { failures: 3, interruptions: 5 } } as const
  return { seed: index, jobs: [job], strikes, ...paceOf(strikes) }
}
