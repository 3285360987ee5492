/** Works on all items, some of them at once, each begun in their order; their results in that order. */
export async function inLanes<T, R>(
  items: readonly T[],
  { jobs, signal }: { jobs: number; signal?: AbortSignal },
  work: (item: T, index: number) => Promise<R>,
): Promise<R[]> {
  const results: R[] = []
  let next = 0
  const lane = async (): Promise<void> => {
    for (let index = next++; index < items.length && signal?.aborted !== true; index = next++)
      results[index] = await work(items[index]!, index)
  }
  await Promise.all(Array.from({ length: Math.min(jobs, items.length) }, lane))
  return results
}
