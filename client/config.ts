import { userInfo } from 'node:os'
import { loadClientConfigProfile, toClientOptions, type ClientConnectConfig } from '@temporalio/envconfig'
import {
  homeOf,
  readDevNote,
  replaceAws,
  withDevEnvironment,
  type DevNote,
  type Environment,
  type Home,
} from '../storage/home'
export {
  closeHome,
  homeOf,
  readDevNote,
  removeDevNote,
  writeDevNote,
  type DevNote,
  type Environment,
  type Home,
} from '../storage/home'
import { CrucibleError, messageOf } from './errors'

/** What a client needs to know. */
export interface ClientConfig {
  home: Home
  temporal: { connection: ClientConnectConfig['connectionOptions']; namespace: string }
  /** Base address of Temporal's Web UI; missing where nobody told it. */
  temporalUiUrl?: string
  /** Who submits, for lists. */
  owner: string
  /** Where the values of secrets are taken from, by their names. */
  environment: Environment
}

/**
 * Reads the configuration from an environment. The Temporal server is the one that `TEMPORAL_ADDRESS` or `temporal.toml` names,
 * else the one of a running `crucible dev`, else Temporal's default. Throws a `CrucibleError` of kind `usage`.
 */
export function readClientConfig(own: Environment = process.env): ClientConfig {
  const env = withDevEnvironment(own)
  // The store's SDK looks there by itself.
  if (env !== own) replaceAws(env, process.env)
  const home = homeOf(env)
  const { note, ...temporal } = readTemporal(env, home)
  const temporalUiUrl = env.CRUCIBLE_TEMPORAL_UI?.trim().replace(/\/+$/, '') || note?.uiUrl
  return {
    home,
    temporal,
    owner: env.CRUCIBLE_OWNER?.trim() || env.USER?.trim() || userName(),
    environment: env,
    ...(temporalUiUrl === undefined ? {} : { temporalUiUrl }),
  }
}

function readTemporal(env: Environment, home: Home): ClientConfig['temporal'] & { note?: DevNote } {
  try {
    const defined = Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined)
    const profile = loadClientConfigProfile({ overrideEnvVars: Object.fromEntries(defined) })
    const dev = readDevNote(home)
    profile.address ??= dev?.address ?? 'localhost:7233'
    const { connectionOptions, namespace = 'default' } = toClientOptions(profile)
    const note = dev?.address === profile.address ? dev : undefined
    return { connection: connectionOptions, namespace, ...(note === undefined ? {} : { note }) }
  } catch (error) {
    throw new CrucibleError('usage', `The Temporal configuration cannot be read: ${messageOf(error)}.`, {
      hint: 'Mend the TEMPORAL_* variables or the temporal.toml that they name.',
      cause: error,
    })
  }
}

/** Some containers run as a user that has no name. */
function userName(): string {
  try {
    return userInfo().username
  } catch {
    return 'unknown'
  }
}
