/** The forms of names in a world file. */
import { z } from 'zod'

export const zoneName = z
  .string()
  .regex(/^[a-z]{2}(-[a-z]+)+-\d[a-z]$/, 'is not the name of a zone, such as us-east-1a')
export const regionName = z
  .string()
  .regex(/^[a-z]{2}(-[a-z]+)+-\d$/, 'is not the name of a region, such as us-east-1')
export const account = z.string().regex(/^\d{12}$/, 'must be 12 digits in quotes')
