import { loadClientConfigProfile, toClientOptions, type ClientConnectConfig } from '@temporalio/envconfig'
import { BACKENDS, type ReadSettings } from '../backends/registry'
import type { MicroUsd } from '../core/money/money'
import type { BackendName } from '../core/offer'
import { DEFAULT_TIMING, FILE_STORE_PACE, type Timing } from '../core/time/timing'
import type { MonthlyLimits } from '../core/money/treasury'
import { parseDuration, parseSizeGiB, parseMoney, UnitError } from '../intake/units'
import { homeOf, readDevNote, type Environment, type Home } from '../storage/home'
import { ConfigError } from './config-error'
import { parseDiscounts, type Discounts } from './discount'
import { readGrants, type GrantSettings } from './grant-settings'

/** The complete settings of a worker, read once. */
export interface WorkerConfig {
  home: Home
  temporal: { connection: ClientConnectConfig['connectionOptions']; namespace: string }
  timing: Timing
  /** Source of store credentials for machines without their own. */
  grants: GrantSettings
  /** The backends of the deployment, each ready to be created. */
  backends: ReadonlyMap<BackendName, Extract<ReadSettings, { create: unknown }>>
  /** Share of each backend's list prices that is really paid. */
  discounts: Discounts
  logLevel: LogLevel
  /** Where the process serves metrics and its health; missing without the setting. */
  monitor?: { host: string; port: number } | undefined
  /** Monthly spending limits. */
  monthly: MonthlyLimits
}

/** @internal A test compares the documentation. */
export const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]

/** Settings of durations: the field they set, and their meaning for the documentation. @internal A test compares the documentation. */
export const TIMING_SETTINGS: readonly {
  name: string
  key: keyof Omit<Timing, 'artifactGiBMax'>
  meaning: string
}[] = [
  {
    name: 'CRUCIBLE_LEASE',
    key: 'leaseMs',
    meaning: 'how long a machine continues without contact to the control plane',
  },
  { name: 'CRUCIBLE_DRAIN', key: 'drainMs', meaning: 'time for a workload to save when it must stop' },
  {
    name: 'CRUCIBLE_POWER_OFF',
    key: 'powerOffMs',
    meaning: 'reserved at the end of every limit for the power-off',
  },
  { name: 'CRUCIBLE_BEAT', key: 'beatMs', meaning: 'interval between beats' },
  { name: 'CRUCIBLE_OBSERVE', key: 'observeMs', meaning: 'interval between observations of a machine' },
  {
    name: 'CRUCIBLE_SILENCE',
    key: 'silenceMs',
    meaning: 'silence of a running machine after which it is replaced',
  },
  {
    name: 'CRUCIBLE_REGISTRY_WITHIN',
    key: 'registryMs',
    meaning: 'an image download without progress for this long is aborted',
  },
  {
    name: 'CRUCIBLE_START_WITHIN',
    key: 'startWithinMs',
    meaning: 'a machine that starts later than this does no work',
  },
  {
    name: 'CRUCIBLE_QUEUE_WITHIN',
    key: 'queueMs',
    meaning: "a launch that waits in the provider's queue for longer counts as missing capacity",
  },
  {
    name: 'CRUCIBLE_CHECKPOINT_QUIET',
    key: 'checkpointQuietMs',
    meaning: 'unproven files that are unchanged for this long are a provisional checkpoint',
  },
  {
    name: 'CRUCIBLE_GONE_CONFIRM',
    key: 'goneConfirmMs',
    meaning: 'time between the two observations that confirm that a machine is gone',
  },
]

/** Reads the configuration of a worker; throws a `ConfigError` with all problems at once. */
export function readWorkerConfig(env: Environment = process.env): WorkerConfig {
  const { config, problems } = examineWorkerConfig(env)
  if (problems.length > 0) throw new ConfigError(problems)
  return config
}

