import { withoutEnd } from '../core/trim'
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
  writePrivately,
  type DevNote,
  type Environment,
  type Home,
} from '../storage/home'
import { messageOf } from '../core/errors'
import { fileErrorInWords } from '../core/file-error'
import { CrucibleError } from './errors'

/** The settings of a client. @experimental */
export interface ClientConfig {
  home: Home
  temporal: {
    connection: ClientConnectConfig['connectionOptions']
    namespace: string
    /** The server is that of a running `crucible dev`, which restarts it when it ends. */
    isOfDev?: boolean
  }
  /** Base address of Temporal's Web UI; missing if unknown. */
  temporalUiUrl?: string
  /** The submitting user, for lists. */
  owner: string
  /** Environment variables with the values of secrets. */
  environment: Environment
}

/**
 * Reads the configuration from an environment. The Temporal server is the one that `TEMPORAL_ADDRESS` or `temporal.toml` names, otherwise
 * that of a running `crucible dev`, otherwise Temporal's default. Throws a `CrucibleError` of kind `usage`.
 *
 * @public
 */
export function readClientConfig(
  own: Readonly<Record<string, string | undefined>> = process.env,
): ClientConfig {
  const env = withDevEnvironment(own)
  // The store's SDK reads these variables itself.
  if (env !== own) replaceAws(env, process.env)
  const home = homeOf(env)
  const { note, ...temporal } = readTemporal(env, home)
  const temporalUiUrl = withoutEnd(env.CRUCIBLE_TEMPORAL_UI?.trim() ?? '', '/') || note?.uiUrl
  return {
    home,
    temporal: note === undefined ? temporal : { ...temporal, isOfDev: true },
    owner: env.CRUCIBLE_OWNER?.trim() || env.USER?.trim() || userName(),
    environment: env,
    temporalUiUrl,
  }
}

function readTemporal(env: Environment, home: Home): ClientConfig['temporal'] & { note?: DevNote } {
  try {
    const set = Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined)
    const profile = loadClientConfigProfile({ overrideEnvVars: Object.fromEntries(set) })
    const dev = readDevNote(home)
    profile.address ??= dev?.address ?? 'localhost:7233'
    const { connectionOptions, namespace = 'default' } = toClientOptions(profile)
    const note = dev?.address === profile.address ? dev : undefined
    const scheme = /^\w+:\/\//.exec(profile.address)?.[0]
    if (scheme !== undefined)
      throw new Error(`the address ${profile.address} is a URL; write host:port, without ${scheme}`)
    return { connection: connectionOptions, namespace, note }
  } catch (error) {
    const why = fileErrorInWords(error) ?? messageOf(error)
    throw new CrucibleError('usage', `The Temporal configuration cannot be read: ${why}.`, {
      hint: 'Correct the TEMPORAL_* variables or temporal.toml.',
      cause: error,
    })
  }
}

/** Returns the user's name; some containers run as a user without one. */
function userName(): string {
  try {
    return userInfo().username
  } catch {
    return 'unknown'
  }
}
