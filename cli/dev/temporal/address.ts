import { Connection } from '@temporalio/client'
import { loadClientConfigProfile, toClientOptions, type ClientConnectConfig } from '@temporalio/envconfig'
import { messageOf, TemporalServerError } from './errors'

/** An external Temporal server. */
export interface TemporalAddress {
  kind: 'address'
  /** `host:port` */
  address: string
  namespace: string
  /** Address, TLS, API key and metadata in the form of every Temporal SDK. */
  connectionOptions: ClientConnectConfig['connectionOptions']
}

/** A server on the other side of the world answers within this time; a slower one counts as down. */
const ANSWER_TIMEOUT_MS = 3_000

/**
 * Returns the server that the environment names, by `TEMPORAL_ADDRESS` or by a profile of `temporal.toml`, read exactly as Temporal's own
 * tools do; `undefined` if it names none.
 */
export function addressFrom(env: NodeJS.ProcessEnv): TemporalAddress | undefined {
  try {
    const profile = loadClientConfigProfile({ overrideEnvVars: env as Record<string, string> })
    if (profile.address === undefined || profile.address === '') return undefined
    const { connectionOptions, namespace = 'default' } = toClientOptions(profile)
    return { kind: 'address', address: profile.address, namespace, connectionOptions }
  } catch (error) {
    throw new TemporalServerError(
      'configuration',
      `The Temporal configuration of the environment cannot be read: ${messageOf(error)}. ` +
        'Correct the TEMPORAL_* variables or temporal.toml, or unset them to use a server on this machine.',
      { cause: error },
    )
  }
}

/** Throws unless a Temporal server answers at the address. */
export async function checkAnswers({ address, connectionOptions }: TemporalAddress): Promise<void> {
  try {
    const { tls, apiKey, metadata } = connectionOptions
    const connection = await Connection.connect({
      address,
      connectTimeout: ANSWER_TIMEOUT_MS,
      tls,
      apiKey,
      metadata,
    })
    await connection.close()
  } catch (error) {
    throw new TemporalServerError(
      'no-answer',
      `The environment names the Temporal server ${address}, but it does not answer (${messageOf(error)}). ` +
        'Start it, correct TEMPORAL_ADDRESS or temporal.toml, or unset them to use a server on this machine.',
      { cause: error },
    )
  }
}
