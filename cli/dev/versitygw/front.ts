import { randomBytes } from 'node:crypto'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { StartFront } from '#small-cloud'
import { startFront } from '#small-cloud/s3/front'
import { keepUp } from '../temporal/keep-up'
import { endingNamed } from '../temporal/leash'
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
 * meanwhile.
 */
export function storeFrontOver(place: StoreFrontPlace): StartFront {
  const { executable, directory, buckets = [], onRestart } = place
  return async (options) => {
    const keys = { keyId: 'behind-the-front', secret: randomBytes(16).toString('hex') }
    const { region } = options
    // The server treats every folder here as a bucket.
    for (const bucket of buckets) await mkdir(join(directory, 'buckets', bucket), { recursive: true })
    const settings = { executable, directory, region, ...keys }
    const { url, port, process } = await launchVersitygw(settings)
    const server = keepUp(process, {
      launch: async (signal) => (await launchVersitygw({ ...settings, port, signal })).process,
      endingOf: endingNamed("The small cloud's S3 server"),
      onRestart,
    })
    try {
      const upstream = { url, region, ...keys, whenUp: () => server.whenUp() }
      const front = await startFront({ ...options, upstream, bucketsFile: join(directory, 'buckets.json') })
      return {
        endpoint: front.endpoint,
        ended: server.ended,
        handle: (request, response) => front.handle(request, response),
        async stop() {
          await front.stop()
          await server.stop()
        },
      }
    } catch (error) {
      await server.stop()
      throw error
    }
  }
}
