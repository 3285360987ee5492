import { availableParallelism, homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { microUsd, type MicroUsd } from '../../core/money/money'
import { MINUTE_MS } from '../../core/time/time'
import { Complaint, durationWithin, parseYesNo, SettingsReader, type Parser } from '../settings'

/** Division of this host into machines for jobs. */
export interface LocalConfig {
  /**
   * Directory with the machines' directories; created if missing. One per host, shared by every process that uses the backend.
   */
  root: string
  /** CPUs that all jobs may use in total. Default: the cores of this machine. */
  slots?: number
  /** Whether interruptible machines (`crucible interrupt`) are offered in addition to on-demand ones. */
  hasSpot: boolean
  /** Price of an on-demand machine; 0 for free. */
  priceMicroUsdPerHour: MicroUsd
  spotPriceMicroUsdPerHour: MicroUsd
  /** Time between the notice and the interruption of a spot machine, unless the interruption sets another. Default: two minutes. */
  noticeMs?: number
  /** Python 3.8 or newer, as a command or a path. Default: `python3`. */
  python?: string
  /** Users for the commands of jobs, if the worker is root. Default: the worker's user. */
  uids?: UidRange
  /** The complete environment of a machine. Default: `machineEnvironment()`. */
  environment?: Record<string, string>
}

/** Ids of users and groups reserved for jobs. */
export interface UidRange {
  first: number
  last: number
  /** Whether the setting is explicit, so that jobs never run without it. */
  isWanted: boolean
}

/** The settings by name, for the parser's messages and for the documentation. */
export const LOCAL_SETTINGS = [
  { name: 'CRUCIBLE_LOCAL_ROOT', default: '~/.crucible/local', meaning: 'directory of the machines' },
  {
    name: 'CRUCIBLE_LOCAL_SLOTS',
    default: 'the number of cores',
    meaning: 'CPUs that all jobs may use in total',
  },
  {
    name: 'CRUCIBLE_LOCAL_SPOT',
    default: 'no',
    meaning: '`yes` also offers interruptible machines',
  },
  { name: 'CRUCIBLE_LOCAL_PRICE', default: '0', meaning: 'dollars per hour of an on-demand machine' },
  {
    name: 'CRUCIBLE_LOCAL_SPOT_PRICE',
    default: '`CRUCIBLE_LOCAL_PRICE`',
    meaning: 'dollars per hour of a spot machine',
  },
  {
    name: 'CRUCIBLE_LOCAL_NOTICE',
    default: '120s',
    meaning: 'time between the notice and the interruption of a spot machine',
  },
  { name: 'CRUCIBLE_LOCAL_PYTHON', default: 'python3', meaning: 'Python 3.8 or newer, command or path' },
  {
    name: 'CRUCIBLE_LOCAL_UIDS',
    default: '1900000000-1900065535, if the worker is root',
    meaning: 'users for jobs without an image; `no` runs them as the user of the worker',
  },
]

/** Above the ids that systems give to people, services and containers (`/etc/subuid`, systemd). */
const UIDS_DEFAULT: UidRange = { first: 1_900_000_000, last: 1_900_065_535, isWanted: false }

export const NOTICE_DEFAULT_MS = 2 * MINUTE_MS
export const PYTHON_DEFAULT = 'python3'

export type ParsedLocalConfig = { config: LocalConfig } | { problems: string[] }

/** Reads the settings of `LOCAL_SETTINGS` from an environment; either a complete config or every problem at once. */
export function parseLocalConfig(settings: Record<string, string | undefined>): ParsedLocalConfig {
  const { read, result } = new SettingsReader(settings)
  const price = read('CRUCIBLE_LOCAL_PRICE', 0, parsePrice)
  const config: LocalConfig = {
    root: resolve(read('CRUCIBLE_LOCAL_ROOT', join(homedir(), '.crucible', 'local'), parsePath)),
    slots: read('CRUCIBLE_LOCAL_SLOTS', availableParallelism(), parseSlots),
    hasSpot: read('CRUCIBLE_LOCAL_SPOT', false, parseYesNo),
    priceMicroUsdPerHour: price,
    spotPriceMicroUsdPerHour: read('CRUCIBLE_LOCAL_SPOT_PRICE', price, parsePrice),
    noticeMs: read('CRUCIBLE_LOCAL_NOTICE', NOTICE_DEFAULT_MS, parseNotice),
    python: read('CRUCIBLE_LOCAL_PYTHON', PYTHON_DEFAULT, parseText),
    environment: machineEnvironment(settings),
  }
  const uids = read('CRUCIBLE_LOCAL_UIDS', UIDS_DEFAULT, (text) => parseUids(text, config.slots!))
  if (uids !== undefined) config.uids = uids
  return result(config)
}

const PASSED_ON =
  /^(?:PATH|HOME|USER|LOGNAME|SHELL|LANG|TZ|TMPDIR|LD_LIBRARY_PATH|VIRTUAL_ENV|DOCKER_HOST|LC_.*|CUDA_.*|NVIDIA_.*|CONDA_.*|.*_proxy|.*_PROXY)$/

/** The part of an environment that a machine may see: enough to find programs and the network, without credentials. */
export function machineEnvironment(
  from: Record<string, string | undefined> = process.env,
): Record<string, string> {
  return Object.fromEntries(
    Object.entries(from).filter(
      (entry): entry is [string, string] => entry[1] !== undefined && PASSED_ON.test(entry[0]),
    ),
  )
}

const parseText: Parser<string> = (text) => text

const parsePath: Parser<string> = (text) =>
  text === '~' || text.startsWith('~/') ? join(homedir(), text.slice(1)) : text

/** Largest number of slots; a larger one is a typing error. */
const SLOTS_MAX = 4096

const parseSlots: Parser<number> = (text) => {
  const slots = Number(text)
  return /^\d+$/.test(text) && slots >= 1 && slots <= SLOTS_MAX
    ? slots
    : new Complaint(`write a whole number from 1 to ${SLOTS_MAX}, such as 4`)
}

/** System users are below it on every common system. */
const UID_MIN = 1000
/** Largest uid; some programs read larger ones as negative. */
const UID_MAX = 2 ** 31 - 1
/** The uid of the system's unprivileged user, and -1 in 16 bits, which means no user. */
const UIDS_RESERVED = [65_534, 65_535]

function parseUids(text: string, slots: number): UidRange | undefined | Complaint {
  if (/^(?:no|false|off|0)$/i.test(text)) return undefined
  const match = /^(\d+)\s*-\s*(\d+)$/.exec(text)
  const example = `such as ${UIDS_DEFAULT.first}-${UIDS_DEFAULT.last}`
  if (match === null) return new Complaint(`write the first and the last uid with a dash, ${example}, or no`)
  const [first, last] = [Number(match[1]), Number(match[2])]
  if (first > last) return new Complaint(`the first uid is greater than the last: write ${last}-${first}`)
  if (first < UID_MIN || last > UID_MAX) {
    return new Complaint(`uids of jobs must be from ${UID_MIN} to ${UID_MAX}, ${example}`)
  }
  const reserved = UIDS_RESERVED.find((uid) => uid >= first && uid <= last)
  if (reserved !== undefined)
    return new Complaint(`it includes ${reserved}, which the system reserves: write a range without it`)
  return last - first + 1 < slots
    ? new Complaint(`it has ${last - first + 1} uids for ${slots} slots: write a larger range, ${example}`)
    : { first, last, isWanted: true }
}

const parsePrice: Parser<number> = (text) =>
  /^\$?\d+(?:\.\d+)?$/.test(text)
    ? microUsd(Number(text.replace('$', '')))
    : new Complaint('write dollars per hour, such as 0.35')

const parseNotice = durationWithin({
  leastMs: 0,
  advice: 'write a duration with its unit, such as 120s or 2m; 0s for no notice',
})
