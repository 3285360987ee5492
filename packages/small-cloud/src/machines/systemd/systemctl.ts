import { parseArgs, type ParseArgsConfig } from 'node:util'
import { SAID_NOTHING, type ProgramAnswer, type ProgramCall } from '../control'
import { ProgramError } from '../errors'
import type { Manager } from './manager'
import { withSuffix } from './manager'
import type { Service } from './service'
import { signalOf } from './settings'

const OPTIONS = {
  property: { type: 'string', short: 'p', multiple: true },
  value: { type: 'boolean' },
  signal: { type: 'string', short: 's' },
  'kill-who': { type: 'string' },
  'kill-whom': { type: 'string' },
  lines: { type: 'string', short: 'n' },
  quiet: { type: 'boolean', short: 'q' },
  'no-pager': { type: 'boolean' },
  'no-legend': { type: 'boolean' },
} satisfies ParseArgsConfig['options']

const LOG_LINES = 10

interface Request {
  values: ReturnType<typeof parse>['values']
  /** Names with their suffixes. */
  names: string[]
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
  stop: async (request) => {
    const units = request.names.map((name) => loaded(request, name, ['stop', 'not loaded']))
    await Promise.all(units.map((unit) => unit.stop()))
    return SAID_NOTHING
  },
  kill: async (request) => {
    const signal = signalOf(request.values.signal ?? 'SIGTERM')
    const whom = request.values['kill-whom'] ?? request.values['kill-who'] ?? 'all'
    for (const name of request.names) {
      const unit = request.manager.get(name)
      if (unit === undefined) throw new ProgramError(`Failed to kill unit ${name}: Unit ${name} not loaded.`)
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
}

/** `systemctl` for units created by `systemd-run`. */
export async function systemctl(call: ProgramCall, manager: Manager): Promise<ProgramAnswer> {
  const { values, positionals } = parse(call.arguments)
  const [verb = 'list-units', ...words] = positionals
  if (!Object.hasOwn(VERBS, verb))
    throw new ProgramError(`Unknown command verb ${verb} (or one that machines of this cloud do not have).`)
  return VERBS[verb]!({ values, names: words.map((name) => withSuffix(name)), manager })
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

function loaded({ manager }: Request, name: string, [verb, why]: [verb: string, why: string]): Service {
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

function describe(unit: Service, lines: number): string {
  const { MainPID, Result, ExecMainStatus } = unit.properties()
  const why = unit.state.active === 'failed' ? ` (Result: ${Result})` : ` (${unit.state.sub})`
  const facts = [
    `${unit.state.active === 'failed' ? '×' : '●'} ${unit.name} - ${unit.description}`,
    '     Loaded: loaded (/run/systemd/transient/' + unit.name + '; transient)',
    '  Transient: yes',
    `     Active: ${unit.state.active}${why}`,
  ]
  if (MainPID !== undefined && MainPID !== '0') facts.push(`   Main PID: ${MainPID}`)
  else if (ExecMainStatus !== undefined) facts.push(`    Process: (code=${Result}, status=${ExecMainStatus})`)
  const log = unit.log(lines)
  return [...facts, ...(log.length > 0 ? ['', ...log] : [])].map((line) => `${line}\n`).join('')
}

function show(unit: Service | undefined, name: string, values: Request['values']): string {
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

function listUnits({ values, manager }: Request): ProgramAnswer {
  const units = manager.all()
  const rows = units.map(
    ({ name, state, description }) => `${name} loaded ${state.active} ${state.sub} ${description}\n`,
  )
  const legend =
    values['no-legend'] === true
      ? ['', '']
      : ['UNIT LOAD ACTIVE SUB DESCRIPTION\n', `\n${units.length} loaded units listed.\n`]
  return { ...SAID_NOTHING, stdout: legend[0]! + rows.join('') + legend[1]! }
}
