// Fits the training speed of accelerators by family of work, relative to one of them, from published measurements and data sheets, by one
// method for all types and families.
import { exponents, posterior, residuals } from './gaussian.mjs'

/** Everything that was measured, for work of an unknown family. */
export const POOLED = 'pooled'
/** Correlation of what data sheets miss of two types of one chip. */
const SAME_CHIP = 0.8
/** The variance of a type counts like its family's with this many measurements more. */
const SHRINK = 4
/** Between the variance of types and their speeds. */
const ROUNDS = 8
/** Variance of the noise before it is estimated: models differ by a sixth. */
const FIRST_NOISE = 0.03
/** Variance of an unknown value. */
const VAGUE = 4
/** The reference has the speed 1. */
const FIXED = 1e-6

const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length

/** The measurements of a family that compare types: `{ family, source, model, line }`, `line` as `[type, log throughput][]`. */
export function linesOf({ measurements }, family) {
  return measurements
    .filter(([, each]) => family === POOLED || each === family)
    .map(([source, each, model, throughput]) => {
      const line = Object.entries(throughput).map(([type, value]) => [type, Math.log(value)])
      return { family: each, source, model, line }
    })
}

export function familiesOf({ measurements }) {
  return [...new Set(measurements.map(([, family]) => family)), POOLED]
}

/**
 * The prior of the types: the product of powers of throughput and bandwidth that fits the measured ones best, and as its variance the mean
 * squared error for a type that the fit does not know.
 */
function priorOf(lines, types, { sheets, chips, reference }) {
  const sheet = (type) => sheets[type].map((value, index) => Math.log(value / sheets[reference][index]))
  const diagonal = (variance) =>
    types.map((one) => types.map((other) => (one !== other ? 0 : one === reference ? FIXED : variance)))
  const vague = { types, means: types.map(() => 0), covariance: diagonal(VAGUE) }
  const { speeds } = posterior(lines, vague, new Map(types.map((type) => [type, FIRST_NOISE])))
  const compared = new Set(lines.flatMap((line) => (line.length < 2 ? [] : line.map(([type]) => type))))
  const points = types
    .filter((type) => type !== reference && compared.has(type))
    .map((type) => [speeds.get(type), ...sheet(type)])
  const predict = ([t, b], [throughput, bandwidth]) => t * throughput + b * bandwidth
  const errors = points.map(([speed, ...its], left) => {
    const others = points.filter((_, index) => index !== left)
    return speed - predict(exponents(others), its)
  })
  const variance = mean(errors.map((error) => error ** 2))
  const fitted = exponents(points)
  const chipOf = (type) => chips[type] ?? type
  const alike = (one, other) =>
    one !== reference && other !== reference && chipOf(one) === chipOf(other) ? SAME_CHIP * variance : 0
  return {
    ...{ types, means: types.map((type) => predict(fitted, sheet(type))) },
    covariance: diagonal(variance).map((row, one) =>
      row.map((value, other) => (one === other ? value : alike(types[one], types[other]))),
    ),
  }
}

/**
 * Speeds of types relative to the reference, as logarithms, and the standard deviation of one model of each: `{ speeds, deviations }`.
 *
 * A model's deviation has a variance of its type, shrunk to that of the family; the uncertainty of the type's speed is added.
 */
function fitTo(lines, types, sheets) {
  const prior = priorOf(lines, types, sheets)
  let noises = new Map(types.map((type) => [type, FIRST_NOISE]))
  let found
  for (let round = 0; round < ROUNDS; round += 1) {
    found = posterior(lines, prior, noises)
    const { squares, freedom } = residuals(lines, found.speeds, noises)
    const left = new Map(
      types.map((type, index) => {
        const used = 1 - found.variances.get(type) / prior.covariance[index][index]
        return [type, Math.max(0, (freedom.get(type) ?? 0) - used)]
      }),
    )
    const sum = (map) => [...map.values()].reduce((total, value) => total + value, 0)
    const ofFamily = sum(squares) / Math.max(1, sum(left))
    noises = new Map(
      types.map((type) => [type, (SHRINK * ofFamily + (squares.get(type) ?? 0)) / (SHRINK + left.get(type))]),
    )
  }
  const deviation = (type) => Math.sqrt(noises.get(type) + found.variances.get(type))
  return { speeds: found.speeds, deviations: new Map(types.map((type) => [type, deviation(type)])) }
}

