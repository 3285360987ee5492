import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import type { Client } from '@temporalio/client'
import { migrate } from '../../client/updates'
import { groupRejections, type PlanReport, type Rejection } from '../../core/job/plan'
import { ClientWorld, JOB } from './world'

let world: ClientWorld
beforeEach(async () => {
  world = await ClientWorld.make()
  await world.submitted()
})
afterEach(() => world.remove())

/** A worker whose plan for the wished place has no placement, for these reasons. */
function refusing(...rejections: Rejection[]): void {
  const plan: PlanReport = {
    prospect: { kind: 'wait', reason: 'No offer fits this job now.' },
    placements: [],
    others: [],
    othersTotal: 0,
    isDurationAssumed: false,
    silentBackends: [],
    relaxations: [],
    rejections: groupRejections(rejections),
  }
  const schedule = { getHandle: () => ({ describe: async () => ({ action: { args: [] } }) }) }
  world.client = { schedule, activity: { execute: async () => plan } } as unknown as Partial<Client>
}

const asked = (): Promise<unknown> =>
  migrate(world.context, JOB, { to: { backend: 'ec2', capacityType: 'reserved' } })

describe('a migration to where the job cannot run', () => {
  const other: Rejection = {
    offerKey: 'ec2/on-demand/g5.xlarge/us-east-1a',
    code: 'backend',
    reason: 'the job allows only ec2:reserved',
    why: 'unfit',
  }

  it('is refused with what keeps it from there', async () => {
    refusing(other, {
      offerKey: 'ec2/reserved/p5.48xlarge/us-east-1a/cr-1',
      code: 'budget',
      reason: 'too dear',
      why: 'unfit',
    })
    await expect(asked()).rejects.toMatchObject({
      kind: 'capacity',
      message: `${JOB} does not move: ec2:reserved is unsuitable (too dear).`,
    })
  })

  it('does not blame the job for capacity that does not exist', async () => {
    refusing(other)
    await expect(asked()).rejects.toMatchObject({
      message: `${JOB} does not move: ec2:reserved is not configured in this deployment.`,
    })
  })
})
