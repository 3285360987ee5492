import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals'
import type { RecordEntry } from '../../core/job/record'
import { HOUR_MS } from '../../core/time/time'
import { planInputs } from '../../planner/why/why-inputs'
import { readOwnSpeeds } from '../../storage/own-speeds'
import { readRecords } from '../../storage/record'
import { connectTo, quietWorkers, type TestConnection } from '../support/temporal'
import { LONG, ON_DEMAND, SPOT, worldsOn, type Deployment, type WorldWishes } from './harness'
import { atStep, TEST_LIMIT_MS } from './looks'

jest.setTimeout(TEST_LIMIT_MS)

let at: TestConnection

beforeAll(async () => {
  quietWorkers()
  at = await connectTo()
})
afterAll(() => at.close())

const inWorld = worldsOn(() => at)

const A100 = {
  ...ON_DEMAND,
  type: 'a100',
  shape: { cpus: 8, memoryGiB: 61, gpus: 1, accelerator: 'A100', gpuMemoryGiB: 40 },
}

/** A V100 does a third of an A100's steps; published measurements say more. */
const behave: WorldWishes['behave'] = ({ jobId, attempt, capacityType }) => ({
  ...(jobId === 'job-test' && attempt === 1 && LONG),
  ...(attempt === 2 && { stepsTotal: 250 }),
  stepsPerSecond: capacityType === 'spot' ? 20 : 60,
  tellsFirstStep: true,
})

const WANTED = {
  resources: { gpus: { min: 1 } },
  durationMs: 10 * HOUR_MS,
  durationOn: 'A100',
} as const

type Planned = Extract<RecordEntry, { kind: 'planned' }>['data']

async function firstPlanOf({ store }: Deployment, jobId: string): Promise<Planned> {
  const planned = (await readRecords(store, jobId)).find(({ kind }) => kind === 'planned')
  return planned!.data as Planned
}

describe('a job that ran on two types of accelerators', () => {
  it(
    'changes the next forecast and narrows its interval, on record',
    inWorld({ wares: [SPOT, A100], behave }, async (deployment) => {
      const backends = [{ backend: 'scripted' }]
      const job = await deployment.submit({ ...WANTED, backends })
      await atStep(deployment, 60)
      await job.executeUpdate('migrate', {
        args: [{ to: { backend: 'scripted', capacityType: 'on-demand' } }],
      })
      expect(await job.result()).toMatchObject({ state: 'succeeded', attempts: 2 })
      const [speeds, ...others] = await readOwnSpeeds(deployment.store)
      expect(others).toEqual([])
      expect(speeds!.paces.map(({ accelerator }) => accelerator)).toEqual(['V100', 'A100'])
      const before = await firstPlanOf(deployment, 'job-test')
      expect(before.facts).not.toHaveProperty('ownRatios')

      const second = await deployment.submit({ ...WANTED, backends }, { jobId: 'job-second' })
      expect(await second.result()).toMatchObject({ state: 'succeeded' })
      const { facts, plan, inputs } = await firstPlanOf(deployment, 'job-second')
      expect(facts!.ownRatios).toEqual([
        { accelerator: 'V100', than: 'A100', factor: expect.closeTo(1 / 3, 1), jobs: 1 },
      ])
      const onV100 = ({ placements }: NonNullable<Planned['plan']>) =>
        placements.find(({ offer }) => offer.shape.accelerator === 'V100')!
      const [was, is] = [onV100(before.plan!), onV100(plan!)]
      // Slower than was assumed, and more certain.
      expect(is.durationMs).toBeGreaterThan(was.durationMs)
      const width = ({ forecast: { finish } }: typeof is): number => finish.highMs / finish.lowMs
      expect(width(is)).toBeLessThan(width(was))
      expect(is.reasons.join()).toContain('measured on 1 of your jobs')
      expect(planInputs(inputs, { facts })).toContainEqual({
        name: 'measured speeds',
        text: expect.stringMatching(/^V100 0\.3\d? times the speed of A100 on 1 of your jobs$/),
      })
      // The deployment decides every recorded plan again when it closes.
    }),
  )
})
