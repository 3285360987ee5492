/** Real processes of the built product that die in a launch; `npm run chaos -- processes` kills them in all of their calls (docs/design/chaos.md). */
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { MINUTE_MS } from '../../core/time/time'
import { Product } from '../chaos/stage'
import type { ProviderName } from '../clouds/provider'
import { PROVIDER_NAMES, PROVIDERS } from '../clouds/providers'
import { chosen } from '../support/selection'
import { quietWorkers } from '../support/temporal'
import { FLAWLESS } from './checks'
import { runProcesses, undisturbedProcesses } from './processes'

const LAUNCHES: Record<ProviderName, string> = {
  ec2: 'backend: CreateFleet',
  lambda: 'backend: POST instance-operations/launch',
  modal: 'backend: PUT jobs/*',
}

let product: Product
beforeAll(() => {
  quietWorkers()
  execFileSync(process.execPath, [join(__dirname, '..', '..', 'tools', 'build.mjs')], { stdio: 'ignore' })
  product = new Product()
}, 5 * MINUTE_MS)
afterAll(() => product.remove())

describe("a worker's process that is killed", () => {
  it.concurrent.each(chosen(PROVIDER_NAMES, ['modal']))(
    'in a launch at %s costs a job nothing but time',
    async (name) => {
      const crash = { call: LAUNCHES[name], occurrence: 1, moment: 'in', lateMs: 0, isOfBoth: false } as const
      const plan = { ...undisturbedProcesses(), crashes: [crash] }
      const report = await runProcesses(plan, { provider: PROVIDERS[name], product })
      expect(report).toMatchObject({ verdict: FLAWLESS, struck: [crash] })
    },
    10 * MINUTE_MS,
  )
})
