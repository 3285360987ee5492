import { createRequire } from 'node:module'
import type { Command } from 'commander'
import type * as commander from 'commander'
import type { Cli } from './cli'

const lazily = createRequire(__filename)

/** A command's file: defines its arguments, and runs it. */
export interface CommandModule {
  define(command: Command, cli: Cli): void
}

export interface CommandEntry {
  name: string
  group: string
  /** One line for the list of commands. */
  summary: string
  load: () => CommandModule
}

function entry(group: string, name: string, summary: string): CommandEntry {
  return { group, name, summary, load: () => lazily(`./commands/${name}`) as CommandModule }
}

/** Every command, in the order of the help. Only the requested one is loaded. */
export const COMMANDS: readonly CommandEntry[] = [
  entry('Begin', 'demo', 'watch a job lose two machines and still finish'),
  entry('Begin', 'dev', 'run everything on this machine: Temporal server, workers'),
  entry('Run jobs', 'submit', 'submit a job file or a Python script'),
  entry('Run jobs', 'plan', 'show where a job would run, and why'),
  entry('Run jobs', 'analyze', 'read a training script without running it'),
  entry('Run jobs', 'rehearse', 'test whether a job survives interruptions'),
  entry('Run jobs', 'cancel', 'ask a job to save and stop'),
  entry('Run jobs', 'migrate', 'move a running job'),
  entry('Run jobs', 'extend', 'give a job a new deadline or budget'),
  entry('Run jobs', 'retry', 'retry now instead of later'),
  entry('Run jobs', 'schedule', 'train models anew on a calendar'),
  entry('Look', 'list', 'list jobs'),
  entry('Look', 'show', 'show a job: progress, cost, attempts'),
  entry('Look', 'logs', 'print or follow the log of a job'),
  entry('Look', 'events', 'show what happened to a job'),
  entry('Look', 'why', 'explain the decisions about a job, or decide again'),
  entry('Look', 'artifacts', 'list or download the artifacts of a job'),
  entry('Look', 'checkpoints', 'list, verify or download the checkpoints of a job'),
  entry('Operate', 'setup', 'set up a provider account, or remove the set-up'),
  entry('Operate', 'worker', 'run workers until stopped'),
  entry('Operate', 'budget', 'show the monthly budget and spending'),
  entry('Operate', 'reservations', 'reserve capacity, approve purchases, show what is held'),
  entry('Operate', 'gc', 'remove orphaned machines, volumes and uploads'),
  entry('Operate', 'interrupt', 'interrupt a spot machine, as a provider would'),
  entry('Operate', 'doctor', 'check the set-up and suggest fixes'),
  entry('Operate', 'completion', 'print a completion script for bash, zsh or fish'),
]

/** Called by completion scripts only. */
export const HIDDEN_COMMANDS: readonly CommandEntry[] = [entry('', 'jobs-for-completion', '')]

export interface ProgramOptions {
  /** Commands to define; the others are only listed. */
  isWanted: (name: string) => boolean
  /** Receives the pieces of a help text. */
  onHelp?: (text: string) => void
}

/** The program with all its commands. */
export function makeProgram(cli: Cli, { isWanted, onHelp = () => {} }: ProgramOptions): Command {
  const { Command: ProgramCommand } = require('commander') as typeof commander
  const program = new ProgramCommand('crucible')
    .description('Runs ML jobs to completion on whatever capacity is cheapest, soonest or safest.')
    .option('--json', 'print JSON')
    .option('--version', 'print the version')
    .helpCommand('help [command]', 'show the help of a command')
    .exitOverride()
    // Reported once, like every other error.
    .configureOutput({
      writeOut: onHelp,
      getOutHelpWidth: () => cli.out.width,
      writeErr: () => {},
      outputError: () => {},
    })
  for (const { name, summary, load } of COMMANDS) {
    const command = program.command(name).summary(summary).description(sentence(summary))
    if (isWanted(name)) load().define(command.option('--json', 'print JSON'), cli)
  }
  for (const { name, load } of HIDDEN_COMMANDS) {
    if (isWanted(name)) load().define(program.command(name, { hidden: true }), cli)
  }
  return program
}

function sentence(summary: string): string {
  return `${summary.charAt(0).toUpperCase()}${summary.slice(1)}.`
}
