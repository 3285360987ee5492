/** How a fault harness goes through its seeds: the same for all of them. */
import setUp from '../support/global-setup'
import tearDown from '../support/global-teardown'
import { connectTo, quietWorkers, type TestConnection } from '../support/temporal'

/** The options of every harness that goes by seeds. */
export function seedOptions<Count extends number>(count: Count, means = 'how many seeds') {
  return {
    from: { default: 1, min: 0, means: 'the first seed' },
    count: { default: count as number, means },
  } as const
}

export function seedsOf({ from, count }: { from: number; count: number }): number[] {
  return Array.from({ length: count }, (_, index) => from + index)
}

/** Works on all items, some of them at once, each begun in their order; their results in that order. */
export async function inLanes<T, R>(
  items: readonly T[],
  { atOnce, signal }: { atOnce: number; signal?: AbortSignal },
  work: (item: T, index: number) => Promise<R>,
): Promise<R[]> {
  const results: R[] = []
  let next = 0
  const lane = async (): Promise<void> => {
    for (let index = next++; index < items.length && signal?.aborted !== true; index = next++)
      results[index] = await work(items[index]!, index)
  }
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, lane))
  return results
}

/** With a Temporal server of its own. */
export async function withServer<R>(use: () => Promise<R>): Promise<R> {
  await setUp()
  quietWorkers()
  try {
    return await use()
  } finally {
    await tearDown()
  }
}

export function withConnection<R>(use: (at: TestConnection) => Promise<R>): Promise<R> {
  return withServer(async () => {
    const at = await connectTo()
    try {
      return await use(at)
    } finally {
      await at.close()
    }
  })
}
