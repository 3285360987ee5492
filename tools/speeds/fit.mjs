// Training speed of accelerators relative to one of them: measured where measurements were published, otherwise derived.

/** Quantiles of 5 % on each side: Student's t by degrees of freedom, and the normal distribution. */
const T95 = [NaN, 6.314, 2.92, 2.353, 2.132, 2.015, 1.943, 1.895, 1.86, 1.833, 1.812]
const NORMAL95 = 1.645

const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length
const variance = (values) => {
  const middle = mean(values)
  return values.reduce((sum, value) => sum + (value - middle) ** 2, 0) / (values.length - 1)
}

/** The mean of logarithms, and the distance from it that holds another model's with 90 %. */
export function ofModels(logs) {
  const spread = T95[logs.length - 1] * Math.sqrt(variance(logs) * (1 + 1 / logs.length))
  return { middle: mean(logs), spread }
}

/** How many measurements are in the range that the other models of the same type give, and how many there are. */
export function coverage({ ratios }) {
  const isHeld = Object.values(ratios).flatMap((values) => {
    const logs = values.map(Math.log)
    return logs.map((log, left) => {
      const { middle, spread } = ofModels(logs.filter((_, index) => index !== left))
      return Math.abs(log - middle) <= spread
    })
  })
  return { held: isHeld.filter(Boolean).length, all: isHeld.length }
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

const predict = ([t, b], [throughput, bandwidth]) => t * throughput + b * bandwidth

/** The speed of one type for the arithmetic: the mean of logarithms, and the spread. */
function derive(name, { relative, fitted, known, sameChip, reference, spreads }) {
  const sibling = sameChip[name]
  if (sibling === undefined) return { middle: predict(fitted, relative(name)), spread: spreads.otherChip }
  const { middle, spread } = known.get(sibling)
  return {
    middle: middle + predict(fitted, relative(name)) - predict(fitted, relative(sibling)),
    spread: sibling === reference ? spreads.sameChip : spread,
  }
}

/**
 * The speed of each accelerator as `{ factor, low, high, basis }`; nine of ten models are between `low` and `high`.
 *
 * @param sheets throughput and bandwidth by name
 * @param sameChip names of measured types with the same chip
 * @param measured `{ reference, ratios }`, the ratios of each model by name
 */
export function speedsFrom({ sheets, sameChip }, { reference, ratios }) {
  const relative = (name) => sheets[name].map((value, index) => Math.log(value / sheets[reference][index]))
  const logs = Object.entries(ratios).map(([name, values]) => [name, values.map(Math.log)])
  const points = logs.map(([name, values]) => [mean(values), ...relative(name)])
  const fitted = exponents(points)
  const known = new Map(logs.map(([name, values]) => [name, ofModels(values)]))
  known.set(reference, { middle: 0, spread: 0 })
  // What a derived factor misses: the type's own deviation, as seen by leaving each measured one out, and that of the models.
  const errors = points.map(([speed, ...sheet], left) => {
    const others = points.filter((_, index) => index !== left)
    return speed - predict(exponents(others), sheet)
  })
  const ofTypes = mean(errors.map((error) => error ** 2))
  const amongModels = mean(logs.map(([, values]) => variance(values)))
  const spreads = {
    otherChip: NORMAL95 * Math.sqrt(ofTypes + amongModels),
    sameChip: NORMAL95 * Math.sqrt(amongModels),
  }
  const rounded = (log) => Number(Math.exp(log).toPrecision(3))
  return Object.fromEntries(
    Object.keys(sheets).map((name) => {
      const basis = known.has(name) ? 'measured' : 'derived'
      const { middle, spread } =
        known.get(name) ?? derive(name, { relative, fitted, known, sameChip, reference, spreads })
      return [
        name,
        { factor: rounded(middle), low: rounded(middle - spread), high: rounded(middle + spread), basis },
      ]
    }),
  )
}
