import { parseArgs, type ParseArgsConfig } from 'node:util'
import { SAID_NOTHING, type ProgramAnswer, type ProgramCall } from '../control'
import { ProgramError } from '../errors'
import type { Manager } from './manager'
import { withSuffix } from './manager'
import { Service } from './service'
import { signalOf } from './settings'
import { formatTimeSpan } from './time-spans'
import { TimerUnit } from './timer-unit'
import type { Unit } from './unit'

const OPTIONS = {
  property: { type: 'string', short: 'p', multiple: true },
  value: { type: 'boolean' },
  signal: { type: 'string', short: 's' },
  'kill-who': { type: 'string' },
  'kill-whom': { type: 'string' },
  lines: { type: 'string', short: 'n' },
  all: { type: 'boolean', short: 'a' },
  plain: { type: 'boolean' },
  full: { type: 'boolean', short: 'l' },
  quiet: { type: 'boolean', short: 'q' },
  'no-pager': { type: 'boolean' },
  'no-legend': { type: 'boolean' },
  'no-block': { type: 'boolean' },
  'no-wall': { type: 'boolean' },
  type: { type: 'string', short: 't' },
  state: { type: 'string' },
} satisfies ParseArgsConfig['options']

const LOG_LINES = 10

interface Request {
  values: ReturnType<typeof parse>['values']
  /** With their suffixes. */
  names: string[]
  patterns: string[]
  manager: Manager
}

type Verb = (request: Request) => ProgramAnswer | Promise<ProgramAnswer>

const VERBS: Readonly<Record<string, Verb>> = {
  status: (request) => status(request),
  show: ({ values, names, manager }) => {
    const blocks = names.map((name) => show(manager.get(name), name, values))
    return { ...SAID_NOTHING, stdout: blocks.join('\n') }
  },
  'is-active': ({ values, names, manager }) => {
    const states = names.map((name) => manager.get(name)?.state.active ?? 'inactive')
    const stdout = values.quiet === true ? '' : states.map((state) => `${state}\n`).join('')
    return { ...SAID_NOTHING, exitCode: states.includes('active') ? 0 : 3, stdout }
  },
  'is-failed': ({ values, names, manager }) => {
    const states = names.map((name) => manager.get(name)?.state.active ?? 'inactive')
    const stdout = values.quiet === true ? '' : states.map((state) => `${state}\n`).join('')
    return { ...SAID_NOTHING, exitCode: states.includes('failed') ? 0 : 1, stdout }
  },
  start: async (request) => {
    // Transient services cannot be started again once they have ended; starting what runs changes nothing.
    for (const name of request.names) loaded(request, name, ['start', 'not found'])
    return SAID_NOTHING
  },
  stop: async (request) => {
    const units = request.names.map((name) => loaded(request, name, ['stop', 'not loaded']))
    const stopped = Promise.all(units.map((unit) => request.manager.stop(unit)))
    if (request.values['no-block'] !== true) await stopped
    return SAID_NOTHING
  },
  restart: async (request) => {
    for (const name of request.names)
      await request.manager.restart(loaded(request, name, ['restart', 'not found']))
    return SAID_NOTHING
  },
  kill: async (request) => {
    const signal = signalOf(request.values.signal ?? 'SIGTERM')
    const whom = request.values['kill-whom'] ?? request.values['kill-who'] ?? 'all'
    for (const name of request.names) {
      const unit = request.manager.get(name)
      if (!(unit instanceof Service))
        throw new ProgramError(`Failed to kill unit ${name}: Unit ${name} not loaded.`)
      await unit.signal(signal, whom === 'main' ? 'main' : 'all')
    }
    return SAID_NOTHING
  },
  'reset-failed': ({ names, manager }) => {
    for (const unit of names.length === 0 ? manager.all() : []) manager.reset(unit)
    for (const name of names) {
      const unit = manager.get(name)
      if (unit === undefined)
        throw new ProgramError(`Failed to reset failed state of unit ${name}: Unit ${name} not loaded.`)
      manager.reset(unit)
    }
    return SAID_NOTHING
  },
  'list-units': (request) => listUnits(request),
  'list-timers': (request) => listTimers(request),
  'daemon-reload': () => SAID_NOTHING,
}

/** `systemctl` for the units that `systemd-run` made. */
export async function systemctl(call: ProgramCall, manager: Manager): Promise<ProgramAnswer> {
  const { values, positionals } = parse(call.arguments)
  const [verb = 'list-units', ...patterns] = positionals
  if (!Object.hasOwn(VERBS, verb))
    throw new ProgramError(`Unknown command verb ${verb} (or one that machines of this cloud do not have).`)
  const names = patterns.map((name) => withSuffix(name))
  return VERBS[verb]!({ values, names, patterns, manager })
}

