import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { watchJob } from '../../../client/job/watch'
import { layout } from '../../../storage/layout'
import { StoreError } from '../../../storage/store'
import { ClientWorld, JOB, statusOf } from '../world'

let world: ClientWorld

beforeEach(async () => {
  world = await ClientWorld.make()
})

afterEach(() => world.remove())

describe('a watch over a job', () => {
  it('reads each entry of its record once, and reports each change', async () => {
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

  it('ends with the job, and reports nothing twice', async () => {
    await world.submitted()
    let looks = 0
    const list = world.store.list.bind(world.store)
    jest.spyOn(world.store, 'list').mockImplementation(async function* (prefix) {
      if (prefix === layout.records(JOB) && (looks += 1) === 4)
        await world.finished(statusOf({ state: 'succeeded', reason: 'completed' }))
      yield* list(prefix)
    })
    const told: string[] = []
    for await (const { state } of watchJob(world.context, JOB, { everyMs: 1 })) told.push(state)
    expect(told).toEqual(['pending', 'succeeded'])
    expect(looks).toBe(4)
  })

  const away = (isTransient: boolean): StoreError => new StoreError('The store is away.', { isTransient })

  it('waits while the store does not answer, after a first report', async () => {
    await world.submitted()
    const told: number[] = []
    for await (const { attemptsTotal } of watchJob(world.context, JOB, { everyMs: 1 })) {
      told.push(attemptsTotal)
      if (told.length === 2) break
      await world.planned(1)
      for (let failure = 0; failure < 3; failure += 1)
        jest.spyOn(world.store, 'list').mockImplementationOnce(() => {
          throw away(true)
        })
    }
    expect(told).toEqual([0, 1])
  })

  it('says that it waits while a look takes long, and when the store is back', async () => {
    jest.useFakeTimers({ advanceTimers: true })
    const notes: string[] = []
    jest.spyOn(world.context, 'note').mockImplementation((text) => void notes.push(text))
    await world.submitted()
    const watch = watchJob(world.context, JOB, { everyMs: 1 })
    await watch.next()
    await world.planned(1)
    const list = world.store.list.bind(world.store)
    jest.spyOn(world.store, 'list').mockImplementationOnce(async function* (prefix) {
      await jest.advanceTimersByTimeAsync(6_000)
      yield* list(prefix)
    })
    expect((await watch.next()).value).toMatchObject({ attemptsTotal: 1 })
    expect(notes).toEqual([
      'Nothing new is known while the store does not answer; waiting for it. Its last answer came 5s ago.',
      'The store answers again.',
    ])
    jest.useRealTimers()
  })

  it.each([
    ['does not answer at its first look', 0, away(true)],
    ['refuses a later look', 1, away(false)],
  ])('fails when the store %s', async (_, looks, error) => {
    await world.submitted()
    const watch = watchJob(world.context, JOB, { everyMs: 1 })
    for (let look = 0; look < looks; look += 1) await watch.next()
    jest.spyOn(world.store, 'list').mockImplementation(() => {
      throw error
    })
    await expect(watch.next()).rejects.toMatchObject({
      message: expect.stringContaining('The store is away'),
    })
  })

  it('ends at once when its signal aborts, also during a pause', async () => {
    await world.submitted()
    const stop = new AbortController()
    const watch = watchJob(world.context, JOB, { everyMs: 3_600_000, signal: stop.signal })
    expect((await watch.next()).value).toMatchObject({ state: 'pending' })
    const end = watch.next()
    stop.abort()
    expect(await end).toEqual({ value: undefined, done: true })
  })
})
