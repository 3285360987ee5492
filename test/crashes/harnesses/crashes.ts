import type { CloudProvider } from '../../clouds/provider'
import { providerOption, providersNamed } from '../../clouds/providers'
import { harness, type Case } from '../../kit/harness'
import { withConnection } from '../../kit/server'
import type { TestConnection } from '../../support/temporal'
import { Crew } from '../crew'
import { gateSdk } from '../gates'
import { livesAt } from '../lives'
import { nameOf, planOf, pointsOf, undisturbed, type CrashPlan, type Point } from '../plan'
import { runCrash, type CrashReport } from '../run'
import { pointsWith, seenIn, tableOf } from './table'

export interface CrashCase extends Case {
  provider: CloudProvider
  plan: CrashPlan
  /** Tells the sites of a crew apart, and is the seed of the site's cloud. */
  index: number
}

/** Above all seeds: the sites of lives in which nothing crashes. */
const UNDISTURBED_FROM = 10_000_000

/** Jobs on the small cloud whose processes, parts of this one, die in their calls: first all lives undisturbed, then a point for each seed. */
export const CRASHES = harness({
  seeds: 1_000,
  jobs: 24,
  options: {
    provider: providerOption('each gets its part of the seeds'),
    only: { default: '', as: 'TEXT', means: 'only the points whose names have it' },
    points: { default: false, means: 'prints the points, and kills nothing' },
  },
  around: (_, use) => withConnection((at) => withCrews(at, use)),
  draw: async ({ seeds, provider: word, only, points }, _, prove) => {
    const providers = providersNamed(word)
    const seen = await prove(providers.flatMap(undisturbedAt))
    const part = seeds.slice(0, Math.ceil(seeds.length / providers.length))
    return providers.flatMap((provider): CrashCase[] => {
      const all = pointsAt(provider.name, seen)
      const wanted = pointsWith(only, all)
      if (points) {
        for (const point of wanted) process.stdout.write(`${provider.name}: ${nameOf(point)}\n`)
        return []
      }
      return part.map((seed) => caseOf(provider, planOf(seed, wanted, { provider, all }), seed))
    })
  },
  live: async ({ provider, plan, index }: CrashCase, crews: Crews) =>
    runCrash(await crews.of(provider), plan, index),
  table: (reports, { provider, only }) =>
    tableOf(reports, (seen) =>
      providersNamed(provider).flatMap(({ name }) => pointsWith(only, pointsAt(name, seen))),
    ),
})

function undisturbedAt(provider: CloudProvider): CrashCase[] {
  return livesAt(provider).map((life, at) =>
    caseOf(provider, undisturbed(life), { index: UNDISTURBED_FROM + at, seed: 1 }),
  )
}

function caseOf(
  provider: CloudProvider,
  plan: CrashPlan,
  at: number | { index: number; seed: number },
): CrashCase {
  const { index, seed } = typeof at === 'number' ? { index: at, seed: at } : at
  const again = ['--seed', `${seed}`, '--provider', provider.name]
  return { name: `${plan.name} at ${provider.name}`, again, provider, plan, index }
}

function pointsAt(name: string, reports: readonly CrashReport[]): Point[] {
  return pointsOf(seenIn(reports.filter(({ provider }) => provider === name)))
}

/** The workers of each provider's sites, from the first job there on. */
interface Crews {
  of: (provider: CloudProvider) => Promise<Crew>
}

async function withCrews<R>(at: TestConnection, use: (crews: Crews) => Promise<R>): Promise<R> {
  gateSdk()
  const crews = new Map<CloudProvider, Promise<Crew>>()
  const of = (provider: CloudProvider): Promise<Crew> => {
    const crew = crews.get(provider) ?? Crew.begin(at, provider)
    crews.set(provider, crew)
    return crew
  }
  try {
    return await use({ of })
  } finally {
    for (const crew of crews.values()) await (await crew).close()
  }
}
