import type { Command } from 'commander'
import { pointerFor, withoutAliases, withoutLostHelp } from './kit/aliases'
import { Cli, type Outside } from './cli'
import { CrucibleError } from '../client/errors'
import { homeOf } from '../client/config'
import { fullDiskInWords } from '../storage/full-disk'
import { endingOf, errorDocument, type CommandLine } from './kit/endings'
import { helpText } from './kit/help'
import { version } from './kit/package'
import { makeProgram } from './program'
import { leadFetchOutside } from '../network/fetch'

/** Runs one command line, without the program's name; returns the exit code. Never throws. */
export async function runCli(given: readonly string[], outside: Outside): Promise<number> {
  const args = withoutAliases(given)
  const cli = new Cli(outside, isJsonWanted(args))
  let commands: Command | undefined
  try {
    await dispatch(cli, args, (program) => (commands = program))
  } catch (error) {
    report(cli, error, { program: 'crucible', args, commands, pointerFor })
  } finally {
    await cli.close().catch(() => undefined)
  }
  return cli.exitCode
}

/** Whether JSON is requested, determined before the arguments are parsed, so that a parse error is JSON too. */
function isJsonWanted(args: readonly string[]): boolean {
  const end = args.indexOf('--')
  return (end === -1 ? args : args.slice(0, end)).includes('--json')
}

async function dispatch(
  cli: Cli,
  args: readonly string[],
  onProgram: (program: Command) => void,
): Promise<void> {
  const [first, second] = args.filter((arg) => arg !== '--json')
  // These two flags must be fast, and need no other code.
  if (first === '--version' || first === '-V') {
    cli.out.json({ version: version() })
    return cli.out.line(version())
  }
  const isHelp =
    first === undefined ||
    ((first === 'help' || first === '--help' || first === '-h') && second === undefined)
  if (isHelp) return cli.out.help(cli.asCalled(helpText(cli.out.paint)))
  leadFetchOutside()
  const wanted = first === 'help' ? second : args.find((arg) => !arg.startsWith('-'))
  const help: string[] = []
  const program = makeProgram(cli, {
    isWanted: (name) => name === wanted,
    onHelp: (text) => void help.push(text),
  })
  onProgram(program)
  try {
    await program.parseAsync(withoutLostHelp(program, args), { from: 'user' })
  } finally {
    if (help.length > 0) cli.out.help(help.join('').trimEnd())
  }
}

/** A server that does not answer may have no space to write: its disk says so. */
function withCause(cli: Cli, error: CrucibleError): CrucibleError {
  if (error.kind !== 'unavailable') return error
  const words = fullDiskInWords(homeOf(cli.environment).directory)
  if (words === undefined) return error
  const { kind, message, hint = '', cause, details } = error
  return new CrucibleError(kind, message, { hint: `${words} ${hint}`.trimEnd(), cause, details })
}

function report(cli: Cli, thrown: unknown, line: CommandLine): void {
  const ended = endingOf(thrown, line)
  if (ended === undefined) return
  const error = withCause(cli, ended)
  cli.exitCode = error.exitCode
  if (cli.out.isJson) return cli.out.jsonLine(errorDocument(error))
  const { paintNote: paint } = cli.out
  cli.out.note(`${paint.red('error:')} ${cli.asCalled(error.message)}`)
  if (error.hint !== undefined) cli.out.note(cli.asCalled(error.hint))
}
