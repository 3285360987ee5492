import { constants } from 'node:os'
import { ProgramError } from '../errors'
import { parseTimeSpan } from './time-spans'

export type Output =
  { kind: 'journal' } | { kind: 'null' } | { kind: 'file'; path: string; isTruncated: boolean }

/** What a service unit is told, as far as machines know it. */
export interface ServiceSettings {
  description?: string
  argv: string[]
  environment: Record<string, string>
  environmentFiles: string[]
  workingDirectory: string
  type: 'simple' | 'exec' | 'oneshot'
  restart: 'no' | 'on-success' | 'on-failure' | 'on-abnormal' | 'on-abort' | 'always'
  restartMs: number
  startLimitIntervalMs: number
  startLimitBurst: number
  killMode: 'control-group' | 'mixed' | 'process' | 'none'
  killSignal: NodeJS.Signals
  isKilledAtLast: boolean
  stopTimeoutMs: number
  runtimeMaxMs: number
  stateDirectories: string[]
  runtimeDirectories: string[]
  output: Output
  errorOutput: Output | undefined
  remainsAfterExit: boolean
  isCollected: boolean
  successAction: Action
  failureAction: Action
}

export type Action = 'none' | 'poweroff'

export function defaultSettings(argv: string[]): ServiceSettings {
  return {
    argv,
    environment: {},
    environmentFiles: [],
    workingDirectory: '/',
    type: 'simple',
    restart: 'no',
    restartMs: 100,
    startLimitIntervalMs: 10_000,
    startLimitBurst: 5,
    killMode: 'control-group',
    killSignal: 'SIGTERM',
    isKilledAtLast: true,
    stopTimeoutMs: 90_000,
    runtimeMaxMs: Infinity,
    stateDirectories: [],
    runtimeDirectories: [],
    output: { kind: 'journal' },
    errorOutput: undefined,
    remainsAfterExit: false,
    isCollected: false,
    successAction: 'none',
    failureAction: 'none',
  }
}

/** Known, and without effect on a machine that has no such resource to account for. */
const WITHOUT_EFFECT =
  /^(?:OOM\w+|Nice|IOSchedulingClass|IOWeight|CPUWeight|CPUAccounting|MemoryAccounting|TasksAccounting|TasksMax|Limit[A-Z]+|Slice|Delegate|IgnoreSIGPIPE|UMask|SyslogIdentifier|LogRateLimit\w+|TimeoutStartSec|TimeoutAbortSec|NoNewPrivileges|After|Wants|DefaultDependencies|AddRef)$/

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
  EnvironmentFile: (settings, value) => void settings.environmentFiles.push(value),
  WorkingDirectory: (settings, value) => void (settings.workingDirectory = value),
  Type: (settings, value, name) =>
    void (settings.type = oneOf(value, name, ['simple', 'exec', 'oneshot'] as const)),
  Restart: (settings, value, name) => {
    const known = ['no', 'on-success', 'on-failure', 'on-abnormal', 'on-abort', 'always'] as const
    settings.restart = oneOf(value, name, known)
  },
  RestartSec: (settings, value) => void (settings.restartMs = parseTimeSpan(value)),
  StartLimitIntervalSec: (settings, value) => void (settings.startLimitIntervalMs = parseTimeSpan(value)),
  StartLimitBurst: (settings, value) => void (settings.startLimitBurst = Number(value)),
  KillMode: (settings, value, name) =>
    void (settings.killMode = oneOf(value, name, ['control-group', 'mixed', 'process', 'none'] as const)),
  KillSignal: (settings, value) => void (settings.killSignal = signalOf(value)),
  SendSIGKILL: (settings, value, name) => void (settings.isKilledAtLast = isYes(value, name)),
  TimeoutStopSec: (settings, value) => void (settings.stopTimeoutMs = timeOf(value)),
  TimeoutSec: (settings, value) => void (settings.stopTimeoutMs = timeOf(value)),
  RuntimeMaxSec: (settings, value) => void (settings.runtimeMaxMs = timeOf(value)),
  StateDirectory: (settings, value) => void settings.stateDirectories.push(...splitWords(value)),
  RuntimeDirectory: (settings, value) => void settings.runtimeDirectories.push(...splitWords(value)),
  StandardOutput: (settings, value, name) => void (settings.output = outputOf(value, name)),
  StandardError: (settings, value, name) =>
    void (settings.errorOutput = value === 'inherit' ? undefined : outputOf(value, name)),
  RemainAfterExit: (settings, value, name) => void (settings.remainsAfterExit = isYes(value, name)),
  CollectMode: (settings, value, name) =>
    void (settings.isCollected =
      oneOf(value, name, ['inactive', 'inactive-or-failed'] as const) !== 'inactive'),
  SuccessAction: (settings, value, name) => void (settings.successAction = actionOf(value, name)),
  FailureAction: (settings, value, name) => void (settings.failureAction = actionOf(value, name)),
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

function outputOf(value: string, name: string): Output {
  const [, kind, path] = /^(file|append|truncate):(\/.*)$/.exec(value) ?? []
  if (kind !== undefined) return { kind: 'file', path: path!, isTruncated: kind === 'truncate' }
  if (['journal', 'kmsg', 'journal+console', 'inherit', 'syslog'].includes(value)) return { kind: 'journal' }
  if (value === 'null') return { kind: 'null' }
  throw new ProgramError(`Failed to parse ${name}=: ${value}`)
}

function actionOf(value: string, name: string): Action {
  const action = value.replace(/-(?:force|immediate)$/, '')
  return oneOf(action, name, ['none', 'poweroff'] as const)
}

function oneOf<T extends string>(value: string, name: string, known: readonly T[]): T {
  const found = known.find((one) => one === value)
  if (found === undefined)
    throw new ProgramError(`Failed to parse ${name}=: ${value} (this machine knows ${known.join(', ')})`)
  return found
}

function isYes(value: string, name: string): boolean {
  if (['yes', 'true', 'on', '1'].includes(value)) return true
  if (['no', 'false', 'off', '0'].includes(value)) return false
  throw new ProgramError(`Failed to parse ${name}=: ${value}`)
}

/** Words between spaces; quotes keep spaces, as in unit files. */
function splitWords(text: string): string[] {
  return [...text.matchAll(/(?:"([^"]*)"|'([^']*)'|([^\s"']+))+/g)].map(([whole]) =>
    whole.replace(/["']/g, ''),
  )
}
