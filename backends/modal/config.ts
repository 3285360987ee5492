import { homedir } from 'node:os'
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../../core/time'
import { MODAL_GPUS } from './gpus'
import { IMAGE_SECRETS, imageSecretsIn } from './policy'
import { readToken, tokenPath } from './token-file'

/** Where the gateway is, and what machines get. */
export interface ModalConfig {
  /** Address of the gateway. */
  url: string
  token: { key: string; secret: string }
  /** Modal's names of the GPUs to offer. */
  gpus: string[]
  /** How long one machine may run; 24 hours at most, which is Modal's own limit. */
  runMsMax: number
  /** Whether machines of a deployment share a volume for caches of models and packages. */
  hasCache: boolean
  /** Names of Modal Secrets, by the registry (or the part of one) whose images they open. */
  imageSecrets: Record<string, string>
  /** Garbage collection deletes the volume of a cache that no machine has mounted for this long. */
  cacheUnusedMs: number
}

/** Modal ends every Sandbox then (modal.com/docs/guide/sandboxes, read in November 2026). */
export const RUN_MS_MAX = 24 * HOUR_MS
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
    meaning: `GPUs to offer besides machines without one, separated by commas: ${GPU_NAMES.join(', ')}`,
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
export function parseModalConfig(settings: Record<string, string | undefined>): ParsedModalConfig {
  const problems: string[] = []
  const textOf = (name: string): string | undefined => settings[name]?.trim() || undefined
  const stored = readToken(tokenPath(settings, homedir()))
  const url = textOf('CRUCIBLE_MODAL_URL') ?? stored?.url
  const key = textOf('CRUCIBLE_MODAL_KEY') ?? stored?.key
  const secret = textOf('CRUCIBLE_MODAL_SECRET') ?? stored?.secret
  if (url === undefined || key === undefined || secret === undefined)
    problems.push(
      'CRUCIBLE_MODAL_URL, CRUCIBLE_MODAL_KEY and CRUCIBLE_MODAL_SECRET are missing: run `crucible setup modal`, which stores them',
    )
  if (url !== undefined && !(URL.canParse(url) && /^https?:/.test(url)))
    problems.push(`CRUCIBLE_MODAL_URL is "${url}": write the address that \`crucible setup modal\` shows`)
  const runMsMax = runOf(textOf('CRUCIBLE_MODAL_RUN_MAX'))
  if (runMsMax === undefined)
    problems.push(`CRUCIBLE_MODAL_RUN_MAX is "${textOf('CRUCIBLE_MODAL_RUN_MAX')}": write 24h or less`)
  const gpus = gpusOf(textOf('CRUCIBLE_MODAL_GPUS'))
  if (gpus === undefined)
    problems.push(
      `CRUCIBLE_MODAL_GPUS is "${textOf('CRUCIBLE_MODAL_GPUS')}": write some of ${GPU_NAMES.join(',')}, or none`,
    )
  const cache = textOf('CRUCIBLE_MODAL_CACHE') ?? 'yes'
  if (cache !== 'yes' && cache !== 'no') problems.push(`CRUCIBLE_MODAL_CACHE is "${cache}": write yes or no`)
  const imageSecrets = imageSecretsIn(textOf(IMAGE_SECRETS))
  if (imageSecrets === undefined)
    problems.push(
      `${IMAGE_SECRETS} is "${textOf(IMAGE_SECRETS)}": write REGISTRY=SECRET, such as ghcr.io=team-robot`,
    )
  if (problems.length > 0) return { problems }
  const config: ModalConfig = {
    url: url!.replace(/\/+$/, ''),
    token: { key: key!, secret: secret! },
    ...{ gpus: gpus!, runMsMax: runMsMax!, hasCache: cache === 'yes' },
    imageSecrets: imageSecrets!,
    cacheUnusedMs: DAYS_DEFAULT * 24 * HOUR_MS,
  }
  return { config }
}

/** The last four characters at most. */
export function tokenInWords(key: string): string {
  return key.length >= 8 ? `the proxy token that ends in ${key.slice(-4)}` : 'the proxy token'
}

function gpusOf(text: string | undefined): string[] | undefined {
  if (text === undefined || text === 'all') return GPU_NAMES
  if (text === 'none') return []
  const names = text.split(',').map((one) => one.trim().toUpperCase())
  return names.every((name) => GPU_NAMES.includes(name)) ? names : undefined
}

const UNITS_MS: Record<string, number> = { s: SECOND_MS, m: MINUTE_MS, h: HOUR_MS }

function runOf(text: string | undefined): number | undefined {
  if (text === undefined) return RUN_MS_MAX
  const match = /^(\d+(?:\.\d+)?)\s*([smh])$/.exec(text)
  const runMs = match === null ? 0 : Math.round(Number(match[1]) * UNITS_MS[match[2]!]!)
  return runMs > 0 && runMs <= RUN_MS_MAX ? runMs : undefined
}
