import { renameSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import type { Client } from '@temporalio/client'
import { cancel } from '../../client/updates'
import { ClientWorld, JOB } from './world'

let world: ClientWorld
let cancelled: number
beforeEach(async () => {
  world = await ClientWorld.make()
  await world.submitted()
  cancelled = 0
  const handle = {
    describe: async () => ({ status: { name: 'RUNNING' } }),
    cancel: async () => void (cancelled += 1),
  }
  const withDeadline = (_: number, ask: () => Promise<unknown>) => ask()
  world.client = { withDeadline, workflow: { getHandle: () => handle } } as unknown as Partial<Client>
})
afterEach(() => world.remove())

describe('a cancellation', () => {
  it('is sent while the store is away, and says that the machine cannot save', async () => {
    const note = jest.spyOn(world.context, 'note').mockReturnValue()
    await cancel(world.context, JOB)
    expect([cancelled, note.mock.calls]).toEqual([1, []])
    renameSync(join(world.folder, 'store'), join(world.folder, 'away'))
    await cancel(world.context, JOB)
    expect(cancelled).toBe(2)
    expect(note.mock.calls).toEqual([
      [expect.stringMatching(/cannot be asked to save, and is ended after its window: .*missing/)],
    ])
  })
})
