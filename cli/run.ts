import { isCoded } from '../core/errors'
import { pointerFor, withoutAliases } from './aliases'
import { CrucibleError, toCrucibleError, type ErrorKind } from '../client/errors'
import { Cli, type Outside } from './cli'
import type { TemporalServerErrorCode } from './dev/temporal/errors'
import { helpText } from './help'
import { version } from './package'
import { makeProgram } from './program'

/** Runs one command line, without the program's own name; returns the exit code. Never throws. */
export async function runCli(given: readonly string[], outside: Outside): Promise<number> {
  const args = withoutAliases(given)
  const cli = new Cli(outside, isJsonWanted(args))
  try {
    await dispatch(cli, args)
  } catch (error) {
    report(cli, error, args)
  } finally {
    await cli.close().catch(() => undefined)
  }
  return cli.exitCode
}

/** Set before the arguments are parsed, so that a parse error is JSON too. */
function isJsonWanted(args: readonly string[]): boolean {
  const end = args.indexOf('--')
  return (end === -1 ? args : args.slice(0, end)).includes('--json')
}

async function dispatch(cli: Cli, args: readonly string[]): Promise<void> {
  const [first, second] = args.filter((arg) => arg !== '--json')
  // These two must be fast, and need no other code.
  if (first === '--version' || first === '-V') {
    cli.out.json({ version: version() })
    return cli.out.line(version())
  }
  const isHelp =
    first === undefined ||
    ((first === 'help' || first === '--help' || first === '-h') && second === undefined)
  if (isHelp) return cli.out.help(cli.asCalled(helpText(cli.out.paint)))
  const wanted = first === 'help' ? second : args.find((arg) => !arg.startsWith('-'))
  const help: string[] = []
  const program = makeProgram(cli, {
    isWanted: (name) => name === wanted,
    onHelp: (text) => void help.push(text),
  })
  try {
    await program.parseAsync([...args], { from: 'user' })
  } finally {
    if (help.length > 0) cli.out.help(help.join('').trimEnd())
  }
}

/** Requested help and version, which commander reports as errors. */
const SHOWN = ['commander.helpDisplayed', 'commander.help', 'commander.version']

function report(cli: Cli, thrown: unknown, args: readonly string[]): void {
  const { code } = thrown as { code?: unknown }
  if (typeof code === 'string' && SHOWN.includes(code)) return
  const error =
    typeof code === 'string' && code.startsWith('commander.')
      ? usageError(thrown as Error, args)
      : asOurs(thrown)
  cli.exitCode = error.exitCode
  const { kind, message, hint, details } = error
  if (cli.out.isJson) return cli.out.jsonLine({ error: { kind, message, hint: hint ?? null, ...details } })
  const { paintNote: paint } = cli.out
  cli.out.note(`${paint.red('error:')} ${cli.asCalled(message)}`)
  if (hint !== undefined) cli.out.note(cli.asCalled(hint))
}

function usageError({ message }: Error, args: readonly string[]): CrucibleError {
  const [first = '', suggestion] = message.replace(/^error: /, '').split('\n')
  const what = first.replace(/\.$/, '')
  const command = args.find((arg) => !arg.startsWith('-'))
  const help =
    command === undefined || /unknown command/.test(what) ? 'crucible --help' : `crucible ${command} --help`
  const pointer = /unknown command/.test(what) ? pointerFor(command ?? '') : undefined
  if (pointer !== undefined)
    return new CrucibleError('usage', `Unknown command: ${command}.`, { hint: pointer })
  const meant = suggestion === undefined ? '' : `${suggestion.replace(/^\(|\)$/g, '')} `
  return new CrucibleError('usage', `${what}.`, { hint: `${meant}See \`${help}\`.` })
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
