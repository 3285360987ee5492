import { parseArgs, type ParseArgsConfig } from 'node:util'
import { SAID_NOTHING, type ProgramAnswer, type ProgramCall } from '../control'
import { ProgramError } from '../errors'
import type { Manager } from './manager'
import { withSuffix } from './manager'
import { applyProperty, defaultSettings, setVariable, type ServiceSettings } from './settings'

const text = { type: 'string' } as const
const texts = { type: 'string', multiple: true } as const
const flag = { type: 'boolean' } as const

const OPTIONS = {
  unit: { ...text, short: 'u' },
  property: { ...texts, short: 'p' },
  description: text,
  'service-type': text,
  setenv: { ...texts, short: 'E' },
  'working-directory': text,
  'same-dir': { ...flag, short: 'd' },
  collect: { ...flag, short: 'G' },
  wait: flag,
  quiet: { ...flag, short: 'q' },
  uid: text,
} satisfies ParseArgsConfig['options']

type Values = ReturnType<typeof readArguments>['values']

/** `systemd-run`: a transient service. */
export async function systemdRun(call: ProgramCall, manager: Manager): Promise<ProgramAnswer> {
  const { values, argv } = readArguments(call.arguments)
  const settings = settingsOf(values, argv, call.directory)
  const base = values.unit === undefined ? manager.inventName() : values.unit.replace(/\.service$/, '')
  if (!/^[\w:.@\\-]{1,248}$/.test(base))
    throw new ProgramError(`Failed to mangle unit name: ${base} is not valid`)
  const said = (line: string): string => (values.quiet === true ? '' : `${line}\n`)
  const service = withSuffix(base)
  const unit = await manager.startService(service, settings)
  const stderr = said(`Running as unit: ${service}`)
  if (values.wait !== true) return { ...SAID_NOTHING, stderr }
  await unit.settled
  const exitCode = Number(unit.properties()['ExecMainStatus'])
  return { exitCode, stdout: '', stderr: stderr + said(`Finished with result: ${unit.result}`) }
}

/** Options end at the first word of the command. */
function readArguments(args: string[]): { values: ReturnType<typeof parse>['values']; argv: string[] } {
  const at = commandAt(args)
  return { values: parse(args.slice(0, at)).values, argv: args.slice(args[at] === '--' ? at + 1 : at) }
}

function parse(args: string[]) {
  try {
    return parseArgs({ args, options: OPTIONS, strict: true })
  } catch (error) {
    throw new ProgramError(
      `systemd-run: ${(error as Error).message.split('.')[0]} (or an option that machines of this cloud do not have)`,
    )
  }
}

function commandAt(args: string[]): number {
  const options = Object.entries(OPTIONS)
  for (let at = 0; at < args.length; at++) {
    const word = args[at]!
    if (word === '--' || !word.startsWith('-')) return at
    if (word.includes('=') && word.startsWith('--')) continue
    const [, option] =
      options.find(([name, one]) => word === `--${name}` || ('short' in one && word === `-${one.short}`)) ??
      []
    if (option?.type === 'string') at++
  }
  return args.length
}

function settingsOf(values: Values, argv: string[], directory: string): ServiceSettings {
  if (argv.length === 0) throw new ProgramError('Command line to execute required.')
  const settings = defaultSettings(argv)
  const given: [name: string, value: string | undefined][] = [
    ['Description', values.description],
    ['Type', values['service-type']],
    [
      'WorkingDirectory',
      values['working-directory'] ?? (values['same-dir'] === true ? directory : undefined),
    ],
    ['CollectMode', values.collect === true ? 'inactive-or-failed' : undefined],
    ['User', values.uid],
  ]
  for (const [name, value] of given) if (value !== undefined) applyProperty(settings, `${name}=${value}`)
  for (const variable of values.setenv ?? []) setVariable(settings, variable)
  for (const property of values.property ?? []) applyProperty(settings, property)
  return settings
}
