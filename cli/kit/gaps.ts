import { EXIT_CODES } from '../../client/errors'
import type { Cli } from '../cli'

/** Tells a person, and the exit code, what an answer lacks. Returns it for the answer's document; null without gaps. */
export function tellGaps(cli: Cli, gaps: readonly string[]): string | null {
  if (gaps.length === 0) return null
  const incomplete = [...new Set(gaps)].join(' ')
  cli.exitCode = EXIT_CODES.unavailable
  cli.out.note(cli.out.paintNote.yellow(cli.asCalled(incomplete)))
  return incomplete
}
