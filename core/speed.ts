import { ACCELERATOR_SPEEDS } from './accelerator-speeds'
import { findAccelerator } from './accelerators'

/** Kinds of training whose speed depends on the accelerator in the same way; `fp32` is training in fp32, or TF32 where a GPU has it. */
export const WORK_FAMILIES = [
  ...(['convolution', 'transformer', 'recurrent', 'recommendation'] as const),
  ...(['fp32', 'memory-bound'] as const),
] as const
/** @public */
export type WorkFamily = (typeof WORK_FAMILIES)[number]

/** How fast one accelerator type trains, as a multiple of another one's speed. */
export interface RelativeSpeed {
  factor: number
  /** Of ten trainings, nine are expected between these two. */
  low: number
  high: number
  /** `measured`: published measurements of this type. `derived`: from its throughput and memory bandwidth, with a wider range. */
  basis: 'measured' | 'derived'
}

/** For each family, and for work of an unknown one, the speeds of all types. */
export type SpeedTable = Readonly<
  Record<
    WorkFamily | 'pooled',
    Readonly<Record<string, { factor: number; spread: number; measured: number }>>
  >
>

/** Whose speed an estimate without an accelerator refers to. */
export const SPEED_REFERENCE = 'A100'

/**
 * The speed of an accelerator as a multiple of another one's; `undefined` if one of them is unknown. The range is that of trainings of a
 * family, or of all kinds.
 */
export function speedOf(accelerator: string, than: string, family?: WorkFamily): RelativeSpeed | undefined {
  const speeds = ACCELERATOR_SPEEDS[family ?? 'pooled']
  const [one, other] = [accelerator, than].map((name) => findAccelerator(name)?.name ?? name)
  const [a, b] = [speeds[one!], speeds[other!]]
  if (a === undefined || b === undefined) return undefined
  const basis = a.measured > 0 && b.measured > 0 ? 'measured' : 'derived'
  if (one === other) return { factor: 1, low: 1, high: 1, basis }
  const factor = a.factor / b.factor
  // Both deviate, each in its own way.
  const spread = Math.exp(Math.hypot(Math.log(a.spread), Math.log(b.spread)))
  return { factor, low: factor / spread, high: factor * spread, basis }
}
