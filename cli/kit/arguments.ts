import { InvalidArgumentError } from 'commander'
import type * as jobFile from '../../client/job/file'
import type { BackendChoice } from '../../core/offer'
import type { WhatIf } from '../../core/job/what-if'
import type { Cli } from '../cli'
import type { Deadline } from '../../intake/units'

/** The instant of a `timeArgument`, for a command that sends it: a duration counts from the deployment's present time. */
export async function instantFor(cli: Pick<Cli, 'presentTime'>, time: Deadline): Promise<number> {
  return 'atMs' in time ? time.atMs : instantOf(time, await cli.presentTime())
}

/** The instant of a `timeArgument`. */
export function instantOf(time: Deadline, nowMs: number): number {
  return 'atMs' in time ? time.atMs : nowMs + time.afterMs
}

/** A parser of the job file for an argument of a flag. */
function argument<T>(parserOf: (parsers: typeof jobFile) => (text: string) => T): (text: string) => T {
  return (text) => {
    const parsers = require('../../client/job/file') as typeof jobFile
    try {
      return parserOf(parsers)(text)
    } catch (error) {
      if (!(error instanceof parsers.UnitError)) throw error
      const { message, remedy } = error
      throw new InvalidArgumentError(`${message}; ${remedy}.`)
    }
  }
}

/** A duration in milliseconds. */
export const durationArgument = argument<number>(({ parseDuration }) => parseDuration)
/** An amount of money in micro-dollars. */
export const moneyArgument = argument<number>(({ parseMoney }) => parseMoney)
/** An instant with its zone, or a duration from now. */
export const timeArgument = argument<Deadline>(({ parseDeadline }) => parseDeadline)
/** `local`, `local:spot` */
export const backendArgument = argument<BackendChoice>(({ parseBackendChoice }) => parseBackendChoice)

/** `price.spot=+50%`, `deadline=+6h` */
export const whatIfArgument = argument<WhatIf>(({ parseWhatIf }) => parseWhatIf)

/** A whole number from 1 to `most`. */
export function countArgument(most: number): (text: string) => number {
  return (text) => {
    if (/^\d+$/.test(text) && Number(text) >= 1 && Number(text) <= most) return Number(text)
    throw new InvalidArgumentError(`Write a whole number from 1 to ${most}.`)
  }
}
