import { chmod, mkdir, mkdtemp, readlink, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { CrucibleError, messageOf } from '../../client/errors'
import {
  checkHost,
  startCloud,
  WorldError,
  type Cloud,
  type CloudOptions,
  type StartFront,
} from '#small-cloud'
import { adoptAws } from '../config'
import type { ObtainOptions } from './programs/obtain'
import { noteRestart } from './temporal/progress'
import { storeFrontOver } from './versitygw/front'
import { resolveVersitygw } from './versitygw/resolve'

export type { WorldText } from '#small-cloud'

export interface DevCloudOptions extends Pick<CloudOptions, 'world' | 'port' | 'storePort'> {
  /** Where the objects of its store are kept, which outlive the cloud. */
  storeDirectory: string
  /** Folder of its machines' disks, which it removes at its end. A temporary one when missing, and then a link leads there. */
  machines: { directory: string } | { link: string }
  /** How the store's server is found. */
  server: Omit<ObtainOptions, 'variable'>
}

/** A small cloud, and a deployment's place in it. */
export interface DevCloud {
  cloud: Cloud
  /** What client and workers of the deployment find in their environment, as they would of a real account. */
  environment: Record<string, string>
  /** Ends its machines and its store. */
  stop: () => Promise<void>
}

const BUCKET = 'crucible'

/** All of it is on this machine: looking often costs nothing, what has happened is seen at once, and machines come up in seconds. */
const PACE = {
  CRUCIBLE_BEAT: '1s',
  CRUCIBLE_OBSERVE: '0.5s',
  CRUCIBLE_CHECKPOINT_QUIET: '1s',
  CRUCIBLE_GONE_CONFIRM: '1s',
  CRUCIBLE_SILENCE: '2m',
  CRUCIBLE_EC2_STALE_FOR: '3s',
  CRUCIBLE_EC2_REGISTER_WITHIN: '2m',
}

/**
 * Starts a small cloud with a store in it, and makes its keys and addresses those by which this process reaches AWS, until it is
 * stopped. Throws a `CrucibleError` where the world is none, or there is no server for the store.
 */
export async function startDevCloud(options: DevCloudOptions): Promise<DevCloud> {
  const { storeDirectory, machines, server, ...rest } = options
  await checkHost().catch((error: unknown) => {
    throw new CrucibleError('failed', messageOf(error), { cause: error })
  })
  const directory = 'link' in machines ? await temporaryBehind(machines.link) : machines.directory
  const remove = (): Promise<void> => rm(directory, { recursive: true, force: true, maxRetries: 5 })
  try {
    const cloud = await startCloud({
      ...rest,
      directory,
      startFront: storeFront({ directory: storeDirectory, server }),
    })
    const environment = environmentIn(cloud)
    const restore = adoptAws(environment)
    return {
      cloud,
      environment,
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
      hint: 'Every field of a world file is in packages/small-cloud/README.md.',
      cause: error,
    })
  }
}

/**
 * A home may lie where the user of machines cannot go, when that is another one. What a cloud that was killed has left there is
 * removed.
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

/** The store's server is got when everything else is known to be well. */
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

/** The program of the store's server, found or got. Throws a `CrucibleError` with every way that was tried. */
export async function storeServer(options: DevCloudOptions['server']): Promise<string> {
  return resolveVersitygw(options).catch((error: unknown) => {
    options.signal?.throwIfAborted()
    throw new CrucibleError('unavailable', messageOf(error), { cause: error })
  })
}

function environmentIn({
  endpoint,
  storeEndpoint = endpoint,
  region,
  credentials,
}: Cloud): Record<string, string> {
  return {
    ...PACE,
    CRUCIBLE_BACKENDS: 'ec2',
    CRUCIBLE_STORE: `s3://${BUCKET}?${new URLSearchParams({ endpoint: storeEndpoint, region }).toString()}`,
    AWS_ENDPOINT_URL: endpoint,
    AWS_REGION: region,
    AWS_DEFAULT_REGION: region,
    AWS_ACCESS_KEY_ID: credentials.accessKeyId,
    AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
    // No account of the user's is meant.
    AWS_CONFIG_FILE: '/dev/null',
    AWS_SHARED_CREDENTIALS_FILE: '/dev/null',
    AWS_EC2_METADATA_DISABLED: 'true',
  }
}