/** Returns the readable part of the configuration, and the problems of the rest. */
export function examineWorkerConfig(env: Environment): { config: WorkerConfig; problems: string[] } {
  const problems: string[] = []
  const attempt = <T>(read: () => T, fallback: T): T => {
    try {
      return read()
    } catch (error) {
      problems.push(...(error instanceof ConfigError ? error.problems : [(error as Error).message]))
      return fallback
    }
  }
  const home = homeOf(env)
  const config: WorkerConfig = {
    home,
    temporal: attempt(() => readTemporal(env, home), { connection: {}, namespace: 'default' }),
    timing: attempt(() => readTiming(env, home), DEFAULT_TIMING),
    grants: attempt(() => readGrants(env), {}),
    backends: readBackends(env, { home, problems }),
    discounts: attempt(() => parseDiscounts(env.CRUCIBLE_DISCOUNTS), new Map()),
    logLevel: attempt(() => readLogLevel(env), 'info'),
    monitor: attempt(() => readMonitor(env), undefined),
    monthly: attempt(() => readMonthly(env), { owners: {} }),
  }
  return { config, problems }
}

/**
 * The server that the environment or `temporal.toml` names, otherwise that of a running `crucible dev`, otherwise Temporal's
 * default.
 */
function readTemporal(env: Environment, home: Home): WorkerConfig['temporal'] {
  const { connectionOptions, namespace } = connectionFrom(env, readDevNote(home)?.address ?? 'localhost:7233')
  const { address } = connectionOptions
  // Workers wait for a server indefinitely, so an address that can never work must be refused now.
  if (!ADDRESS_PATTERN.test(address ?? ''))
    throw new ConfigError([`TEMPORAL_ADDRESS is "${address}": write host:port, such as localhost:7233`])
  return { connection: connectionOptions, namespace: namespace ?? 'default' }
}

function connectionFrom(env: Environment, otherwise: string): ReturnType<typeof toClientOptions> {
  try {
    const profile = loadClientConfigProfile({ overrideEnvVars: definedOf(env) })
    profile.address ??= otherwise
    return toClientOptions(profile)
  } catch (error) {
    const advice = 'correct the TEMPORAL_* variables or temporal.toml'
    throw new ConfigError([
      `The Temporal configuration cannot be read (${(error as Error).message}): ${advice}`,
    ])
  }
}

const ADDRESS_PATTERN = /^(?:[\w.-]+|\[[0-9a-f:]+\])(?::\d+)?$/i

function definedOf(env: Environment): Record<string, string> {
  return Object.fromEntries(
    Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined),
  )
}

function readTiming(env: Environment, { storeUrl }: Home): Timing {
  const timing = { ...DEFAULT_TIMING, ...(storeUrl.startsWith('file:') ? FILE_STORE_PACE : {}) }
  const problems: string[] = []
  for (const { name, key } of TIMING_SETTINGS) {
    const text = env[name]?.trim()
    if (text === undefined || text === '') continue
    const advice = setDuration(timing, key, text)
    if (advice !== undefined) problems.push(`${name} is "${text}": ${advice}`)
  }
  const artifactMax = env.CRUCIBLE_ARTIFACT_MAX?.trim() ?? ''
  if (artifactMax !== '') {
    const gib = sizeGiB(artifactMax)
    if (gib === undefined)
      problems.push(`CRUCIBLE_ARTIFACT_MAX is "${artifactMax}": write a size from 1GiB, such as 50GiB`)
    else timing.artifactGiBMax = gib
  }
  if (timing.leaseMs <= timing.beatMs * 3)
    problems.push('CRUCIBLE_LEASE must be more than three times CRUCIBLE_BEAT')
  if (problems.length > 0) throw new ConfigError(problems)
  return timing
}

/** Parses a size as whole GiB, rounded up; `undefined` if it is not a positive size. */
function sizeGiB(text: string): number | undefined {
  try {
    const gib = Math.ceil(parseSizeGiB(text))
    return gib >= 1 ? gib : undefined
  } catch {
    return undefined
  }
}

/** The correction of an unusable duration. */
function setDuration(
  timing: Timing,
  key: keyof Omit<Timing, 'artifactGiBMax'>,
  text: string,
): string | undefined {
  try {
    timing[key] = parseDuration(text)
  } catch (error) {
    return error instanceof UnitError ? error.remedy : (error as Error).message
  }
  return (timing[key] ?? 0) > 0 ? undefined : 'write a positive duration, such as 5s'
}

