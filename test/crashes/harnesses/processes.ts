import type { Product } from '../../chaos/stage'
import type { CloudProvider } from '../../clouds/provider'
import { providerOption, providersNamed } from '../../clouds/providers'
import { harness, type Case } from '../../kit/harness'
import { withProduct } from '../../proof/product'
import { withServer } from '../../kit/server'
import { pointsOf, type Point } from '../plan'
import { processPlanOf, runProcesses, undisturbedProcesses } from '../processes'
import type { ProcessPlan } from '../real-stage'
import type { CrashReport } from '../run'
import { pointsWith, seenIn, tableOf } from './table'

export interface ProcessCase extends Case {
  provider: CloudProvider
  plan: ProcessPlan
}

/** A job on the small cloud whose workers are processes of the built product that die by SIGKILL. */
export const PROCESSES = harness({
  seeds: 50,
  jobs: 3,
  options: {
    provider: providerOption('each gets its part of the seeds'),
    only: { default: '', as: 'TEXT', means: 'only the points whose names have it' },
  },
  around: (_, use) => withProduct((product) => withServer(() => use(product))),
  draw: async ({ seeds, provider: word, only }, _, prove) => {
    const providers = providersNamed(word)
    const seen = await prove(providers.map((provider) => caseOf(provider, undisturbedProcesses(), 1)))
    const part = seeds.slice(0, Math.ceil(seeds.length / providers.length))
    return providers.flatMap((provider) => {
      const points = pointsWith(only, pointsAt(provider.name, seen))
      return part.map((seed) => caseOf(provider, processPlanOf(seed, points, provider), seed))
    })
  },
  live: ({ provider, plan }: ProcessCase, product: Product) => runProcesses(plan, { provider, product }),
  table: (reports, { provider, only }) =>
    tableOf(reports, (seen) =>
      providersNamed(provider).flatMap(({ name }) => pointsWith(only, pointsAt(name, seen))),
    ),
})

function caseOf(provider: CloudProvider, plan: ProcessPlan, seed: number): ProcessCase {
  const again = ['--seed', `${seed}`, '--provider', provider.name]
  return { name: `${plan.name} at ${provider.name}`, again, provider, plan }
}

function pointsAt(name: string, reports: readonly CrashReport[]): Point[] {
  return pointsOf(seenIn(reports.filter(({ provider }) => provider === name)))
}
