import type { Product } from '../../chaos/stage'
import { harness, type Case } from '../../kit/harness'
import { withProduct } from '../../proof/product'
import { withServer } from '../../kit/server'
import { buyingPlans, runBuying, type BuyingReport } from '../buying'
import { runCrowd, type CrowdPlan } from '../crowd'
import { undisturbedProcesses } from '../processes'
import type { ProcessPlan } from '../real-stage'

interface BuyingCase extends Case {
  plan: ProcessPlan | CrowdPlan
}

const CROWD: CrowdPlan = { wishes: 10, commands: 10, paid: 3, backendWorkers: 2 }

/** One purchase of real processes at the small cloud: undisturbed, then with a death at each of its steps. */
export const BUYING = harness({
  jobs: 3,
  options: {
    crowd: { default: false, means: 'instead, ten reservations at once, two workers, and money for three' },
    server: { default: false, means: 'the Temporal server dies with the worker' },
    all: { default: false, means: 'all workers die at once' },
  },
  around: (_, use) => withProduct((product) => withServer(() => use(product))),
  draw: async ({ crowd, server, all }, _, prove): Promise<BuyingCase[]> => {
    if (crowd) return [{ name: 'crowd', again: ['--crowd'], plan: CROWD }]
    const first: BuyingCase = { name: 'undisturbed', again: [], plan: undisturbedProcesses() }
    const [undisturbed] = await prove([first])
    return buyingPlans(undisturbed?.calls ?? new Map()).map((plan) => ({
      name: plan.name,
      again: ['--only', plan.name],
      plan: {
        ...plan,
        crashes: plan.crashes.map((crash) => ({ ...crash, isOfBoth: all })),
        isServerKilled: server,
      },
    }))
  },
  live: ({ plan }: BuyingCase, product: Product): Promise<BuyingReport> =>
    'wishes' in plan ? runCrowd(plan, product) : runBuying(plan, product),
})
