import { chmod, mkdir, mkdtemp, readlink, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { BACKENDS, type Simulation } from '../../backends/registry'
import { CrucibleError } from '../../client/errors'
import { messageOf } from '../../core/errors'
import type { BackendName } from '../../core/offer'
import {
  checkHost,
  startCloud,
  WorldError,
  type Cloud,
  type CloudOptions,
  type StartFront,
} from '#small-cloud'
import type { Environment } from '../../client/config'
import type { WorkerConfig } from '../../service/config'
import { adoptAws } from '../kit/config'
import type { ObtainOptions } from './programs/obtain'
import { noteRestart } from './temporal/progress'
import { storeFrontOver } from './versitygw/front'
import { resolveVersitygw } from './versitygw/resolve'

export type { WorldText } from '#small-cloud'

export interface DevCloudOptions extends Pick<CloudOptions, 'world' | 'port' | 'storePort'> {
  /** The backends whose providers it plays; `SIMULATED_DEFAULT` if missing. */
  backends?: readonly BackendName[]
  /** Folder of its store's objects, which outlive the cloud. */
  storeDirectory: string
  /** Folder for its machines' disks, which it removes at its end. If missing, a temporary one with a link to it. */
  machines: { directory: string } | { link: string }
  /** Options for finding the store's server. */
  server: Omit<ObtainOptions, 'variable'>
}

/** A small cloud with the environment of its deployment. */
export interface DevCloud {
  cloud: Cloud
  /** Environment of the deployment's client and workers, as for a real account. The user's own values take precedence. */
  environment: Record<string, string>
  /** The backends whose provider it plays. */
  simulated: BackendName[]
  /** Returns the environment of the deployment for a user with settings, which take precedence except those that lead to a real account. */
  environmentWith(own: Environment): Environment
  /** Throws a `CrucibleError` if one of the backends would reach a real account: a job for a small cloud must not buy a machine. */
  refuseRealAccounts(config: Pick<WorkerConfig, 'backends'>): void
  /** Ends its machines and its store. */
  stop: () => Promise<void>
}

const BUCKET = 'crucible'

/** Backends that a small cloud serves if no others are named. */
const SIMULATED_DEFAULT: readonly BackendName[] = ['ec2']

/** Everything is on this machine: polling often costs nothing, shows changes immediately, and machines start within seconds. */
const PACE = {
  CRUCIBLE_BEAT: '1s',
  CRUCIBLE_OBSERVE: '0.5s',
  CRUCIBLE_CHECKPOINT_QUIET: '1s',
  CRUCIBLE_GONE_CONFIRM: '1s',
  CRUCIBLE_SILENCE: '2m',
}

/** World without a world file: capacity for sale, with one GPU in one zone and eight in another. */
const USUAL_WORLD: NonNullable<CloudOptions['world']> = {
  blockOfferings: [
    { type: 'p5.4xlarge', zone: 'us-east-1a', count: 8, usdPerInstanceHour: 4.33 },
    { type: 'p5.48xlarge', zone: 'us-east-1b', count: 16, usdPerInstanceHour: 34.61 },
  ],
}

/**
 * Starts a small cloud with a store, and directs this process to it with its keys and addresses until it is stopped. Throws a
 * `CrucibleError` if the world is invalid or the store has no server.
 */
export async function startDevCloud(options: DevCloudOptions): Promise<DevCloud> {
  const { storeDirectory, machines, server, backends = SIMULATED_DEFAULT, ...rest } = options
  await checkHost({ hasContainers: backends.includes('modal') }).catch((error: unknown) => {
    throw new CrucibleError('failed', messageOf(error), { cause: error })
  })
  const directory = 'link' in machines ? await temporaryBehind(machines.link) : machines.directory
  const remove = (): Promise<void> => rm(directory, { recursive: true, force: true, maxRetries: 5 })
  try {
    const cloud = await startCloud({
      world: USUAL_WORLD,
      ...rest,
      directory,
      startFront: storeFront({ directory: storeDirectory, server }),
    })
    const { simulated, reach, pace } = simulationIn(cloud, backends)
    const environment = { ...PACE, ...pace, ...reach, CRUCIBLE_BACKENDS: backends.join(',') }
    const restore = adoptAws(environment)
    return {
      cloud,
      environment,
      simulated,
      environmentWith: (own) => {
        const kept = Object.entries(own).filter(([name]) => !name.startsWith('AWS_'))
        return { ...environment, ...Object.fromEntries(kept), ...reach }
      },
      refuseRealAccounts: (config) => refuseRealAccounts(config, simulated),
      stop: async () => {
        restore()
        await cloud.stop()
        await remove()
      },
    }
  } catch (error) {
    await remove()
    if (!(error instanceof WorldError)) throw error
    throw new CrucibleError('usage', error.message, {
      hint: 'packages/small-cloud/README.md lists every field of a world file.',
      cause: error,
    })
  }
}

/**
 * The user of the machines may be unable to enter the home, if that is another user. Removes leftovers of a cloud that was
 * killed.
 */
async function temporaryBehind(link: string): Promise<string> {
  const left = await readlink(link).catch(() => undefined)
  for (const path of [left, link]) if (path !== undefined) await rm(path, { recursive: true, force: true })
  const directory = await mkdtemp(join(tmpdir(), 'crucible-machines-'))
  await chmod(directory, 0o711)
  await mkdir(dirname(link), { recursive: true })
  await symlink(directory, link)
  return directory
}

/** Gets the store's server last, after everything else is validated. */
function storeFront({
  directory,
  server,
}: {
  directory: string
  server: DevCloudOptions['server']
}): StartFront {
  return async (options) => {
    const executable = await storeServer(server)
    await mkdir(directory, { recursive: true })
    const onRestart = noteRestart(server.progress)
    return storeFrontOver({ executable, directory, buckets: [BUCKET], onRestart })(options)
  }
}

/** The program of the store's server, found or installed. Throws a `CrucibleError` with every way that was tried. */
export async function storeServer(options: DevCloudOptions['server']): Promise<string> {
  return resolveVersitygw(options).catch((error: unknown) => {
    options.signal?.throwIfAborted()
    throw new CrucibleError('unavailable', messageOf(error), { cause: error })
  })
}

function refuseRealAccounts(
  { backends }: Pick<WorkerConfig, 'backends'>,
  simulated: readonly BackendName[],
): void {
  for (const [name, { isNear }] of backends)
    if (!isNear && !simulated.includes(name))
      throw new CrucibleError('usage', `The small cloud does not simulate the provider of ${name}.`, {
        hint: `Leave ${name} out of CRUCIBLE_BACKENDS, or leave out --sim to use the real account.`,
      })
}

/** Returns the providers that the cloud simulates for a backend, with their addresses and that of the store. */
function simulationIn(
  cloud: Cloud,
  backends: readonly BackendName[],
): Required<Omit<Simulation, 'needsGrants'>> & { simulated: BackendName[] } {
  const played = providersOf(cloud)
  const simulated = Object.keys(BACKENDS).filter(
    (name) => BACKENDS[name]!.simulated !== undefined && played[name] !== undefined,
  )
  const simulationOf = (name: BackendName): Simulation => BACKENDS[name]!.simulated!(played[name]!)
  const simulations = simulated.map(simulationOf)
  const needGrants = backends.filter((name) => simulated.includes(name) && simulationOf(name).needsGrants)
  const grants = needGrants.length > 0 ? grantsIn(cloud) : {}
  return {
    simulated,
    reach: Object.assign(storeIn(cloud), grants, ...simulations.map(({ reach }) => reach)) as Record<
      string,
      string
    >,
    pace: Object.assign({}, ...simulations.map(({ pace }) => pace)) as Record<string, string>,
  }
}

/** Returns the cloud's facts about each simulated provider, by backend. */
function providersOf(cloud: Cloud): Record<BackendName, Readonly<Record<string, string>>> {
  return { ec2: { endpoint: cloud.endpoint, region: cloud.region, ...cloud.credentials }, ...cloud.providers }
}

const GRANT_ROLE = 'crucible-grant'

/** Returns the role whose short-lived credentials go to machines without their own. */
function grantsIn(cloud: Cloud): Record<string, string> {
  const arn = cloud.account().roles.find(({ name }) => name === GRANT_ROLE)?.arn
  return arn === undefined ? {} : { CRUCIBLE_GRANT_ROLE: arn }
}

/** The store, which every backend needs, and the keys for it. */
function storeIn({ endpoint, storeEndpoint = endpoint, region, credentials }: Cloud): Record<string, string> {
  return {
    CRUCIBLE_STORE: `s3://${BUCKET}?${new URLSearchParams({ endpoint: storeEndpoint, region }).toString()}`,
    AWS_REGION: region,
    AWS_DEFAULT_REGION: region,
    AWS_ACCESS_KEY_ID: credentials.accessKeyId,
    AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
    // The user's account is never used.
    AWS_CONFIG_FILE: '/dev/null',
    AWS_SHARED_CREDENTIALS_FILE: '/dev/null',
    AWS_EC2_METADATA_DISABLED: 'true',
  }
}
