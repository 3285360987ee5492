const BARS = '▁▂▃▄▅▆▇█'

/** Draws prices over time as bars between their lowest and highest value; a constant price is level. */
export function sparkline(values: readonly number[]): string {
  const [least, most] = [Math.min(...values), Math.max(...values)]
  return values
    .map((value) => {
      const share = most === least ? 0 : (value - least) / (most - least)
      return BARS[Math.round(share * (BARS.length - 1))]
    })
    .join('')
}
