import { expect } from '@jest/globals'
import { statusOf, type Deployment, type JobHandle } from './harness'
import { atStep, beatOf } from './looks'

/** Still on its first machine, and coming on. */
export async function expectUntouched(deployment: Deployment, job: JobHandle): Promise<void> {
  await atStep(deployment, ((await beatOf(deployment))?.progress?.step ?? 0) + 5)
  expect(await statusOf(job)).toMatchObject({ state: 'running', attemptsTotal: 1 })
  expect(deployment.world.machines.map(({ state }) => state)).toEqual(['running'])
}
