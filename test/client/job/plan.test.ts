import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import type { Client } from '@temporalio/client'
import { planThroughWorkers } from '../../../client/job/plan'
import { putDocument } from '../../../storage/json'
import { layout } from '../../../storage/layout'
import { ClientWorld, SPEC } from '../world'

let world: ClientWorld
let asked: string[]
beforeEach(async () => {
  world = await ClientWorld.make()
  asked = []
  await putDocument(world.store, layout.deployment(), { id: 'dep-0000000000' })
})
afterEach(() => world.remove())

/** A server whose schedule of garbage collection holds this deployment, and whose workers answer. */
const serverOf = (deployment: string): Client =>
  ({
    schedule: { getHandle: () => ({ describe: async () => ({ action: { args: [{ deployment }] } }) }) },
    activity: {
      execute: async (name: string) => {
        asked.push(name)
        return { placements: [] }
      },
    },
  }) as unknown as Client

describe('a plan', () => {
  it("refuses the server of another deployment, and asks that deployment's workers nothing", async () => {
    world.client = serverOf('dep-1111111111')
    await expect(planThroughWorkers(world.context, SPEC)).rejects.toMatchObject({
      kind: 'usage',
      message: expect.stringMatching(/localhost:1 belongs to another deployment \(dep-1111111111\)/),
    })
    expect(asked).toEqual([])
  })

  it('comes from the workers of its own deployment', async () => {
    world.client = serverOf('dep-0000000000')
    expect(await planThroughWorkers(world.context, SPEC)).toEqual({ placements: [] })
    expect(asked).toEqual(['previewPlan'])
  })
})
