import { constants } from 'node:os'
import { ProgramError } from '../errors'
import { parseTimeSpan } from './time-spans'

/** The settings of a service unit that machines support. */
export interface ServiceSettings {
  description?: string
  argv: string[]
  environment: Record<string, string>
  workingDirectory: string
  type: 'simple' | 'exec'
  restart: 'no' | 'on-failure' | 'always'
  restartMs: number
  startLimitIntervalMs: number
  startLimitBurst: number
  killMode: 'control-group' | 'mixed'
  stopTimeoutMs: number
  stateDirectories: string[]
  isCollected: boolean
  /** Whether the end of its output is also written to the serial console. */
  isOnConsole: boolean
}

export function defaultSettings(argv: string[]): ServiceSettings {
  return {
    argv,
    environment: {},
    workingDirectory: '/',
    type: 'simple',
    restart: 'no',
    restartMs: 100,
    startLimitIntervalMs: 10_000,
    startLimitBurst: 5,
    killMode: 'control-group',
    stopTimeoutMs: 90_000,
    stateDirectories: [],
    isCollected: false,
    isOnConsole: false,
  }
}

/** Accepted without effect, because the machine has no such resource accounting. */
const WITHOUT_EFFECT = /^(?:OOMPolicy|TasksMax|Limit[A-Z]+)$/

type Setter = (settings: ServiceSettings, value: string, name: string) => void

const timeOf = (value: string): number => {
  const ms = parseTimeSpan(value)
  return ms === 0 ? Infinity : ms
}

const SETTERS: Readonly<Record<string, Setter>> = {
  Description: (settings, value) => void (settings.description = value),
  Environment: (settings, value) => {
    for (const word of splitWords(value)) setVariable(settings, word)
  },
  WorkingDirectory: (settings, value) => void (settings.workingDirectory = value),
  Type: (settings, value, name) => void (settings.type = oneOf(value, name, ['simple', 'exec'] as const)),
  Restart: (settings, value, name) => {
    const known = ['no', 'on-failure', 'always'] as const
    settings.restart = oneOf(value, name, known)
  },
  RestartSec: (settings, value) => void (settings.restartMs = parseTimeSpan(value)),
  StartLimitIntervalSec: (settings, value) => void (settings.startLimitIntervalMs = parseTimeSpan(value)),
  StartLimitBurst: (settings, value) => void (settings.startLimitBurst = Number(value)),
  KillMode: (settings, value, name) =>
    void (settings.killMode = oneOf(value, name, ['control-group', 'mixed'] as const)),
  TimeoutStopSec: (settings, value) => void (settings.stopTimeoutMs = timeOf(value)),
  StateDirectory: (settings, value) => void settings.stateDirectories.push(...splitWords(value)),
  CollectMode: (settings, value, name) =>
    void (settings.isCollected =
      oneOf(value, name, ['inactive', 'inactive-or-failed'] as const) !== 'inactive'),
  StandardError: (settings, value, name) =>
    void (settings.isOnConsole =
      oneOf(value, name, ['journal', 'journal+console'] as const) === 'journal+console'),
  User: (_, value) => {
    if (value !== 'root' && value !== '0')
      throw new ProgramError(
        `Failed to determine user credentials: machines have no user but root, not ${value}`,
      )
  },
}

/** Sets `NAME=value`. Throws for a name that systemd, or this machine, does not know. */
export function applyProperty(settings: ServiceSettings, assignment: string): void {
  const [, name, value] = /^([A-Za-z]+)=(.*)$/s.exec(assignment) ?? []
  if (name === undefined) throw new ProgramError(`Not an assignment: ${assignment}`)
  const setter = Object.hasOwn(SETTERS, name) ? SETTERS[name] : undefined
  if (setter !== undefined) return setter(settings, value!, name)
  if (!WITHOUT_EFFECT.test(name))
    throw new ProgramError(
      `Unknown assignment: ${assignment} (or one that machines of this cloud do not have)`,
    )
}

export function setVariable(settings: ServiceSettings, assignment: string): void {
  const at = assignment.indexOf('=')
  if (!/^[A-Za-z_]\w*$/.test(assignment.slice(0, Math.max(at, 0))))
    throw new ProgramError(`Failed to parse environment assignment: ${assignment}`)
  settings.environment[assignment.slice(0, at)] = assignment.slice(at + 1)
}

export function signalOf(text: string): NodeJS.Signals {
  const name = /^\d+$/.test(text)
    ? Object.entries(constants.signals).find(([, number]) => number === Number(text))?.[0]
    : text.startsWith('SIG')
      ? text
      : `SIG${text}`
  if (name === undefined || !Object.hasOwn(constants.signals, name))
    throw new ProgramError(`Failed to parse signal string ${text}.`)
  return name as NodeJS.Signals
}

function oneOf<T extends string>(value: string, name: string, known: readonly T[]): T {
  const found = known.find((one) => one === value)
  if (found === undefined)
    throw new ProgramError(`Failed to parse ${name}=: ${value} (this machine knows ${known.join(', ')})`)
  return found
}

/** Splits words at spaces; quotes keep spaces, as in unit files. */
function splitWords(text: string): string[] {
  return [...text.matchAll(/(?:"([^"]*)"|'([^']*)'|([^\s"']+))+/g)].map(([whole]) =>
    whole.replace(/["']/g, ''),
  )
}
