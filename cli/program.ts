import { createRequire } from 'node:module'
import type { Command } from 'commander'
import type * as commander from 'commander'
import type { Cli } from './cli'

const lazily = createRequire(__filename)

/** A command's file: defines its arguments, and runs it. */
interface CommandModule {
  define(command: Command, cli: Cli): void
}

export interface CommandEntry {
  name: string
  group: string
  /** Summary in one line for the list of commands. */
  summary: string
  load: () => CommandModule
}

/** `file` is the command's file in `commands/`, named as the command. */
function entry(group: string, file: string, summary: string): CommandEntry {
  const name = file.slice(file.lastIndexOf('/') + 1)
  return { group, name, summary, load: () => lazily(`./commands/${file}`) as CommandModule }
}

/** All commands in the order of the help. Only the requested one is loaded. */
export const COMMANDS: readonly CommandEntry[] = [
  entry('Begin', 'deployment/demo', 'watch a job lose two machines and still finish'),
  entry('Begin', 'deployment/dev', 'run everything on this machine: Temporal server, workers'),
  entry('Run jobs', 'job/submit', 'submit a job file or a Python script'),
  entry('Run jobs', 'job/plan', 'show where a job would run, and why'),
  entry('Run jobs', 'job/analyze', 'read a training script without running it'),
  entry('Run jobs', 'job/init', 'write a job file for a training program'),
  entry('Run jobs', 'job/rehearse', 'test whether a job survives interruptions'),
  entry('Run jobs', 'job/cancel', 'ask a job to save and stop'),
  entry('Run jobs', 'job/migrate', 'move a running job'),
  entry('Run jobs', 'job/extend', 'give a job a new deadline or budget'),
  entry('Run jobs', 'job/retry', 'retry now instead of later'),
  entry('Run jobs', 'retraining/schedule', 'retrain models on a calendar'),
  entry('Look', 'job/list', 'list jobs'),
  entry('Look', 'job/show', 'show a job: progress, cost, attempts'),
  entry('Look', 'job/logs', 'print or follow the log of a job'),
  entry('Look', 'job/events', 'show what happened to a job'),
  entry('Look', 'job/why', 'explain the decisions about a job, or decide again'),
  entry('Look', 'job/artifacts', 'list or download the artifacts of a job'),
  entry('Look', 'job/checkpoints', 'list, verify or download the checkpoints of a job'),
  entry('Operate', 'deployment/setup', 'set up a provider account, or remove the set-up'),
  entry('Operate', 'deployment/worker', 'run workers until stopped'),
  entry('Operate', 'deployment/workers', 'show the running workers and their load'),
  entry('Operate', 'deployment/budget', 'show the monthly budget and spending'),
  entry('Operate', 'deployment/costs', 'show what ended jobs cost, by owner or place'),
  entry('Operate', 'reservation/reservations', 'reserve capacity, approve purchases, show what is held'),
  entry('Operate', 'deployment/gc', 'remove orphaned machines, volumes and uploads'),
  entry('Operate', 'job/interrupt', 'interrupt a spot machine, as a provider would'),
  entry('Operate', 'deployment/doctor', 'check the set-up and suggest fixes'),
  entry('Operate', 'deployment/completion', 'print a completion script for bash, zsh or fish'),
]

/** Called by completion scripts only. @internal The bundle of the quick commands has them too. */
export const HIDDEN_COMMANDS: readonly CommandEntry[] = [entry('', 'job/jobs-for-completion', '')]

/** Commands that show nothing of the deployment, or say themselves that it is simulated. */
const OF_NO_DEPLOYMENT: readonly string[] = [
  'analyze',
  'completion',
  'demo',
  'dev',
  'jobs-for-completion',
  'setup',
]

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
  program.hook('preAction', (_program, command) => {
    if (!OF_NO_DEPLOYMENT.includes(command.name())) cli.out.noteSimulated()
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
