import { z } from 'zod'

const limits = z.tuple([z.number().positive(), z.number().positive()])
/** Limits on what a machine type reads and writes: the fields of the catalog and of worlds. */
export const typeDisks = {
  ebs: z.strictObject({ mbPerSecond: limits, iops: limits }).optional(),
  /** Baseline and peak of a network card. */
  networkGbps: limits.optional(),
  localDisks: z.strictObject({ count: z.int().positive(), sizeGb: z.int().positive() }).optional(),
}