function parse(args: string[]) {
  try {
    return parseArgs({ args, options: OPTIONS, allowPositionals: true, strict: true })
  } catch (error) {
    throw new ProgramError(
      `systemctl: ${(error as Error).message.split('.')[0]} (or an option that machines of this cloud do not have)`,
    )
  }
}

function loaded({ manager }: Request, name: string, [verb, why]: [verb: string, why: string]): Unit {
  const unit = manager.get(name)
  if (unit === undefined) throw new ProgramError(`Failed to ${verb} ${name}: Unit ${name} ${why}.`, 5)
  return unit
}

function status({ values, names, manager }: Request): ProgramAnswer {
  const units = names.map((name) => [name, manager.get(name)] as const)
  const known = units.flatMap(([, unit]) => (unit === undefined ? [] : [unit]))
  const stderr = units
    .flatMap(([name, unit]) => (unit ? [] : [`Unit ${name} could not be found.\n`]))
    .join('')
  const stdout = known.map((unit) => describe(unit, Number(values.lines ?? LOG_LINES))).join('\n')
  const isWell = known.every(({ state }) => ['active', 'activating', 'deactivating'].includes(state.active))
  return { exitCode: stderr !== '' ? 4 : isWell ? 0 : 3, stdout, stderr }
}

function describe(unit: Unit, lines: number): string {
  const { MainPID, Result, ExecMainStatus } = unit.properties()
  const why = unit.state.active === 'failed' ? ` (Result: ${Result})` : ` (${unit.state.sub})`
  const facts = [
    `${unit.state.active === 'failed' ? '×' : '●'} ${unit.name} - ${unit.description}`,
    '     Loaded: loaded (/run/systemd/transient/' + unit.name + '; transient)',
    '  Transient: yes',
    `     Active: ${unit.state.active}${why}`,
  ]
  if (unit instanceof TimerUnit) facts.push(`    Trigger: ${formatTimeSpan(unit.leftMs())} left`)
  if (MainPID !== undefined && MainPID !== '0') facts.push(`   Main PID: ${MainPID}`)
  else if (ExecMainStatus !== undefined) facts.push(`    Process: (code=${Result}, status=${ExecMainStatus})`)
  const log = unit.log(lines)
  return [...facts, ...(log.length > 0 ? ['', ...log] : [])].map((line) => `${line}\n`).join('')
}

function show(unit: Unit | undefined, name: string, values: Request['values']): string {
  const missing = { Id: name, Names: name, LoadState: 'not-found', ActiveState: 'inactive', SubState: 'dead' }
  const properties: Record<string, string> = unit?.properties() ?? {
    ...missing,
    MainPID: '0',
    Result: 'success',
  }
  const wanted = values.property?.flatMap((list) => list.split(','))
  const shown = Object.entries(properties).filter(([key]) => wanted === undefined || wanted.includes(key))
  return shown.map(([key, value]) => (values.value === true ? `${value}\n` : `${key}=${value}\n`)).join('')
}

function listUnits({ values, patterns, manager }: Request): ProgramAnswer {
  const units = manager
    .all()
    .filter(({ name }) => patterns.length === 0 || patterns.some((pattern) => matches(name, pattern)))
    .filter(({ name }) => values.type === undefined || name.endsWith(`.${values.type}`))
    .filter(({ state }) => values.state === undefined || [state.active, state.sub].includes(values.state))
  const rows = units.map(
    ({ name, state, description }) => `${name} loaded ${state.active} ${state.sub} ${description}\n`,
  )
  const legend =
    values['no-legend'] === true
      ? ['', '']
      : ['UNIT LOAD ACTIVE SUB DESCRIPTION\n', `\n${units.length} loaded units listed.\n`]
  return { ...SAID_NOTHING, stdout: legend[0]! + rows.join('') + legend[1]! }
}

function listTimers({ values, manager }: Request): ProgramAnswer {
  const timers = manager.all().filter((unit) => unit instanceof TimerUnit)
  const rows = timers.map((unit) => {
    const at = new Date(Date.now() + unit.leftMs()).toISOString().replace('T', ' ').replace(/\..*/, ' UTC')
    return `${at} ${formatTimeSpan(unit.leftMs())} left ${unit.name} ${unit.name.replace(/timer$/, 'service')}\n`
  })
  const legend = values['no-legend'] === true ? '' : 'NEXT LEFT UNIT ACTIVATES\n'
  return { ...SAID_NOTHING, stdout: legend + rows.join('') }
}

/** Shell patterns with `*` and `?`. */
function matches(name: string, pattern: string): boolean {
  const escaped = pattern
    .replace(/[.+^${}()|[\]\\]/g, '\\$&')
    .replaceAll('*', '.*')
    .replaceAll('?', '.')
  return new RegExp(`^${escaped}$`).test(name)
}
