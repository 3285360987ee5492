import { MINUTE_MS } from '../../core/time/time'
import type { Problem } from '../backend'
import { findCredentials, lastFour, type StoredCredentials } from '../credentials'
import { Complaint, durationWithin, listOf, SettingsReader, urlOr, type Parser } from '../settings'
import { ENDPOINT_DEFAULT } from './api'
import { LAMBDA_CREDENTIALS } from './credentials'

/** Settings for buying machines. */
export interface LambdaConfig {
  apiKey: string
  /** Problem if other users of this host can read the file with the key. */
  keyProblem?: Problem
  endpoint: string
  /** Names of instance types, with `*`. */
  types: string[]
  /** Regions to use; all if missing. */
  regions?: string[]
  /** SSH key that each launch names; nothing logs in with it. */
  sshKey: string
  /** Name of a file system that machines in its Region mount, for caches only. */
  cache?: string
  /** How long Lambda's lists may omit a new instance, clock differences included. */
  staleForMs: number
  /** Requests per second of this process to the account. */
  requestsPerSecond: number
  /** Launches that the account allows, over all workers. */
  launchesPerMinute: number
}

/** Name of the SSH key that set-up makes, used if no other is named. */
const SSH_KEY_DEFAULT = 'crucible'

/** All types except those with an ARM processor, which need special programs and images. */
const TYPES_DEFAULT = ['*', '!*gh200*']

/** Undocumented: two to three minutes were enough for other users; clocks of workers differ by half a minute at most. */
const STALE_DEFAULT_MS = 3 * MINUTE_MS

/** The account's limit is 1; a little less leaves room for the time that requests take to arrive. */
const REQUESTS_DEFAULT = 0.9

/** Launches per minute of an account (API reference 1.10.0, November 2026). */
const LAUNCHES_DEFAULT = 5

/** The settings by name, for the parser's messages and for the documentation. */
export const LAMBDA_SETTINGS = [
  {
    name: 'LAMBDA_API_KEY',
    default: 'the key in `~/.lambda_cloud`',
    meaning: 'API key of the account; in the file, a line `api_key = KEY` or the key alone',
  },
  {
    name: 'CRUCIBLE_LAMBDA_TYPES',
    default: '`*,!*gh200*`',
    meaning:
      'instance types to offer, separated by commas; `*` is a wildcard, `!` excludes. GH200 machines have an ARM processor',
  },
  { name: 'CRUCIBLE_LAMBDA_REGIONS', default: 'all Regions', meaning: 'Regions to use, separated by commas' },
  {
    name: 'CRUCIBLE_LAMBDA_SSH_KEY',
    default: 'crucible',
    meaning: 'name of the SSH key that each launch must name; nothing logs in with it',
  },
  {
    name: 'CRUCIBLE_LAMBDA_CACHE',
    default: 'none',
    meaning: 'name of a file system that machines in its Region mount, for caches only',
  },
  {
    name: 'CRUCIBLE_LAMBDA_STALE_FOR',
    default: '3m',
    meaning: "how long Lambda's lists may omit a new instance",
  },
  {
    name: 'CRUCIBLE_LAMBDA_REQUESTS',
    default: '0.9',
    meaning: 'requests per second; the account allows 1 for all its users',
  },
  {
    name: 'CRUCIBLE_LAMBDA_LAUNCHES',
    default: '5',
    meaning: 'launches per minute that the account allows',
  },
  {
    name: 'CRUCIBLE_LAMBDA_ENDPOINT',
    default: '`https://cloud.lambda.ai`',
    meaning: 'another server with the Lambda API',
  },
]

export type ParsedLambdaConfig = { config: LambdaConfig } | { problems: string[] }

/** Reads the settings of `LAMBDA_SETTINGS`; either a whole config or every problem at once. */
export function parseLambdaConfig(settings: Record<string, string | undefined>): ParsedLambdaConfig {
  const { problems, read, result } = new SettingsReader(settings)
  const found = findKey(settings, problems)
  const apiKey = read('LAMBDA_API_KEY', found?.values['LAMBDA_API_KEY'] ?? '', parseKey)
  if (apiKey === '' && problems.length === 0)
    problems.push(
      'LAMBDA_API_KEY is missing: make a key at cloud.lambda.ai/api-keys, then set it, or write `api_key = KEY` to ~/.lambda_cloud',
    )
  const regions = read<string[] | undefined>('CRUCIBLE_LAMBDA_REGIONS', undefined, parseRegions)
  const cache = read<string | undefined>('CRUCIBLE_LAMBDA_CACHE', undefined, parseFileSystem)
  const config: LambdaConfig = {
    apiKey,
    endpoint: read(
      'CRUCIBLE_LAMBDA_ENDPOINT',
      ENDPOINT_DEFAULT,
      urlOr(`write a URL, such as ${ENDPOINT_DEFAULT}`),
    ),
    types: read('CRUCIBLE_LAMBDA_TYPES', TYPES_DEFAULT, parseTypes),
    sshKey: read('CRUCIBLE_LAMBDA_SSH_KEY', SSH_KEY_DEFAULT, parseSshKey),
    staleForMs: read('CRUCIBLE_LAMBDA_STALE_FOR', STALE_DEFAULT_MS, parseDuration),
    requestsPerSecond: read('CRUCIBLE_LAMBDA_REQUESTS', REQUESTS_DEFAULT, parseRate),
    launchesPerMinute: read('CRUCIBLE_LAMBDA_LAUNCHES', LAUNCHES_DEFAULT, parseRate),
    regions,
    cache,
    keyProblem: found?.problem,
  }
  return result(config)
}

/** The last four characters at most. */
export function keyInWords(apiKey: string): string {
  return `the key ${lastFour(apiKey)}`
}

/** The key in the environment, or in the file of Lambda's users. */
function findKey(
  settings: Record<string, string | undefined>,
  problems: string[],
): StoredCredentials | undefined {
  try {
    return findCredentials(LAMBDA_CREDENTIALS, settings)
  } catch (error) {
    problems.push((error as Error).message)
    return undefined
  }
}

const parseKey: Parser<string> = (text) =>
  /^[\x21-\x7e]+$/.test(text) ? text : new Complaint('write the key without spaces or quotes', true)

const parseTypes: Parser<string[]> = (text) => {
  const types = listOf(text)
  return types.length > 0 && types.every((type) => /^!?[a-z0-9_*]+$/.test(type))
    ? types
    : new Complaint('write names of types such as gpu_1x_h100_pcie,gpu_*_a100*')
}

const parseRegions: Parser<string[]> = (text) => {
  const regions = [...new Set(listOf(text))]
  return regions.length > 0 && regions.every((region) => /^[a-z]+(-[a-z]+)+-\d+$/.test(region))
    ? regions
    : new Complaint('write Regions such as us-west-1,us-south-2, with commas between them')
}

const parseSshKey: Parser<string> = (text) =>
  text.length <= 64 ? text : new Complaint('write the name of an SSH key, at most 64 characters')

const parseFileSystem: Parser<string> = (text) =>
  /^[a-zA-Z][0-9a-zA-Z-]*$/.test(text) && text.length <= 60
    ? text
    : new Complaint('write the name of a file system, such as crucible-cache')

const parseDuration = durationWithin({ advice: 'write a duration with its unit, such as 90s or 3m' })

const parseRate: Parser<number> = (text) =>
  /^\d+(\.\d+)?$/.test(text) && Number(text) > 0 && Number(text) <= 1_000
    ? Number(text)
    : new Complaint('write a number above 0, such as 0.9')
