import { parseArgs, type ParseArgsConfig } from 'node:util'
import { SAID_NOTHING, type ProgramAnswer, type ProgramCall } from '../control'
import { ProgramError } from '../errors'
import { Journal } from './journal'
import type { Ground } from './launch'
import { withSuffix } from './manager'

const OPTIONS = {
  unit: { type: 'string', short: 'u' },
  lines: { type: 'string', short: 'n', default: '10' },
  output: { type: 'string', short: 'o' },
  boot: { type: 'boolean', short: 'b' },
  'no-pager': { type: 'boolean' },
} satisfies ParseArgsConfig['options']

/** `journalctl` for one unit, also for one that is no longer loaded: the last lines of its output, without times. */
export function journalctl(call: ProgramCall, ground: Ground): ProgramAnswer {
  const { unit, lines } = parse(call.arguments).values
  if (unit === undefined) throw new ProgramError('journalctl: machines of this cloud show single units only')
  const told = new Journal(ground.journalFile(withSuffix(unit))).tail(Number(lines))
  return { ...SAID_NOTHING, stdout: told.length === 0 ? '-- No entries --\n' : `${told.join('\n')}\n` }
}

function parse(args: string[]) {
  try {
    return parseArgs({ args, options: OPTIONS, strict: true })
  } catch (error) {
    throw new ProgramError(
      `journalctl: ${(error as Error).message.split('.')[0]} (or an option that machines of this cloud do not have)`,
    )
  }
}
