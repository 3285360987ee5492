import { setTimeout as sleep } from 'node:timers/promises'
import { StoreError } from '../../storage/store'
import type { TestConnection } from '../support/temporal'
import { statusOf } from '../workflows/harness'
import { isOverWithin, type Outcome } from '../kit/outcome'
import { CloudDeployment, journal } from './cloud'
import { breaches } from './invariants'
import type { CloudWorld } from './world'
import { patient } from '../support/patience'

export interface CloudReport extends Outcome {
  name: string
  lastedMs: number
}

/**
 * A job of seconds that is not over by then has stuck. Pools that had no machine are left alone for three minutes, and two launches in
 * a row may fail in the only pool that has machines.
 */
const WORLD_MAX_MS = 600_000
const GRACE_MS = 500

/** Lives through worlds, some of them at once; answers their reports by name, as they come. */
export function liveThrough(
  at: TestConnection,
  worlds: CloudWorld[],
  atOnce: number,
): Map<string, Promise<CloudReport>> {
  const reports = new Map<string, Promise<CloudReport>>()
  const lanes = Array.from({ length: atOnce }, () => Promise.resolve())
  worlds.forEach((world, index) => {
    const free = lanes[index % atOnce]!
    const report = free.then(() => runCloud(at, world)).catch((error: Error) => crashed(world, error))
    lanes[index % atOnce] = report.then(() => undefined)
    reports.set(world.name, report)
  })
  return reports
}

function crashed({ name, story }: CloudWorld, error: Error): CloudReport {
  return { name, state: 'crashed', attempts: 0, breaches: [error.stack ?? error.message], story, lastedMs: 0 }
}

/** Lives through one world and checks every invariant against what the cloud knows when it is over. */
async function runCloud(at: TestConnection, world: CloudWorld): Promise<CloudReport> {
  const startedAtMs = Date.now()
  const deployment = await CloudDeployment.start(at, world.wishes)
  try {
    const job = await deployment.submit(world.spec)
    const happenings = world.happenings.map(async ({ atMs, happen }) => {
      await sleep(atMs)
      await happen({ deployment, job })
    })
    const isOver = await isOverWithin(job, WORLD_MAX_MS)
    await Promise.all(happenings)
    const status = await statusOf(job).catch(() => statusOf(job))
    const left = deployment.cloud.instances()
    if (isOver) await deployment.collectGarbage(GRACE_MS)
    else await job.terminate()
    const after = { deployment, world, status, left, instances: deployment.cloud.instances() }
    return {
      name: world.name,
      state: `${status.state} (${status.reason})`,
      attempts: status.attemptsTotal,
      breaches: isOver
        ? await patiently(() => breaches(after))
        : [`the job was not over after ${patient(WORLD_MAX_MS) / 1_000} s: ${status.message}`],
      story: [
        ...world.story,
        ...strikesIn(deployment),
        ...(await patiently(() => journal(deployment, startedAtMs))),
      ],
      lastedMs: Date.now() - startedAtMs,
    }
  } finally {
    await deployment.close()
  }
}

function strikesIn({ cloud }: CloudDeployment): string[] {
  return cloud.faults().map(({ rule, struck }) => `${rule.fault} struck ${struck} times`)
}

/** What looks at a run in the end meets the faults that are left of its store, and asks again. */
async function patiently<T>(look: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await look()
    } catch (error) {
      if (!(error instanceof StoreError) || tries === LOOKS_MAX) throw error
    }
  }
}

/** More than a store of a world has faults in a row. */
const LOOKS_MAX = 20
