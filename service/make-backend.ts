import type { Logger } from 'pino'
import type { Grantee } from '../activities/watch/grants'
import type { Backend } from '../backends/backend'
import { BACKENDS } from '../backends/registry'
import type { BackendName } from '../core/offer'
import type { ObjectStore } from '../storage/store'
import type { WorkerConfig } from './config'
import { ConfigError } from './config-error'
import { discounted } from './discount'
import type { GrantIssuer } from './grants'
import { handOvers } from './hand-over'
import { storeReachProblem, withStoreReach } from './store-reach'
import { runnerFetcher, runnerLinker } from './runner-program'
import type { SecretIssuer } from './secrets'

/** Makes one backend of the configuration, ready to use. */
export async function makeBackend(
  config: WorkerConfig,
  name: BackendName,
  at: {
    store: ObjectStore
    deployment: string
    secrets?: SecretIssuer
    grants?: GrantIssuer | undefined
    /** The store is known to be down: the backend's check need not repeat it. */
    isStoreUnwell?: boolean
    logger?: Pick<Logger, 'warn'>
  },
): Promise<Backend> {
  const read = config.backends.get(name)
  if (read === undefined) {
    const known = Object.keys(BACKENDS).join(', ')
    throw new ConfigError([`There is no backend "${name}" in CRUCIBLE_BACKENDS; Crucible knows ${known}.`])
  }
  const { secrets, grants, isStoreUnwell = false } = at
  const reach = { storeUrl: at.store.url, hasPermanentKeys: config.grants.keys !== undefined }
  const backend = await read.create({
    fetchRunner: runnerFetcher(at.store),
    runnerUrl: runnerLinker(at.store),
    storeUrl: isStoreUnwell ? undefined : at.store.url,
    clock: Date.now,
    monotonic: () => performance.now(),
    deployment: at.deployment,
    secretKeyOf: secrets === undefined ? undefined : (attemptId: string) => secrets.keyOf(attemptId),
    grantFile: grants === undefined ? undefined : (attempt: Grantee) => grants.grantFile(attempt),
    handOver: secrets === undefined ? undefined : handOvers({ ...at, secrets, now: Date.now }),
  })
  const reached = withStoreReach(backend, storeReachProblem(read, reach))
  return discounted(reached, config.discounts.get(name))
}
