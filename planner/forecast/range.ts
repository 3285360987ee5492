/** A figure with uncertainty: half of all cases are below `middle`, one in twenty below `low`, and one in twenty above `high`. */
export interface Range {
  low: number
  middle: number
  high: number
  /** Dated source of the figure, for people. */
  source: string
}

/** The 95 % quantile of the standard normal distribution. */
const Z_95 = 1.6448536

export function exactly(value: number, source: string): Range {
  return { low: value, middle: value, high: value, source }
}

export function scaled({ low, middle, high, source }: Range, factor: number): Range {
  return { low: low * factor, middle: middle * factor, high: high * factor, source }
}

/** Whether two ranges have the same figures, regardless of their sources. */
export function isSame(a: Range, b: Range): boolean {
  return a.low === b.low && a.middle === b.middle && a.high === b.high
}

/** Values of a lognormal distribution on each side of the middle, at standard normal deviates. */
export function fillFrom({ low, middle, high }: Range, normal: Float64Array, into: Float64Array): void {
  if (low === high) {
    into.fill(middle)
    return
  }
  const below = Math.log(middle / low) / Z_95
  const above = Math.log(high / middle) / Z_95
  for (let i = 0; i < into.length; i += 1) {
    const z = normal[i]!
    into[i] = middle * Math.exp((z < 0 ? below : above) * z)
  }
}
