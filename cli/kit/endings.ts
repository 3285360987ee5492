import type { Command } from 'commander'
import type { TemporalServerErrorCode } from '../dev/temporal/errors'
import { nearest } from '../../intake/nearest'
import { isCoded } from '../../core/errors'
import { actionMeant, optionMeant, optionOfSurplus } from './aliases'
import { shellQuoted } from './shell'
import { CrucibleError, toCrucibleError, type ErrorKind } from '../../client/errors'

/** Requested help and version, which commander reports as errors. */
const SHOWN = ['commander.helpDisplayed', 'commander.help', 'commander.version']

export interface CommandLine {
  /** The name of the program. */
  program: string
  args: readonly string[]
  /** The part of the program that was defined before the error. */
  commands?: Command | undefined
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

function usageError(error: Error, { program, args, commands, pointerFor }: CommandLine): CrucibleError {
  const [first = ''] = error.message.replace(/^error: /, '').split('\n')
  const name = args.find((arg) => !arg.startsWith('-') && arg !== 'help')
  const command = commands?.commands.find((one) => one.name() === name)
  const what = first
    .replace(/\.$/, '')
    .replace(/^command-argument value '(.*)' is invalid for argument '(.*?)'/, 'unknown $2 "$1"')
    .replace(/^too many arguments for .*/, (words) => surplusIn(command) ?? words)
    .replace(
      /^missing required argument '(.*)'$/,
      (words, argument: string) => `${words}${meaningOf(command, argument)}`,
    )
    .replace(/^unknown option '(--\w[\w-]*)=.*'$/, (words, flag: string) =>
      isFlag(command, flag) ? `${flag} takes no value` : words,
    )
  const isUnknown = /unknown command/.test(what)
  const help = name === undefined || isUnknown ? `${program} --help` : `${program} ${name} --help`
  const pointer = isUnknown ? pointerFor?.(name ?? '') : undefined
  if (pointer !== undefined) return new CrucibleError('usage', `Unknown command: ${name}.`, { hint: pointer })
  const option = /^unknown option '([^'=]+)/.exec(what)?.[1]
  const names = (commands?.commands ?? []).map((one) => one.name())
  const near = isUnknown
    ? nearest(name ?? '', names)
    : option === undefined
      ? (surplusMeant(what, command) ?? choiceMeant(what))
      : optionMeant(option, longsOf(command))
  const meant = near === undefined ? '' : `Did you mean ${near}? `
  // A script that is given such a limit would drop it without a word.
  const isLimit = near !== undefined && LIMITS.includes(near)
  const ofScript = isLimit ? undefined : scriptArgumentsIn(args, option, command)
  const moved =
    ofScript === undefined ? '' : `Arguments of the script follow --: \`${program} ${ofScript}\`. `
  return new CrucibleError('usage', `${what}.`, { hint: `${meant}${moved}See \`${help}\`.` })
}

/** Flags that limit the money and the time of a job. */
const LIMITS = ['--budget', '--max-price', '--deadline']

function choiceMeant(what: string): string | undefined {
  const [, rest] = /^unknown \w+ "(.*)$/.exec(what) ?? []
  const [word = '', choices] = rest?.split('". Allowed choices are ') ?? []
  return choices === undefined ? undefined : actionMeant(word, choices.split(', '))
}

function surplusMeant(what: string, command: Command | undefined): string | undefined {
  const [, word] = /^unexpected argument "([^"]+)": /.exec(what) ?? []
  return command === undefined || word === undefined
    ? undefined
    : optionOfSurplus({ name: command.name(), word })
}

const longsOf = (command: Command | undefined): string[] =>
  (command?.options ?? []).flatMap(({ long }) => long ?? [])

/** Names the words that a command cannot place. */
function surplusIn(command: Command | undefined): string | undefined {
  if (command === undefined) return undefined
  const { registeredArguments: known, args } = command
  const surplus = args.slice(known.length).map((word) => JSON.stringify(word))
  const takes =
    known.length === 0 ? 'takes none' : `takes ${known.map((one) => `<${one.name()}>`).join(' ')} only`
  return `unexpected argument ${surplus.join(' ')}: ${command.name()} ${takes}`
}

function meaningOf(command: Command | undefined, name: string): string {
  const argument = command?.registeredArguments.find((one) => one.name() === name)
  const meaning = argument?.argChoices?.join(', ') ?? argument?.description
  return meaning ? `: ${meaning}` : ''
}

function isFlag(command: Command | undefined, flag: string): boolean {
  return command?.options.some((option) => option.long === flag && option.isBoolean()) === true
}

/** The arguments with those behind `--` that we do not know, if a script comes before the first one. */
function scriptArgumentsIn(
  args: readonly string[],
  unknown: string | undefined,
  command: Command | undefined,
): string | undefined {
  const isUnknown = (arg: string): boolean =>
    unknown !== undefined && (arg === unknown || arg.startsWith(`${unknown}=`))
  const at = args.findIndex(isUnknown)
  if (at === -1 || !args.slice(0, at).some((arg) => arg.endsWith('.py'))) return undefined
  const [own, ofScript] = [args.slice(0, at), [] as string[]]
  let isOwn = false
  for (const arg of args.slice(at)) {
    const option = command?.options.find(({ short, long }) => arg === short || arg.split('=')[0] === long)
    if (arg.startsWith('-')) isOwn = option !== undefined
    else if (!isOwn) ofScript.push(arg)
    if (isOwn) own.push(arg)
    else if (arg.startsWith('-')) ofScript.push(arg)
    // The value of an option follows it.
    if (!arg.startsWith('-') || option?.isBoolean() === true || arg.includes('=')) isOwn = false
  }
  return [...own, '--', ...ofScript].map(shellQuoted).join(' ')
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
