/** Fields shared by the documents between the control plane and the runner. */
import { z } from 'zod'
import { isInnerPath } from './paths'

export const whole = z.int().min(0)
export const fromOne = z.int().min(1)
export const lowerCaseWords = z.string().regex(/^[a-z]+(-[a-z]+)*$/, 'must be lower-case words with dashes')
export const sha256 = z.string().regex(/^[0-9a-f]{64}$/, 'must be 64 hexadecimal digits')
export const innerPath = z.string().refine(isInnerPath, 'must be a relative path without ".."')
