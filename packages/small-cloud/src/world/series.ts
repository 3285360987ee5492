/** A value that changes at known instants. */
export interface Series<T> {
  /** `[since when, value]`, in milliseconds since the start of the world, in order. The first value also applies before its instant. */
  readonly changes: readonly (readonly [atMs: number, value: T])[]
}

export function constant<T>(value: T): Series<T> {
  return { changes: [[0, value]] }
}

/** Sorts changes, and drops those without effect. */
export function seriesOf<T>(changes: readonly (readonly [number, T])[]): Series<T> {
  const sorted = [...changes].sort(([a], [b]) => a - b)
  return { changes: sorted.filter(([, value], i) => i === 0 || value !== sorted[i - 1]![1]) }
}

export function valueAt<T>({ changes }: Series<T>, atMs: number): T {
  return changes[indexAt(changes, atMs)]![1]
}

/** Returns the time of the next change; `undefined` when the value stays. */
export function nextChangeMs<T>({ changes }: Series<T>, afterMs: number): number | undefined {
  const index = indexAt(changes, afterMs)
  const isBefore = changes[0]![0] > afterMs
  return changes[isBefore ? 0 : index + 1]?.[0]
}

/** Index of the last change at or before an instant; 0 before the first. */
function indexAt(changes: Series<unknown>['changes'], atMs: number): number {
  let low = 0
  let high = changes.length
  while (high - low > 1) {
    const middle = (low + high) >> 1
    if (changes[middle]![0] <= atMs) low = middle
    else high = middle
  }
  return low
}
