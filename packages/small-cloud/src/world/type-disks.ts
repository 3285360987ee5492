import { z } from 'zod'

const limits = z.tuple([z.number().positive(), z.number().positive()])
/** The disks of a type, in the catalog and in worlds. */
export const typeDisks = {
  ebs: z.strictObject({ mbPerSecond: limits, iops: limits }).optional(),
  localDisks: z.strictObject({ count: z.int().positive(), sizeGb: z.int().positive() }).optional(),
}
