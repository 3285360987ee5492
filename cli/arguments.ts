import { InvalidArgumentError } from 'commander'
import { parseBackendChoice, parseDuration, UnitError } from '../client/job-file'
import type { BackendChoice } from '../core/offer'

/** A parser of the job file for an argument of a flag. */
function argument<T>(parse: (text: string) => T): (text: string) => T {
  return (text) => {
    try {
      return parse(text)
    } catch (error) {
      if (!(error instanceof UnitError)) throw error
      const { message, remedy } = error
      throw new InvalidArgumentError(`${message}; ${remedy}.`)
    }
  }
}

/** A duration in milliseconds. */
export const durationArgument = argument<number>(parseDuration)
/** `local`, `local:spot` */
export const backendArgument = argument<BackendChoice>(parseBackendChoice)

/** A whole number from 1 to `most`. */
export function countArgument(most: number): (text: string) => number {
  return (text) => {
    if (/^\d+$/.test(text) && Number(text) >= 1 && Number(text) <= most) return Number(text)
    throw new InvalidArgumentError(`Write a whole number from 1 to ${most}.`)
  }
}
