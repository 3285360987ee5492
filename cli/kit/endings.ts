import type { TemporalServerErrorCode } from '../dev/temporal/errors'
import { isCoded } from '../../core/errors'
import { shellQuoted } from './shell'
import { CrucibleError, toCrucibleError, type ErrorKind } from '../../client/errors'

/** Requested help and version, which commander reports as errors. */
const SHOWN = ['commander.helpDisplayed', 'commander.help', 'commander.version']

export interface CommandLine {
  /** The name of the program. */
  program: string
  args: readonly string[]
  /** Returns a hint for a word that people try and that is not a command. */
  pointerFor?: (word: string) => string | undefined
}

/** Returns how a command line ends; `undefined` for requested help and version. */
export function endingOf(thrown: unknown, line: CommandLine): CrucibleError | undefined {
  const { code } = thrown as { code?: unknown }
  if (typeof code === 'string' && SHOWN.includes(code)) return undefined
  return typeof code === 'string' && code.startsWith('commander.')
    ? usageError(thrown as Error, line)
    : asOurs(thrown)
}

/** Returns an error as the document for programs. */
export function errorDocument({ kind, message, hint, details }: CrucibleError): { error: object } {
  return { error: { kind, message, hint: hint ?? null, ...details } }
}

function usageError({ message }: Error, { program, args, pointerFor }: CommandLine): CrucibleError {
  const [first = '', suggestion] = message.replace(/^error: /, '').split('\n')
  const what = first
    .replace(/\.$/, '')
    .replace(/^command-argument value '(.*)' is invalid for argument '(.*?)'/, 'unknown $2 "$1"')
  const command = args.find((arg) => !arg.startsWith('-') && arg !== 'help')
  const isUnknown = /unknown command/.test(what)
  const help = command === undefined || isUnknown ? `${program} --help` : `${program} ${command} --help`
  const pointer = isUnknown ? pointerFor?.(command ?? '') : undefined
  if (pointer !== undefined)
    return new CrucibleError('usage', `Unknown command: ${command}.`, { hint: pointer })
  const meant = suggestion === undefined ? '' : `${suggestion.replace(/^\(|\)$/g, '')} `
  const ofScript = scriptArgumentsIn(args, /^unknown option '([^']+)'/.exec(what)?.[1])
  const moved =
    ofScript === undefined ? '' : `Arguments of the script follow --: \`${program} ${ofScript}\`. `
  return new CrucibleError('usage', `${what}.`, { hint: `${meant}${moved}See \`${help}\`.` })
}

/** The arguments with `--` before an option that we do not know, if a script comes before it. */
function scriptArgumentsIn(args: readonly string[], option: string | undefined): string | undefined {
  const at = args.findIndex((arg) => option !== undefined && (arg === option || arg.startsWith(`${option}=`)))
  if (at === -1 || !args.slice(0, at).some((arg) => arg.endsWith('.py'))) return undefined
  return [...args.slice(0, at), '--', ...args.slice(at)].map(shellQuoted).join(' ')
}

const KIND_OF_SERVER_ERROR: Readonly<Record<TemporalServerErrorCode, ErrorKind>> = {
  configuration: 'usage',
  'no-answer': 'unavailable',
  'not-found': 'unavailable',
  'port-taken': 'failed',
  'in-use': 'failed',
  'data-file': 'failed',
  'start-failed': 'unavailable',
}

/** Errors of the libraries below that the client does not know. */
function asOurs(thrown: unknown): CrucibleError {
  if (!isCoded(thrown, 'temporal')) return toCrucibleError(thrown)
  const { code, message } = thrown
  return new CrucibleError(KIND_OF_SERVER_ERROR[code as TemporalServerErrorCode], message, { cause: thrown })
}
