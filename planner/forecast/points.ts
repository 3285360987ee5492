/**
 * Number of points at which a forecast is evaluated. They are always the same, so equal facts give equal forecasts. In each dimension they
 * are the middles of equally probable strata; a Kronecker sequence combines them.
 */
export const POINTS = 64

/** The independent causes of deviation. */
const DIMENSIONS = [
  'wait',
  'boot',
  'image',
  'setup',
  'fetch',
  'restore',
  'duration',
  'speed',
  'saving',
  'stop',
  'price',
  'rate',
  'interruptions',
  'loss',
  'cut',
] as const
export type Dimension = (typeof DIMENSIONS)[number]

/** Coefficients of `normalQuantile`. */
const CENTRE_ABOVE = [
  -39.69683028665376, 220.9460984245205, -275.9285104469687, 138.357751867269, -30.66479806614716,
  2.506628277459239,
]
const CENTRE_BELOW = [
  -54.47609879822406, 161.5858368580409, -155.6989798598866, 66.80131188771972, -13.28068155288572,
]
const TAIL_ABOVE = [
  -0.007784894002430293, -0.3223964580411365, -2.400758277161838, -2.549732539343734, 4.374664141464968,
  2.938163982698783,
]
const TAIL_BELOW = [0.007784695709041462, 0.3224671290700398, 2.445134137142996, 3.754408661907416]

/** A number for each point. */
export function column(): Float64Array {
  return new Float64Array(POINTS)
}

/** For each dimension, a deviate from 0 to 1 for each point. */
const UNIFORM = strata()
/** The deviates of `UNIFORM` as standard normal deviates. */
const NORMAL = UNIFORM.map((values) => values.map(normalQuantile))

export function uniformOf(dimension: Dimension): Float64Array {
  return UNIFORM[DIMENSIONS.indexOf(dimension)]!
}

export function normalOf(dimension: Dimension): Float64Array {
  return NORMAL[DIMENSIONS.indexOf(dimension)]!
}

function strata(): Float64Array[] {
  const base = harmonious(DIMENSIONS.length)
  return DIMENSIONS.map((_, dimension) => {
    const alpha = base ** -(dimension + 1)
    const sequence = Array.from({ length: POINTS }, (__, at) => ({ at, value: ((at + 1) * alpha) % 1 }))
    const uniform = column()
    sequence
      .sort((a, b) => a.value - b.value || a.at - b.at)
      .forEach(({ at }, rank) => (uniform[at] = (rank + 0.5) / POINTS))
    return uniform
  })
}

/** The root of x^(d+1) = x + 1, whose powers fill d dimensions most evenly (M. Roberts, 2018). */
function harmonious(dimensions: number): number {
  let x = 2
  for (let round = 0; round < 64; round += 1) x = (1 + x) ** (1 / (dimensions + 1))
  return x
}

/** Acklam's approximation; its relative error is below 1.2e-9. @internal Tests compare it with published values. */
export function normalQuantile(p: number): number {
  if (p > 0.5) return -normalQuantile(1 - p)
  if (p < 0.02425) {
    const q = Math.sqrt(-2 * Math.log(p))
    return polynomial(TAIL_ABOVE, q) / (polynomial(TAIL_BELOW, q) * q + 1)
  }
  const q = p - 0.5
  const r = q * q
  return (polynomial(CENTRE_ABOVE, r) * q) / (polynomial(CENTRE_BELOW, r) * r + 1)
}

function polynomial(coefficients: readonly number[], x: number): number {
  return coefficients.reduce((sum, each) => sum * x + each, 0)
}
