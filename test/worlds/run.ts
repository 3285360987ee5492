import { setTimeout as sleep } from 'node:timers/promises'
import type { TestConnection } from '../support/temporal'
import { Deployment, statusOf } from '../workflows/harness'
import { breaches } from './invariants'
import { seededWorld } from './world'

const STEPS = 100

export interface WorldReport {
  seed: number
  state: string
  attempts: number
  /** Empty when every invariant held. */
  breaches: string[]
  story: string[]
}

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
    await job.result().catch(() => undefined)
    await Promise.all(happenings)
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
