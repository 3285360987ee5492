/** Returns `count` of the items, drawn with a seed, in their original order. The same seed draws the same ones from the same items. */
export function sampleOf(items, count, seed) {
  const next = chanceOf(seed)
  const order = items.map((_, index) => ({ index, at: next() })).sort((one, other) => one.at - other.at)
  return order
    .slice(0, count)
    .map(({ index }) => index)
    .sort((one, other) => one - other)
    .map((index) => items[index])
}

/** Returns a generator of numbers from 0 to below 1 (mulberry32). */
function chanceOf(seed) {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
