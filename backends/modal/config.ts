import { homedir } from 'node:os'
import { DAY_MS, HOUR_MS } from '../../core/time/time'
import {
  Complaint,
  durationWithin,
  listOf,
  parseYesNo,
  SettingsReader,
  urlOr,
  type Parser,
  type Settings,
} from '../settings'
import { MODAL_GPUS } from './gpus'
import { IMAGE_SECRETS, imageSecretsIn } from './policy'
import { readToken, tokenPath } from './token-file'

/** Address of the gateway, and settings of machines. */
export interface ModalConfig {
  /** Address of the gateway. */
  url: string
  token: { key: string; secret: string }
  /** Modal's names of the GPUs to offer. */
  gpus: string[]
  /** Longest run of one machine; at most 24 hours, Modal's own limit. */
  runMsMax: number
  /** Whether machines of a deployment share a volume for caches of models and packages. */
  hasCache: boolean
  /** Names of Modal Secrets, by the registry (or the part of one) whose images they open. */
  imageSecrets: Record<string, string>
  /** Garbage collection deletes the volume of a cache that no machine has mounted for this long. */
  cacheUnusedMs: number
}

/** Modal ends every Sandbox then (modal.com/docs/guide/sandboxes, read in November 2026). */
const RUN_MS_MAX = 24 * HOUR_MS
const DAYS_DEFAULT = 7

const GPU_NAMES = MODAL_GPUS.map(({ name }) => name)

/** The settings by name, for the parser's messages and for the documentation. */
export const MODAL_SETTINGS = [
  {
    name: 'CRUCIBLE_MODAL_URL',
    default: 'what `crucible setup modal` stored',
    meaning: 'address of the gateway in the workspace',
  },
  {
    name: 'CRUCIBLE_MODAL_KEY',
    default: 'what `crucible setup modal` stored',
    meaning: 'proxy token of the gateway, first half: `wk-...`',
  },
  {
    name: 'CRUCIBLE_MODAL_SECRET',
    default: 'what `crucible setup modal` stored',
    meaning: 'proxy token of the gateway, second half: `ws-...`',
  },
  {
    name: 'CRUCIBLE_MODAL_GPUS',
    default: 'all',
    meaning: `GPUs to offer, in addition to machines without one, separated by commas: ${GPU_NAMES.join(', ')}`,
  },
  {
    name: 'CRUCIBLE_MODAL_RUN_MAX',
    default: '24h',
    meaning: "longest run of one machine; Modal's own limit is 24 hours",
  },
  {
    name: 'CRUCIBLE_MODAL_CACHE',
    default: 'yes',
    meaning: 'whether the machines of a deployment share a volume for caches of models and packages',
  },
  {
    name: IMAGE_SECRETS,
    default: 'none',
    meaning: 'Modal Secrets for private images, as `REGISTRY=SECRET,...`',
  },
]

export type ParsedModalConfig = { config: ModalConfig } | { problems: string[] }

/** Reads the settings of `MODAL_SETTINGS`; either a whole config or every problem at once. */
export function parseModalConfig(settings: Settings): ParsedModalConfig {
  const stored = readToken(tokenPath(settings, homedir()))
  const { problems, read, result } = new SettingsReader(
    settings,
    stored && {
      CRUCIBLE_MODAL_URL: stored.url,
      CRUCIBLE_MODAL_KEY: stored.key,
      CRUCIBLE_MODAL_SECRET: stored.secret,
    },
  )
  const asWritten: Parser<string> = (text) => text
  const url = read('CRUCIBLE_MODAL_URL', '', parseAddress)
  const key = read('CRUCIBLE_MODAL_KEY', '', asWritten)
  const secret = read('CRUCIBLE_MODAL_SECRET', '', asWritten)
  if ([url, key, secret].includes('') && problems.length === 0)
    problems.push(
      'CRUCIBLE_MODAL_URL, CRUCIBLE_MODAL_KEY and CRUCIBLE_MODAL_SECRET are missing: run `crucible setup modal`, which stores them',
    )
  return result({
    url,
    token: { key, secret },
    runMsMax: read('CRUCIBLE_MODAL_RUN_MAX', RUN_MS_MAX, parseRun),
    gpus: read('CRUCIBLE_MODAL_GPUS', GPU_NAMES, parseGpus),
    hasCache: read('CRUCIBLE_MODAL_CACHE', true, parseYesNo),
    imageSecrets: read(IMAGE_SECRETS, {}, parseImageSecrets),
    cacheUnusedMs: DAYS_DEFAULT * DAY_MS,
  })
}

/** The last four characters at most. */
export function tokenInWords(key: string): string {
  return key.length >= 8 ? `the proxy token that ends in ${key.slice(-4)}` : 'the proxy token'
}

const parseAddress = urlOr('write the address that `crucible setup modal` shows')

const parseRun = durationWithin({ mostMs: RUN_MS_MAX, advice: 'write 24h or less' })

const parseGpus: Parser<string[]> = (text) => {
  if (text === 'all') return GPU_NAMES
  if (text === 'none') return []
  const names = listOf(text.toUpperCase())
  return names.every((name) => GPU_NAMES.includes(name))
    ? names
    : new Complaint(`write some of ${GPU_NAMES.join(',')}, or none`)
}

const parseImageSecrets: Parser<Record<string, string>> = (text) =>
  imageSecretsIn(text) ?? new Complaint('write REGISTRY=SECRET, such as ghcr.io=team-robot')
