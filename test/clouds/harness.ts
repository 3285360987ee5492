import { harness, type Case, type Report } from '../kit/harness'
import { endOf, lived } from '../proof/lived'
import { withConnection } from '../kit/server'
import type { TestConnection } from '../support/temporal'
import { lonelyFault, worseFaults } from './alone'
import { CloudDeployment, journal, patiently } from './cloud'
import { kindsOf } from './faults'
import { brokenWorld } from './broken'
import { breaches } from './invariants'
import { providerOption, providersNamed } from './providers'
import { EC2 } from './providers/ec2'
import { seededCloud, type CloudWorld } from './world'

/**
 * A job of seconds that is not over by then has stuck. Pools that had no machine are left alone for three minutes, and two launches in
 * a row may fail in the only pool that has machines.
 */
const WORLD_MAX_MS = 600_000
const GRACE_MS = 500

type CloudCase = CloudWorld & Case

/** One job in each small cloud: seeded mixes of everything, or each fault alone. */
export const CLOUDS = harness({
  seeds: 100,
  jobs: 6,
  options: {
    provider: providerOption('the seeds take turns'),
    answers: { default: false, means: 'one provider whose answers are broken, in each' },
    each: { default: false, means: 'every kind of fault alone, and those that are worse together' },
  },
  around: (_, use) => withConnection(use),
  draw: ({ seeds, provider, each, answers }): CloudCase[] => {
    const providers = providersNamed(provider)
    if (!each)
      return seeds.map((seed) => {
        const world = (answers ? brokenWorld : seededCloud)(seed, providers[seed % providers.length]!)
        return { ...world, again: ['--seed', `${seed}`] }
      })
    const alone = seeds.flatMap((seed) =>
      providers.flatMap((one) => kindsOf(one.faults).map((kind) => lonelyFault(kind, seed, one))),
    )
    const worse = providers.includes(EC2) ? worseFaults() : []
    return [...alone, ...worse].map((world) => ({
      ...world,
      again: ['--from', `${seeds[0]}`, '--count', `${seeds.length}`, '--only', world.name],
    }))
  },
  live: runCloud,
})

/** Lives through one world and checks every invariant against what the cloud knows when it is over. */
async function runCloud(world: CloudCase, at: TestConnection): Promise<Report> {
  const startedAtMs = Date.now()
  const deployment = await CloudDeployment.start(at, world.wishes)
  try {
    const { status, stuck } = await lived(deployment, world, WORLD_MAX_MS)
    const left = deployment.cloud.instances()
    if (stuck.length === 0) await deployment.collectGarbage(GRACE_MS)
    const after = { deployment, world, status, left, instances: deployment.cloud.instances() }
    return {
      state: endOf(status),
      breaches: stuck.length > 0 ? stuck : await patiently(() => breaches(after)),
      story: [
        ...world.story,
        ...strikesIn(deployment),
        ...(await patiently(() => journal(deployment, startedAtMs))),
      ],
    }
  } finally {
    await deployment.close()
  }
}

function strikesIn({ cloud, brokenAnswers }: CloudDeployment): string[] {
  const broken = `${brokenAnswers()} answers were broken`
  return [broken, ...cloud.faults().map(({ rule, struck }) => `${rule.fault} struck ${struck} times`)]
}