const MONTHLY_LIMITS = ['CRUCIBLE_BUDGET_MONTH', 'CRUCIBLE_BUDGET_OWNER', 'CRUCIBLE_BUDGET_OWNERS']
/** A variable that somebody set to limit what is spent. */
const MEANT_AS_LIMIT = /^CRUCIBLE_.*(?:BUDGET|COST|SPEND)/

function readMonthly(env: Environment): MonthlyLimits {
  const problems = Object.keys(env)
    .filter((name) => MEANT_AS_LIMIT.test(name) && !MONTHLY_LIMITS.includes(name))
    .map((name) => `${name} is not a setting, so it would limit nothing: write ${MONTHLY_LIMITS.join(', ')}`)
  const amount = (name: string, text: string | undefined): MicroUsd | undefined => {
    if (text === undefined || text === '') return undefined
    try {
      return parseMoney(text)
    } catch (error) {
      problems.push(
        `${name} is "${text}": ${error instanceof UnitError ? error.remedy : (error as Error).message}`,
      )
      return undefined
    }
  }
  const [month, owner] = ['CRUCIBLE_BUDGET_MONTH', 'CRUCIBLE_BUDGET_OWNER'].map((name) =>
    amount(name, env[name]?.trim()),
  )
  const owners: Record<string, MicroUsd> = {}
  for (const part of (env.CRUCIBLE_BUDGET_OWNERS ?? '').split(',').map((each) => each.trim())) {
    if (part === '') continue
    const [, name, text] = /^([^=]+)=(.+)$/.exec(part) ?? []
    const own = amount('CRUCIBLE_BUDGET_OWNERS', text?.trim())
    if (name === undefined)
      problems.push(`CRUCIBLE_BUDGET_OWNERS has "${part}": write owner=amount, such as ada=$900`)
    else if (own !== undefined) owners[name.trim()] = own
  }
  if (problems.length > 0) throw new ConfigError(problems)
  return {
    monthMicroUsd: month,
    ownerMicroUsd: owner,
    owners,
  }
}

/** The backends whose free places are counted. */
export function nearBackends({ backends }: Pick<WorkerConfig, 'backends'>): BackendName[] {
  return [...backends].filter(([, { isNear }]) => isNear).map(([name]) => name)
}

/** The backends whose settings are valid. */
function readBackends(
  env: Environment,
  { home: { directory }, problems }: { home: Home; problems: string[] },
): WorkerConfig['backends'] {
  const names = (env.CRUCIBLE_BACKENDS ?? 'local')
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '')
  const backends = new Map<BackendName, Extract<ReadSettings, { create: unknown }>>()
  const settings = { CRUCIBLE_LOCAL_ROOT: `${directory}/local`, ...env }
  for (const name of names) {
    const read = BACKENDS[name]?.read(settings)
    if (read === undefined)
      problems.push(`CRUCIBLE_BACKENDS names "${name}": choose from ${Object.keys(BACKENDS).join(', ')}`)
    else if ('problems' in read) problems.push(...read.problems)
    else backends.set(name, read)
  }
  if (names.length === 0) problems.push('CRUCIBLE_BACKENDS is empty: list at least one, such as local')
  return backends
}

/** `host:port`, or a port of this machine alone. */
const MONITOR_PATTERN = /^(?:([\w.-]+|\[[0-9a-f:]+\]):)?(\d{1,5})$/i
const PORT_MAX = 65_535

function readMonitor(env: Environment): WorkerConfig['monitor'] {
  const text = env.CRUCIBLE_METRICS?.trim() ?? ''
  if (text === '') return undefined
  const [, host = '127.0.0.1', port] = MONITOR_PATTERN.exec(text) ?? []
  if (port === undefined || Number(port) > PORT_MAX)
    throw new ConfigError([`CRUCIBLE_METRICS is "${text}": write host:port, such as 127.0.0.1:9464`])
  return { host: host.replace(/^\[|\]$/g, ''), port: Number(port) }
}

function readLogLevel(env: Environment): LogLevel {
  const level = env.CRUCIBLE_LOG?.trim().toLowerCase() ?? 'info'
  const known = LOG_LEVELS.find((each) => each === level)
  if (known === undefined)
    throw new ConfigError([`CRUCIBLE_LOG is "${level}": write one of ${LOG_LEVELS.join(', ')}`])
  return known
}
