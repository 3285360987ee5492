import { setTimeout as sleep } from 'node:timers/promises'
import type { JobStatus } from '../../core/messages'
import type { TestConnection } from '../support/temporal'
import { Deployment, statusOf } from '../workflows/harness'
import { breaches } from './invariants'
import { isOverWithin, type Outcome } from '../kit/outcome'
import { seededWorld, type SeededWorld } from './world'
import { AVOID_CAPACITY_MS } from '../../planner/plan/avoidance'
import { patient } from '../support/patience'

const STEPS = 100

export interface WorldReport extends Outcome {
  seed: number
}

/** A world of seconds whose job is not over by then has stuck. */
const WORLD_MAX_MS = 90_000
/** How long an end that is not confirmed may hold a job up: its lease, and the slack of two clocks. */
const FENCE_MAX_MS = 60_000
/** A job whose only affordable offer did not leave the queue in time waits until that one is no longer avoided. */
const maxMsOf = ({ wishes: { capabilities = {} } }: SeededWorld): number =>
  WORLD_MAX_MS +
  (capabilities.ends === 'requested' ? 4 * FENCE_MAX_MS : 0) +
  (capabilities.queues === true ? AVOID_CAPACITY_MS : 0)

/** Lives through one seeded world on a real server and checks every invariant when it is over. */
export async function runWorld(at: TestConnection, seed: number): Promise<WorldReport> {
  const world = seededWorld(seed)
  const deployment = await Deployment.start(at, world.wishes)
  try {
    for (const { verb, fault } of world.faults) deployment.world.faults.add(verb, fault)
    const job = await deployment.submit(world.spec)
    const happenings = world.happenings.map(async ({ atMs, happen }) => {
      await sleep(atMs)
      await happen({ deployment, job })
    })
    const isOver = await isOverWithin(job, maxMsOf(world))
    await Promise.all(happenings)
    if (!isOver) {
      const status = await statusOf(job)
      await job.terminate()
      return unfinished(world, status)
    }
    const status = await statusOf(job)
    return {
      seed,
      state: `${status.state} (${status.reason})`,
      attempts: status.attemptsTotal,
      breaches: await breaches(deployment, status, STEPS),
      story: world.story,
    }
  } finally {
    await deployment.close()
  }
}

function unfinished(world: SeededWorld, { state, reason, attemptsTotal }: JobStatus): WorldReport {
  const { seed, story } = world
  const breaches = [`the job was not over after ${patient(maxMsOf(world)) / 1_000} s`]
  return { seed, state: `${state} (${reason})`, attempts: attemptsTotal, breaches, story }
}
