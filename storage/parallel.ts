/** Number of concurrent requests to a store: enough to hide the latency of a distant one, few enough not to be throttled. */
const PARALLEL_MAX = 8

/**
 * Applies the action to each item, several at a time; the results are in the items' order. After the first error it starts nothing more,
 * and throws the error.
 */
export async function eachOf<T, R>(items: readonly T[], action: (item: T) => Promise<R>): Promise<R[]> {
  const results = new Array<R>(items.length)
  let next = 0
  const work = async (): Promise<void> => {
    while (next < items.length) {
      const index = next++
      try {
        results[index] = await action(items[index]!)
      } catch (error) {
        next = items.length
        throw error
      }
    }
  }
  await Promise.all(Array.from({ length: Math.min(PARALLEL_MAX, items.length) }, work))
  return results
}
