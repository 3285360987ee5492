import { randomBytes } from 'node:crypto'
import { mkdir, mkdtemp, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { StartFront } from '#small-cloud'
import { startFront } from '#small-cloud/s3/front'
import { keepUp } from '../temporal/keep-up'
import { endingNamed } from '../temporal/leash'
import { confinementIn } from './confine'
import { launchVersitygw } from './launch'

export interface StoreFrontPlace {
  executable: string
  /** Folder of the objects. */
  directory: string
  /** Buckets created at the start if they are missing. */
  buckets?: readonly string[]
  /** The server ended unexpectedly and is being restarted; `reason` says how it ended. */
  onRestart?: (reason: string) => void
}

/**
 * The small cloud's object store: its front, with a real private server behind it that is restarted when it dies; requests wait
 * meanwhile. The server listens on a socket in a folder that only this user can enter, with keys that only the front has. If this process
 * is root, the server has a user of its own and sees only its folder.
 */
export function storeFrontOver(place: StoreFrontPlace): StartFront {
  const { executable, directory, buckets = [], onRestart } = place
  return async (options) => {
    const keys = { keyId: 'behind-the-front', secret: randomBytes(24).toString('hex') }
    const { region } = options
    // The server treats every folder here as a bucket.
    for (const bucket of buckets) await mkdir(join(directory, 'buckets', bucket), { recursive: true })
    // A home can have a longer path than a socket may have.
    const closed = await mkdtemp(join(tmpdir(), 'crucible-store-'))
    const confinement = await confinementIn(directory, executable)
    const sockets = join(closed, 'run')
    if (confinement === undefined) await mkdir(sockets)
    else await symlink(join(directory, dirname(confinement.socket)), sockets)
    const socketPath = join(sockets, 's3')
    const undo = (): Promise<void> => rm(closed, { recursive: true, force: true })
    const settings = { executable, directory, region, address: socketPath, confinement, ...keys }
    const launch = (signal?: AbortSignal) =>
      // A killed server leaves its socket behind.
      rm(socketPath, { force: true }).then(() => launchVersitygw({ ...settings, signal }))
    const first = await launch().catch((error: unknown) =>
      undo().then(() => {
        throw error
      }),
    )
    const server = keepUp(first, {
      launch,
      endingOf: endingNamed("The small cloud's S3 server"),
      onRestart,
    })
    try {
      const upstream = { socketPath, region, ...keys, whenUp: () => server.whenUp() }
      const front = await startFront({ ...options, upstream, bucketsFile: join(directory, 'buckets.json') })
      return {
        endpoint: front.endpoint,
        ended: server.ended,
        handle: (request, response) => front.handle(request, response),
        async stop() {
          await front.stop()
          await server.stop()
          await undo()
        },
      }
    } catch (error) {
      await server.stop()
      await undo()
      throw error
    }
  }
}
