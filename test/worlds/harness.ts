import { AVOID_CAPACITY_MS } from '../../planner/plan/avoidance'
import { harness, seeded, type Case, type Report } from '../kit/harness'
import { endOf, lived } from '../proof/lived'
import { withConnection } from '../kit/server'
import type { TestConnection } from '../support/temporal'
import { Deployment } from '../workflows/harness'
import { breaches } from './invariants'
import { seededWorld, STEPS, type SeededWorld } from './world'

/** A world of seconds whose job is not over by then has stuck. */
const WORLD_MAX_MS = 90_000
/** How long an end that is not confirmed may hold a job up: its lease, and the slack of two clocks. */
const FENCE_MAX_MS = 60_000
/** A job whose only affordable offer did not leave the queue in time waits until that one is no longer avoided. */
const maxMsOf = ({ wishes: { capabilities = {} } }: SeededWorld): number =>
  WORLD_MAX_MS +
  (capabilities.ends === 'requested' ? 4 * FENCE_MAX_MS : 0) +
  (capabilities.queues === true ? AVOID_CAPACITY_MS : 0)

/** One job in each seeded world, on a real server, with a scripted provider. */
export const WORLDS = harness({
  seeds: 100,
  jobs: 6,
  options: {},
  around: (_, use) => withConnection(use),
  draw: ({ seeds }) => seeded(seeds, seededWorld),
  live: runWorld,
})

async function runWorld(world: Case & SeededWorld, at: TestConnection): Promise<Report> {
  const deployment = await Deployment.start(at, world.wishes)
  try {
    for (const { verb, fault } of world.faults) deployment.world.faults.add(verb, fault)
    const { status, stuck } = await lived(deployment, world, maxMsOf(world))
    return {
      state: endOf(status),
      breaches: stuck.length > 0 ? stuck : await breaches(deployment, status, STEPS),
      story: world.story,
    }
  } finally {
    await deployment.close()
  }
}
