import { CrucibleError, toCrucibleError } from '../../client/errors'
import { endingOf } from '../kit/endings'
import { version } from '../kit/package'
import { FORMATS, writeError, type Format } from './answer'
import { makeTruffle, truffleHelp } from './program'
import { Session, type TruffleOutside } from './session'
import { withoutLostHelp } from '../kit/aliases'
import { leadFetchOutside } from '../../network/fetch'
import { pointerForTruffle, withoutTruffleAliases } from './aliases'

/** Runs one command line of truffle, without the program's name; returns the exit code. Never throws. */
export async function runTruffle(given: readonly string[], outside: TruffleOutside): Promise<number> {
  const args = withoutTruffleAliases(given)
  const { config } = outside
  const isColourWanted = config.isColourWanted && !args.includes('--no-color')
  const session = new Session({ ...outside, config: { ...config, isColourWanted } }, formatOf(args))
  try {
    await dispatch(session, args)
  } catch (error) {
    report(session, outside, { error, args })
  } finally {
    await session.cli.close().catch(() => undefined)
  }
  return session.cli.exitCode
}

async function dispatch(session: Session, args: readonly string[]): Promise<void> {
  const [first, second] = withoutFormat(args)
  if (first === '--version' || first === '-V') return session.text('version', version())
  const isHelp =
    first === undefined ||
    ((first === 'help' || first === '--help' || first === '-h') && second === undefined)
  if (isHelp) return session.text('help', truffleHelp())
  leadFetchOutside()
  const help: string[] = []
  try {
    const program = makeTruffle(session, (text) => void help.push(text))
    await program.parseAsync(withoutLostHelp(program, args), { from: 'user' })
  } finally {
    if (help.length > 0) session.text('help', help.join('').trimEnd())
  }
}

function report(
  session: Session,
  outside: TruffleOutside,
  { error, args }: { error: unknown; args: readonly string[] },
): void {
  const ending =
    strayWords(error, args) ??
    endingOf(error, {
      program: 'truffle',
      args,
      commands: session.makeProgram?.(),
      pointerFor: pointerForTruffle,
    })
  if (ending === undefined) return
  const isInterrupted = session.cli.interruption().aborted
  if (!isInterrupted) session.cli.exitCode = toCrucibleError(ending).exitCode
  writeError(ending, { format: session.format, out: session.out, stdout: outside.stdout })
}

/** Too many words are usually a list without commas, or values without their options. */
function strayWords(error: unknown, args: readonly string[]): CrucibleError | undefined {
  if ((error as { code?: unknown }).code !== 'commander.excessArguments') return undefined
  const [command = ''] = args
  const words = args.slice(1).filter((arg) => !arg.startsWith('-'))
  const isList = words.length > 1 && command !== 'validate'
  return new CrucibleError('usage', `truffle ${command} cannot place all of these: ${words.join(' ')}.`, {
    hint: isList
      ? `Separate several values of an option with commas: --regions us-east-1,us-west-2. See \`truffle ${command} --help\`.`
      : command === 'validate'
        ? 'Name each: truffle validate --instance-type p5.48xlarge --count 32 --days 7'
        : `Name it with an option, such as --instance-types ${words.join(',')}. See \`truffle ${command} --help\`.`,
  })
}

function withoutFormat(args: readonly string[]): string[] {
  const isFormat = (arg: string | undefined): boolean => arg === '--output' || arg === '-o'
  return args.filter(
    (arg, index) =>
      arg !== '--json' && !isFormat(arg) && !isFormat(args[index - 1]) && !/^(?:--output=|-o.)/.test(arg),
  )
}

/** Reads the requested format before the command line is parsed, so that a parsing error has it too. */
function formatOf(args: readonly string[]): Format {
  const end = args.indexOf('--')
  const own = end === -1 ? args : args.slice(0, end)
  let format: Format = own.includes('--json') ? 'json' : 'table'
  for (const [index, arg] of own.entries()) {
    const [, inline] = /^(?:--output=|-o=?)(.+)$/.exec(arg) ?? []
    const named = inline ?? (arg === '--output' || arg === '-o' ? own[index + 1] : undefined)
    const known = FORMATS.find((one) => one === named?.toLowerCase())
    if (known !== undefined) format = known
  }
  return format
}
