const BARS = '▁▂▃▄▅▆▇█'

/** Prices over time as bars, from the lowest to the highest of them; level for a price that did not change. */
export function sparkline(values: readonly number[]): string {
  const [least, most] = [Math.min(...values), Math.max(...values)]
  return values
    .map((value) => {
      const share = most === least ? 0 : (value - least) / (most - least)
      return BARS[Math.round(share * (BARS.length - 1))]
    })
    .join('')
}
