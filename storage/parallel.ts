/** Requests to a store under way at once: enough to hide the way to a far one, few enough not to be throttled. */
const PARALLEL_MAX = 8

/**
 * Does something with each item, several at a time; the answers are in the items' order. Begins nothing more after the
 * first error, and throws it.
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
