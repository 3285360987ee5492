import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { testServer } from '../support/temporal'
import { FAULTS, paceOf, type Plan, type Strike } from './plan'
import { runChaos } from './run'
import { Product } from './stage'
import { chosen } from '../support/selection'

type Chosen = Pick<Strike, 'fault'> & Partial<Strike>

const at = (step: number): Pick<Strike, 'moment'> => ({ moment: { on: 'step', step } })

/** Every fault, each where it is sure to find something; `npm run chaos` draws any number of others (docs/design/chaos.md). */
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
]

/** Of `npm test`: machines, workers, the server and the store are each struck once. */
const STRUCK = chosen(CHOSEN, [CHOSEN[1]!, CHOSEN[4]!])
const WISHED = FAULTS.filter((fault) => STRUCK.flat().some((strike) => strike.fault === fault))

const TOOLS = join(__dirname, '..', '..', 'tools')

/** Machines are looked at through `/proc`. */
const onLinux = existsSync('/proc/self/environ') ? describe : describe.skip

onLinux('a deployment of real processes that faults strike', () => {
  it('breaks no invariant', async () => {
    execFileSync(process.execPath, [join(TOOLS, 'build.mjs')], { stdio: 'ignore' })
    const product = new Product()
    try {
      const options = { product, executable: testServer().executable }
      // All at once: most of a run is waiting for somebody to be missed.
      const reports = await Promise.all(
        STRUCK.map((chosen, index) => runChaos(planOf(chosen, index), options)),
      )
      expect(reports.filter(({ breaches }) => breaches.length > 0)).toEqual([])
      const leftOut = reports.flatMap((report) => report.leftOut)
      // A fault that finds nothing to strike tests nothing.
      expect(reports.flatMap(({ landed }) => landed).sort()).toEqual(
        WISHED.filter((fault) => !leftOut.some((each) => each === fault)).sort(),
      )
    } finally {
      product.remove()
    }
  }, 300_000)
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
