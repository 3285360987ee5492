import { ACCELERATOR_SPEEDS } from './accelerator-speeds'
import { findAccelerator } from './accelerators'

/** How fast one accelerator type trains, as a multiple of another one's speed. */
export interface RelativeSpeed {
  factor: number
  /** Of ten trainings, nine are expected between these two. */
  low: number
  high: number
  /** `measured`: published measurements of this type. `derived`: from its throughput and memory bandwidth, with a wider range. */
  basis: 'measured' | 'derived'
}

/** Whose speed an estimate without an accelerator refers to. */
export const SPEED_REFERENCE = 'A100'

/**
 * The speed of an accelerator as a multiple of another one's; `undefined` if one of them is unknown. The range is that of trainings in
 * mixed precision: a single one may use memory, fp32 or recurrent layers much more.
 */
export function speedOf(accelerator: string, than: string): RelativeSpeed | undefined {
  const [one, other] = [accelerator, than].map((name) => findAccelerator(name)?.name ?? name)
  const [a, b] = [ACCELERATOR_SPEEDS[one!], ACCELERATOR_SPEEDS[other!]]
  if (a === undefined || b === undefined) return undefined
  if (one === other) return { ...a, factor: 1, low: 1, high: 1 }
  const factor = a.factor / b.factor
  // Both deviate, each in its own way.
  const below = Math.hypot(Math.log(a.factor / a.low), Math.log(b.high / b.factor))
  const above = Math.hypot(Math.log(a.high / a.factor), Math.log(b.factor / b.low))
  const basis = a.basis === b.basis ? a.basis : 'derived'
  return { factor, low: factor * Math.exp(-below), high: factor * Math.exp(above), basis }
}
