import { parseArgs, type ParseArgsConfig } from 'node:util'
import { SAID_NOTHING, type ProgramAnswer, type ProgramCall } from '../control'
import { ProgramError } from '../errors'
import type { Manager } from './manager'
import { withSuffix } from './manager'
import { applyProperty, defaultSettings, setVariable, type ServiceSettings } from './settings'
import { parseTimeSpan } from './time-spans'
import type { TimerSettings } from './timer-unit'

const text = { type: 'string' } as const
const texts = { type: 'string', multiple: true } as const
const flag = { type: 'boolean' } as const

const OPTIONS = {
  unit: { ...text, short: 'u' },
  property: { ...texts, short: 'p' },
  description: text,
  slice: text,
  'service-type': text,
  setenv: { ...texts, short: 'E' },
  'working-directory': text,
  'same-dir': { ...flag, short: 'd' },
  'remain-after-exit': { ...flag, short: 'r' },
  collect: { ...flag, short: 'G' },
  wait: flag,
  'no-block': flag,
  'no-ask-password': flag,
  quiet: { ...flag, short: 'q' },
  uid: text,
  nice: text,
  'on-active': text,
  'on-unit-active': text,
  'on-calendar': text,
  'timer-property': texts,
  system: flag,
} satisfies ParseArgsConfig['options']

type Values = ReturnType<typeof readArguments>['values']

/** `systemd-run`: a transient service, now or by a timer. */
export async function systemdRun(call: ProgramCall, manager: Manager): Promise<ProgramAnswer> {
  const { values, argv } = readArguments(call.arguments)
  const settings = settingsOf(values, argv, call.directory)
  const base =
    values.unit === undefined ? manager.inventName() : values.unit.replace(/\.(?:service|timer)$/, '')
  if (!/^[\w:.@\\-]{1,248}$/.test(base))
    throw new ProgramError(`Failed to mangle unit name: ${base} is not valid`)
  const said = (line: string): string => (values.quiet === true ? '' : `${line}\n`)
  const timer = timerOf(values)
  const service = withSuffix(base)
  if (timer !== undefined) {
    manager.startTimer({ name: `${base}.timer`, settings: timer, service: settings })
    return {
      ...SAID_NOTHING,
      stderr: said(`Running timer as unit: ${base}.timer`) + said(`Will run service as unit: ${service}`),
    }
  }
  const unit = await manager.startService(service, settings)
  const stderr = said(`Running as unit: ${service}`)
  if (values.wait !== true) return { ...SAID_NOTHING, stderr }
  await unit.settled
  const exitCode = Number(unit.properties()['ExecMainStatus'])
  return { exitCode, stdout: '', stderr: stderr + said(`Finished with result: ${unit.result}`) }
}

/** Options end where the command begins. */
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
    ['RemainAfterExit', values['remain-after-exit'] === true ? 'yes' : undefined],
    ['CollectMode', values.collect === true ? 'inactive-or-failed' : undefined],
    ['User', values.uid],
  ]
  for (const [name, value] of given) if (value !== undefined) applyProperty(settings, `${name}=${value}`)
  for (const variable of values.setenv ?? []) setVariable(settings, variable)
  for (const property of values.property ?? []) applyProperty(settings, property)
  return settings
}

/** Accuracy and the like are without effect: these timers are exact. */
const TIMER_PROPERTIES =
  /^(?:AccuracySec|RandomizedDelaySec|FixedRandomDelay|RemainAfterElapse|WakeSystem|Persistent)=/

function timerOf(values: Values): TimerSettings | undefined {
  for (const property of values['timer-property'] ?? [])
    if (!TIMER_PROPERTIES.test(property)) throw new ProgramError(`Unknown assignment: ${property}`)
  const [active, repeat, calendar] = [values['on-active'], values['on-unit-active'], values['on-calendar']]
  if (active === undefined && repeat === undefined && calendar === undefined) return undefined
  if (active === undefined && calendar === undefined)
    throw new ProgramError('--on-unit-active= never begins without --on-active= on a machine of this cloud.')
  return {
    ...(values.description !== undefined && { description: values.description }),
    activeMs: active === undefined ? untilInstant(calendar!) : parseTimeSpan(active),
    ...(repeat !== undefined && { repeatMs: parseTimeSpan(repeat) }),
  }
}

/** Calendar events of the simplest kind: one instant. */
function untilInstant(calendar: string): number {
  const match = /^(\d{4}-\d{2}-\d{2})[ T](\d{2}:\d{2}(?::\d{2})?)(?:Z| UTC)$/.exec(calendar)
  const instant = match === null ? NaN : Date.parse(`${match[1]}T${match[2]}Z`)
  if (Number.isNaN(instant))
    throw new ProgramError(
      `Failed to parse calendar expression: ${calendar} (machines of this cloud know 'YYYY-MM-DD HH:MM:SS UTC')`,
    )
  return Math.max(0, instant - Date.now())
}
