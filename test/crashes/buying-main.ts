import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { Product } from '../chaos/stage'
import { inLanes, withServer } from '../kit/runs'
import { readOptions } from '../support/options'
import { buyingPlans, runBuying, type BuyingReport } from './buying'
import { runCrowd, type CrowdPlan, type CrowdReport } from './crowd'
import { undisturbedProcesses } from './processes'

/** `npm run chaos -- purchases --help` (docs/design/chaos.md). */
export async function purchases(args: string[]): Promise<void> {
  const values = readOptions(
    {
      name: 'chaos',
      word: 'purchases',
      about: 'Kills real processes of the built product at every step of a purchase at the small cloud.',
      options: {
        'at-once': { default: 3, means: 'deployments at a time' },
        only: { default: '', as: 'TEXT', means: 'only the steps whose names have it' },
        crowd: { default: false, means: 'instead, ten wishes at once, two workers, and money for three' },
        server: { default: false, means: 'the Temporal server dies with the worker' },
        all: { default: false, means: 'all workers die at once' },
      },
    },
    args,
  )
  if (values === undefined) return
  execFileSync(process.execPath, [join(__dirname, '..', '..', 'tools', 'build.mjs')], { stdio: 'inherit' })
  const product = new Product()
  await withServer(async () => {
    if (values.crowd) return tellCrowd(await runCrowd(CROWD, product))
    const first = await runBuying(undisturbedProcesses(), product)
    tell('undisturbed', first)
    const plans = buyingPlans(first.calls).filter(({ name }) => name.includes(values.only))
    await inLanes(plans, { atOnce: values['at-once'] }, async (plan) => {
      const crashes = plan.crashes.map((crash) => ({ ...crash, isOfBoth: values.all }))
      tell(plan.name, await runBuying({ ...plan, crashes, isServerKilled: values.server }, product))
    })
  }).finally(() => product.remove())
}

const CROWD: CrowdPlan = { wishes: 10, commands: 10, paid: 3, backendWorkers: 2 }

function tellCrowd({ breaches, bought, refused, begun }: CrowdReport): void {
  process.stdout.write(`${begun} wishes begun, ${bought} blocks bought, ${refused} refused by the budget\n`)
  tellBreaches(breaches)
}

function tell(name: string, { breaches, state, struck, decided }: BuyingReport): void {
  const asked = decided === 0 ? '' : `, decided by a person`
  process.stdout.write(`${name}: ${state}${asked}${struck === 0 ? ', none died' : ''}\n`)
  tellBreaches(breaches)
}

function tellBreaches(breaches: readonly string[]): void {
  for (const one of breaches) process.stdout.write(`! ${one}\n`)
  if (breaches.length > 0) process.exitCode = 1
}
