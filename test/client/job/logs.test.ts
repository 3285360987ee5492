import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { readLogs, type JobLogLine, type LogOptions } from '../../../client/job/logs'
import { StoreError } from '../../../storage/store'
import { until } from '../../support/until'
import { NO_ATTRIBUTES, ClientWorld, JOB, statusOf } from '../world'

let world: ClientWorld

beforeEach(async () => {
  world = await ClientWorld.make()
  await world.submitted()
})

afterEach(() => world.remove())

const texts = (lines: JobLogLine[]): string[] => lines.map(({ s, m }) => (s === 'gap' ? `(${m})` : m))

async function read(options?: LogOptions): Promise<string[]> {
  const lines: JobLogLine[] = []
  for await (const line of readLogs(world.context, JOB, options)) lines.push(line)
  return texts(lines)
}

/** Follows in the background. */
function follow(options: LogOptions = {}): { lines: JobLogLine[]; done: Promise<void> } {
  const lines: JobLogLine[] = []
  const run = async (): Promise<void> => {
    for await (const line of readLogs(world.context, JOB, { ...options, isFollowing: true })) lines.push(line)
  }
  return { lines, done: run() }
}

/** Waits until the store was listed this many times. */
async function looks(count: number): Promise<void> {
  const { store } = world
  const list = store.list.bind(store)
  let seen = 0
  store.list = (prefix) => {
    if (prefix.endsWith('logs/')) seen += 1
    return list(prefix)
  }
  await until(() => seen >= count)
  store.list = list
}

const over = statusOf({ state: 'succeeded', reason: 'completed' })

describe('the log of a job', () => {
  it('is not that of a job that does not exist', async () => {
    await expect(async () => {
      for await (const line of readLogs(world.context, 'job-other')) expect(line).toBeUndefined()
    }).rejects.toMatchObject({ kind: 'not-found', exitCode: 5 })
  })

  it('is empty before the first attempt', async () => {
    expect(await read()).toEqual([])
  })

  it('goes across attempts in their order, also past the ninth', async () => {
    for (const attempt of [10, 2, 1, 9]) {
      await world.chunk(attempt, [1, 2])
      await world.result(attempt)
    }
    expect(await read()).toEqual(['1.1', '1.2', '2.1', '2.2', '9.1', '9.2', '10.1', '10.2'])
  })

  it('has each line once, however the runner cuts and merges them', async () => {
    await world.chunk(1, [1, 2, 3])
    await world.chunk(1, [4])
    await world.chunk(1, [1, 2, 3, 4, 5])
    await world.chunk(1, [5, 6])
    expect(await read()).toEqual(['1.1', '1.2', '1.3', '1.4', '1.5', '1.6'])
  })

  it('marks what was lost in an attempt that is over, and only there', async () => {
    await world.chunk(1, [1, 2])
    await world.chunk(1, [5, 6])
    expect(await read()).toEqual(['1.1', '1.2'])
    await world.result(1)
    expect(await read()).toEqual(['1.1', '1.2', '(2 lines lost)', '1.5', '1.6'])
  })

  it('marks a line in the middle of a chunk that cannot be read', async () => {
    await world.chunk(1, [1, 3], [1, 4])
    expect(await read()).toEqual(['1.1', '(1 line lost)', '1.3', '(1 line lost)'])
  })

  it('can be that of one attempt, and of its last lines', async () => {
    for (const attempt of [1, 2]) {
      await world.chunk(attempt, [1, 2, 3])
      await world.result(attempt)
    }
    expect(await read({ attempt: 1 })).toEqual(['1.1', '1.2', '1.3'])
    expect(await read({ tail: 4 })).toEqual(['1.3', '2.1', '2.2', '2.3'])
    expect(await read({ tail: 100 })).toHaveLength(6)
  })
})

describe('following', () => {
  it('shows lines as they come, waits for those that are late, and ends with the job', async () => {
    await world.chunk(1, [1, 2])
    const { lines, done } = follow()
    await until(() => lines.length === 2)
    // Later lines are here before earlier ones.
    await world.chunk(1, [5])
    await world.chunk(1, [3, 4])
    await until(() => lines.length === 5)
    // So are those of the next attempt before the last one of this.
    await world.chunk(2, [1])
    await looks(3)
    await world.chunk(1, [6])
    await world.settled(1)
    await until(() => lines.length === 7)
    await world.chunk(2, [2])
    await world.finished(over)
    await done
    expect(texts(lines)).toEqual(['1.1', '1.2', '1.3', '1.4', '1.5', '1.6', '2.1', '2.2'])
  })

  it('marks a hole once it is certain that it stays one', async () => {
    const { lines, done } = follow()
    await world.chunk(1, [3])
    await world.settled(1)
    await world.finished(over)
    await done
    expect(texts(lines)).toEqual(['(2 lines lost)', '1.3'])
    expect(lines[0]).toMatchObject({ attempt: 1, n: 2, lost: 2 })
  })

  it('begins with the last lines and doubles none', async () => {
    await world.chunk(1, [1, 2, 3])
    const { lines, done } = follow({ tail: 1 })
    await until(() => lines.length === 1)
    await world.chunk(1, [4])
    await world.finished(over)
    await done
    expect(texts(lines)).toEqual(['1.3', '1.4'])
  })

  it('ends with its attempt when only that is wanted', async () => {
    await world.chunk(1, [1])
    const { lines, done } = follow({ attempt: 1 })
    await until(() => lines.length === 1)
    await world.result(1)
    await done
    expect(texts(lines)).toEqual(['1.1'])
  })

  it('ends when it is asked to, and only then, while the job runs', async () => {
    const stop = new AbortController()
    await world.chunk(1, [1])
    const { lines, done } = follow({ signal: stop.signal })
    await until(() => lines.length === 1)
    stop.abort()
    await done
    expect(texts(lines)).toEqual(['1.1'])
  })

  it('waits out a store that does not answer', async () => {
    await world.chunk(1, [1])
    const { lines, done } = follow()
    await until(() => lines.length === 1)
    const store = world.store as { list: unknown }
    const list = store.list
    let refusals = 0
    store.list = () => {
      refusals += 1
      throw new StoreError('the disk is away', { isTransient: true })
    }
    await until(() => refusals > 1)
    store.list = list
    await world.chunk(1, [2])
    await world.finished(over)
    await done
    expect(texts(lines)).toEqual(['1.1', '1.2'])
  })

  it('asks the server now and then, for a job that was ended by hand has no last record', async () => {
    const { lines, done } = follow()
    await world.planned(1)
    await world.chunk(1, [1])
    await until(() => lines.length === 1)
    world.client = {
      withDeadline: (_deadline: number | Date, ask: () => Promise<never>) => ask(),
      workflow: {
        getHandle: () => ({
          describe: async () => ({ status: { name: 'TERMINATED' }, ...NO_ATTRIBUTES }),
          query: async () => statusOf(),
        }),
      } as never,
    }
    world.nowMs += 60_000
    await done
    expect(texts(lines)).toEqual(['1.1'])
  })
})
