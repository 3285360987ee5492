import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { watchJob } from '../../client/watch'
import { layout } from '../../storage/layout'
import { ClientWorld, JOB } from './world'

let world: ClientWorld

beforeEach(async () => {
  world = await ClientWorld.make()
})

afterEach(() => world.remove())

describe('a watch over a job', () => {
  it('reads each entry of its record once, and tells each change', async () => {
    await world.submitted()
    await world.planned(1, 5_000)
    const read = jest.spyOn(world.store, 'get')
    const told: number[] = []
    const looks = watchJob(world.context, JOB, { everyMs: 1 })
    for await (const { attemptsTotal } of looks) {
      told.push(attemptsTotal)
      if (told.length === 3) break
      await world.planned(told.length + 1, 5_000)
    }
    expect(told).toEqual([1, 2, 3])
    const entries = read.mock.calls.map(([key]) => key).filter((key) => key.startsWith(layout.records(JOB)))
    expect(entries).toEqual([...new Set(entries)])
    expect(entries).toHaveLength(4)
  })
})
