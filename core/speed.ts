import { ACCELERATOR_SPEEDS } from './accelerator-speeds'
import { findAccelerator } from './accelerators'

/** Kinds of training whose speed depends on the accelerator in the same way; `fp32` is training in fp32, or TF32 where a GPU has it. */
export const WORK_FAMILIES = [
  'convolution',
  'transformer',
  'recurrent',
  'recommendation',
  'fp32',
  'memory-bound',
] as const
/** @public */
export type WorkFamily = (typeof WORK_FAMILIES)[number]

/** Speed of one accelerator type in training, as a multiple of another one's. */
export interface RelativeSpeed {
  factor: number
  /** Lower end of the range in which nine of ten trainings are expected; `high` is the upper end. */
  low: number
  high: number
  /** `measured`: published measurements of this type. `derived`: from its throughput and memory bandwidth, with a wider range. */
  basis: 'measured' | 'derived'
  /** Number of the deployment's own jobs that ran on this type and another one; missing if none did. */
  jobs?: number
}

/** Speeds of all types for each family, and for work of an unknown family. */
export type SpeedTable = Readonly<Record<WorkFamily | 'pooled', Readonly<Record<string, TypeSpeed>>>>

interface TypeSpeed {
  factor: number
  spread: number
  measured: number
}

/** Geometric mean of how much faster jobs of a deployment ran on one type than on another. */
export interface OwnRatio {
  accelerator: string
  than: string
  factor: number
  jobs: number
}

/** Whose speed an estimate without an accelerator refers to. */
export const SPEED_REFERENCE = 'A100'

/**
 * Returns the speed of an accelerator as a multiple of another one's, or `undefined` if one of them is unknown. The range covers trainings
 * of a family, or of all kinds; `own` are measurements of the deployment for such work.
 */
export function speedOf(
  accelerator: string,
  than: string,
  {
    family,
    own = NO_RATIOS,
  }: { family?: WorkFamily | undefined; own?: readonly OwnRatio[] | undefined } = {},
): RelativeSpeed | undefined {
  const speeds = ACCELERATOR_SPEEDS[family ?? 'pooled']
  const [one, other] = [accelerator, than].map((name) => findAccelerator(name)?.name ?? name) as [
    string,
    string,
  ]
  if (speeds[one] === undefined || speeds[other] === undefined) return undefined
  const { ratios } = beliefOf(speeds, own)
  const key = `${one}/${other}`
  let ratio = ratios.get(key)
  if (ratio === undefined) ratios.set(key, (ratio = ratioOf([one, other], speeds, own)))
  return ratio
}

function ratioOf(
  [one, other]: [string, string],
  speeds: Readonly<Record<string, TypeSpeed>>,
  own: readonly OwnRatio[],
): RelativeSpeed {
  const isMeasured = speeds[one]!.measured > 0 && speeds[other]!.measured > 0
  const basis = isMeasured ? 'measured' : 'derived'
  if (one === other) return { factor: 1, low: 1, high: 1, basis }
  const { logOf, varianceOf } = beliefOf(speeds, own)
  const factor = Math.exp(logOf(one) - logOf(other))
  const spread = Math.exp(Z_95 * Math.sqrt(varianceOf(one, other)))
  const jobs = own.reduce((sum, ratio) => sum + (isOf(ratio, one) ? ratio.jobs : 0), 0)
  return { factor, low: factor / spread, high: factor * spread, basis, jobs: jobs > 0 ? jobs : undefined }
}

const NO_RATIOS: readonly OwnRatio[] = []

/** The 95 % quantile of the standard normal distribution. */
const Z_95 = 1.6448536

const isOf = (ratio: OwnRatio, name: string): boolean => ratio.accelerator === name || ratio.than === name

/** The variance of a job's logarithm of speed on a type, by the table. */
const variance = ({ spread }: TypeSpeed): number => (Math.log(spread) / Z_95) ** 2

/**
 * Half of the variance between trainings is between deployments, whose jobs are alike, and half between the jobs of one.
 */
const SHARED = 0.5

/** Standard deviations: what surprises more was not limited by the GPU, or is a wrong count of steps. */
const SURPRISES_MAX = 3

interface Belief {
  /** Logarithm of the speed of the deployment's jobs. */
  logOf: (type: string) => number
  /** Variance of the logarithm of one job's ratio of two types. */
  varianceOf: (one: string, other: string) => number
  /** Computed once for each two types: a catalog has thousands of offers of a few. */
  ratios: Map<string, RelativeSpeed>
}

const BELIEFS = new WeakMap<readonly OwnRatio[], Map<Readonly<Record<string, TypeSpeed>>, Belief>>()

function beliefOf(speeds: Readonly<Record<string, TypeSpeed>>, own: readonly OwnRatio[]): Belief {
  let known = BELIEFS.get(own)
  if (known === undefined) BELIEFS.set(own, (known = new Map<Readonly<Record<string, TypeSpeed>>, Belief>()))
  let belief = known.get(speeds)
  if (belief === undefined) known.set(speeds, (belief = updated(speeds, own)))
  return belief
}

/**
 * Applies the conjugate normal update: the table is the prior of the deployment's speeds. Each ratio is an observation of the difference of
 * two speeds, with a certainty that grows with its number of jobs.
 */
function updated(speeds: Readonly<Record<string, TypeSpeed>>, own: readonly OwnRatio[]): Belief {
  const usable = own.filter(({ accelerator, than }) => speeds[accelerator] && speeds[than])
  const types = [...new Set(usable.flatMap(({ accelerator, than }) => [accelerator, than]))]
  const variances = types.map((type) => SHARED * variance(speeds[type]!))
  const means = types.map((type) => Math.log(speeds[type]!.factor))
  const covariance = variances.map((value, row) => variances.map((_, column) => (row === column ? value : 0)))
  const between = (row: number, a: number, b: number): number => covariance[row]![a]! - covariance[row]![b]!
  for (const { accelerator, than, factor, jobs } of usable) {
    const [a, b] = [types.indexOf(accelerator), types.indexOf(than)]
    const ofJobs = ((1 / SHARED - 1) * (variances[a]! + variances[b]!)) / jobs
    const total = between(a, a, b) - between(b, a, b) + ofJobs
    const gains = types.map((_, row) => between(row, a, b) / total)
    const rows = types.map((_, row) => between(row, a, b))
    const limit = SURPRISES_MAX * Math.sqrt(total)
    const surprise = Math.min(limit, Math.max(-limit, Math.log(factor) - (means[a]! - means[b]!)))
    gains.forEach((gain, row) => {
      means[row]! += gain * surprise
      rows.forEach((value, column) => (covariance[row]![column]! -= gain * value))
    })
  }
  const at = (one: string, other: string): number => {
    const [row, column] = [types.indexOf(one), types.indexOf(other)]
    if (row === -1 || column === -1) return one === other ? SHARED * variance(speeds[one]!) : 0
    return covariance[row]![column]!
  }
  return {
    ratios: new Map(),
    logOf: (type) => means[types.indexOf(type)] ?? Math.log(speeds[type]!.factor),
    varianceOf: (one, other) =>
      at(one, one) +
      at(other, other) -
      2 * at(one, other) +
      (1 - SHARED) * (variance(speeds[one]!) + variance(speeds[other]!)),
  }
}
