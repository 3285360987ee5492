// The speed of accelerators as a mixed model: logarithms of throughput are an effect of the line (program, model, batch) plus the speed of
// the type plus noise of the type. Types have a prior from their data sheets, in which types of one chip deviate alike.

/** The inverse of a positive definite matrix, by Gauss and Jordan. */
function inverse(matrix) {
  const size = matrix.length
  const wide = matrix.map((row, at) => [...row, ...row.map((_, column) => Number(column === at))])
  for (let pivot = 0; pivot < size; pivot += 1) {
    const by = wide[pivot][pivot]
    wide[pivot] = wide[pivot].map((value) => value / by)
    for (let row = 0; row < size; row += 1) {
      const factor = wide[row][pivot]
      if (row === pivot || factor === 0) continue
      for (let column = pivot; column < 2 * size; column += 1)
        wide[row][column] -= factor * wide[pivot][column]
    }
  }
  return wide.map((row) => row.slice(size))
}

/**
 * Posterior of the types' speeds: `speeds` (logarithms) and `variances`, by name.
 *
 * @param lines of measurements: `[type, logarithm of throughput][]` each
 * @param prior `{ types, means, covariance }`
 * @param noises variance of a model's deviation, by type
 */
export function posterior(lines, { types, means, covariance }, noises) {
  const at = new Map(types.map((type, index) => [type, index]))
  const precision = inverse(covariance)
  const weighted = precision.map((row) => row.reduce((sum, value, index) => sum + value * means[index], 0))
  for (const line of lines) {
    // The effect of the line is free, so only the differences within it remain.
    const total = line.reduce((sum, [type]) => sum + 1 / noises.get(type), 0)
    const middle = line.reduce((sum, [type, log]) => sum + log / noises.get(type), 0) / total
    for (const [type, log] of line) {
      const own = 1 / noises.get(type)
      weighted[at.get(type)] += own * (log - middle)
      precision[at.get(type)][at.get(type)] += own
      for (const [other] of line) precision[at.get(type)][at.get(other)] -= own / (noises.get(other) * total)
    }
  }
  const spread = inverse(precision)
  const speedOf = (row) => row.reduce((sum, value, index) => sum + value * weighted[index], 0)
  return {
    speeds: new Map(types.map((type, index) => [type, speedOf(spread[index])])),
    variances: new Map(types.map((type, index) => [type, spread[index][index]])),
  }
}

/** Squared residuals of each type, and the degrees of freedom that its line leaves it. */
export function residuals(lines, speeds, noises) {
  const squares = new Map()
  const freedom = new Map()
  const add = (map, type, value) => map.set(type, (map.get(type) ?? 0) + value)
  for (const line of lines) {
    const total = line.reduce((sum, [type]) => sum + 1 / noises.get(type), 0)
    const effect =
      line.reduce((sum, [type, log]) => sum + (log - speeds.get(type)) / noises.get(type), 0) / total
    for (const [type, log] of line) {
      add(squares, type, (log - effect - speeds.get(type)) ** 2)
      add(freedom, type, 1 - 1 / (noises.get(type) * total))
    }
  }
  return { squares, freedom }
}

/** Exponents of a product of powers, by least squares: points are [log speed, log throughput, log bandwidth]. */
export function exponents(points) {
  const sum = (f) => points.reduce((total, point) => total + f(point), 0)
  const tt = sum(([, t]) => t * t)
  const tb = sum(([, t, b]) => t * b)
  const bb = sum(([, , b]) => b * b)
  const st = sum(([s, t]) => s * t)
  const sb = sum(([s, , b]) => s * b)
  const determinant = tt * bb - tb * tb
  return [(st * bb - sb * tb) / determinant, (sb * tt - st * tb) / determinant]
}
