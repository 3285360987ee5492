import type { Command } from 'commander'
import { Command as ProgramCommand } from 'commander'
import type { Session } from './session'
import { define as defineAdvise } from './commands/advise'
import { define as defineAz } from './commands/az'
import { define as defineCapacity } from './commands/capacity'
import { define as defineCompletion } from './commands/completion'
import { define as defineList } from './commands/list'
import { define as defineQuotas } from './commands/quotas'
import { define as defineSearch } from './commands/search'
import { define as defineSpot } from './commands/spot'
import { define as defineValidate } from './commands/validate'
import { define as defineVersion } from './commands/version'

export interface TruffleCommand {
  name: string
  /** Summary in one line for the list of commands. */
  summary: string
  define: (command: Command, session: Session) => void
}

/** All commands in the order of the help. */
export const TRUFFLE_COMMANDS: readonly TruffleCommand[] = [
  { name: 'search', summary: 'find instance types and where they are sold', define: defineSearch },
  { name: 'az', summary: 'find the zones of instance types', define: defineAz },
  { name: 'spot', summary: 'show spot prices, savings and interruptions', define: defineSpot },
  {
    name: 'capacity',
    summary: 'list reservations and Capacity Blocks, or blocks for sale',
    define: defineCapacity,
  },
  { name: 'quotas', summary: 'show vCPU quotas and their use', define: defineQuotas },
  { name: 'validate', summary: 'check capacity before a training run', define: defineValidate },
  { name: 'advise', summary: 'find the kind of capacity for a use case', define: defineAdvise },
  { name: 'list', summary: 'list accelerators and their instance families', define: defineList },
  { name: 'version', summary: 'print the version', define: defineVersion },
  {
    name: 'completion',
    summary: 'print a completion script for bash, zsh or fish',
    define: defineCompletion,
  },
]

/** The program with all its commands. `onHelp` receives the pieces of a help text. */
export function makeTruffle(session: Session, onHelp: (text: string) => void = () => {}): Command {
  const program = new ProgramCommand('truffle')
    .description('Finds capacity of EC2, and checks it before a costly run. Changes nothing.')
    .option('--version', 'print the version')
    .helpCommand('help [command]', 'show the help of a command')
    .exitOverride()
    // Reported once, like every other error.
    .configureOutput({
      writeOut: onHelp,
      getOutHelpWidth: () => session.out.width,
      writeErr: () => {},
      outputError: () => {},
    })
  session.makeProgram = () => program
  for (const { name, summary, define } of TRUFFLE_COMMANDS)
    define(program.command(name).summary(summary).description(sentence(summary)), session)
  return program
}

function sentence(summary: string): string {
  return `${summary.charAt(0).toUpperCase()}${summary.slice(1)}.`
}

/** The output of `truffle` alone. */
export function truffleHelp(): string {
  const width = Math.max(...TRUFFLE_COMMANDS.map(({ name }) => name.length))
  return [
    'Finds capacity of EC2, and checks it before a costly run. Changes nothing.',
    '',
    'Usage: truffle COMMAND [arguments]',
    '',
    ...TRUFFLE_COMMANDS.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}`),
    '',
    '`truffle COMMAND --help` shows details and examples. `--output json|yaml|csv` prints any answer for programs.',
    'Exit codes: 3 when there is no capacity, 4 for missing credentials or permissions.',
  ].join('\n')
}