/** Types to which the ratio of a line may refer. */
const BASES = ['A100-PCIe', 'A100', 'A100-80GB', 'H100']

const measuredTypes = (lines, { sheets }) =>
  Object.keys(sheets).filter((type) => lines.some(({ line }) => line.some(([each]) => each === type)))

/**
 * Returns by how many standard deviations of a fit the ratios of a type to the bases of its lines miss: `{ type, model, source, misses }`.
 */
function missesOf(type, lines, { speeds, deviations }) {
  return lines.flatMap(({ line, ...its }) => {
    const own = line.find(([each]) => each === type)
    const base = BASES.find((name) => name !== type && line.some(([each]) => each === name))
    if (own === undefined || base === undefined) return []
    const ratio = own[1] - line.find(([each]) => each === base)[1]
    const miss = ratio - (speeds.get(type) - speeds.get(base))
    return [{ ...its, type, misses: Math.abs(miss) / Math.hypot(deviations.get(type), deviations.get(base)) }]
  })
}

const without = (type, { line }) => line.filter(([each]) => each !== type)

/** Omits each measurement in turn, and returns how far the others miss it. */
export function leaveOneOut(lines, sheets) {
  const types = measuredTypes(lines, sheets)
  return lines.flatMap((left) =>
    left.line.flatMap(([type]) => {
      if (BASES.find((name) => left.line.some(([each]) => each === name)) === type) return []
      const others = lines.map((each) => (each === left ? without(type, each) : each.line))
      return missesOf(type, [left], fitTo(others, types, sheets))
    }),
  )
}

/** Omits each type in turn, except for the reference, and returns how far its data sheet and the other types miss its measurements. */
export function leaveTypesOut(lines, sheets) {
  const types = measuredTypes(lines, sheets)
  return types.flatMap((type) => {
    if (type === sheets.reference) return []
    const others = lines.map((each) => without(type, each))
    return missesOf(type, lines, fitTo(others, types, sheets))
  })
}

/** The number of standard deviations that holds nine of ten further cases: the quantile of split conformal prediction. */
export function quantile90(cases) {
  const sorted = cases.map(({ misses }) => misses).sort((a, b) => a - b)
  return sorted[Math.min(sorted.length, Math.ceil(0.9 * (sorted.length + 1))) - 1]
}

/** Returns how many of the cases are in the interval of the cases of other models. */
export function heldOf(cases) {
  const isHeld = ({ misses, model }) =>
    misses <= quantile90(cases.filter((each) => modelOf(each.model) !== modelOf(model)))
  return cases.filter(isHeld).length
}

/**
 * Returns the model without size, batch and framework, because variants of one model deviate alike: `PyTorch/Recommendation/NCF` and `ncf`
 * are one.
 */
function modelOf(model) {
  const [path] = model.split(', ')
  return path
    .split('/')
    .at(-1)
    .split(' ')[0]
    .toLowerCase()
    .replace(/[^a-z]|base|large|squad/g, '')
}

/**
 * The speeds of a family as `{ [type]: { factor, spread, measured } }`: nine of ten models are between `factor / spread` and
 * `factor * spread`, where the deviations of both types of a ratio count.
 *
 * @param widths `{ measured, derived }`: how many standard deviations hold nine of ten models of types with and without measurements
 */
export function speedsOf(lines, sheets, widths) {
  const types = Object.keys(sheets.sheets)
  const { speeds, deviations } = fitTo(
    lines.map(({ line }) => line),
    types,
    sheets,
  )
  const rounded = (log) => Number(Math.exp(log).toPrecision(3))
  const speedOf = (type) => {
    const count = lines.filter(({ line }) => line.length > 1 && line.some(([each]) => each === type)).length
    const width = widths[count > 0 ? 'measured' : 'derived']
    return {
      factor: rounded(speeds.get(type)),
      spread: rounded(width * deviations.get(type)),
      measured: count,
    }
  }
  return Object.fromEntries(types.map((type) => [type, speedOf(type)]))
}
