import { randomBytes } from 'node:crypto'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { StartFront } from '../../../sim'
import { startFront } from '../../../sim/s3/front'
import { launchVersitygw } from './launch'

export interface StoreFrontPlace {
  executable: string
  /** Where the objects are kept. */
  directory: string
  /** Buckets that are there from the first; made when they are missing. */
  buckets?: readonly string[]
}

/** The small cloud's object store: its front, with a real server of its own behind it that nobody else has keys for. */
export function storeFrontOver({ executable, directory, buckets = [] }: StoreFrontPlace): StartFront {
  return async (options) => {
    const keys = { keyId: 'behind-the-front', secret: randomBytes(16).toString('hex') }
    const { region } = options
    // The server takes every folder there for a bucket.
    for (const bucket of buckets) await mkdir(join(directory, 'buckets', bucket), { recursive: true })
    const server = await launchVersitygw({ executable, directory, region, ...keys })
    try {
      const upstream = { url: server.url, region, ...keys }
      const front = await startFront({ ...options, upstream, bucketsFile: join(directory, 'buckets.json') })
      return {
        endpoint: front.endpoint,
        handle: (request, response) => front.handle(request, response),
        async stop() {
          await front.stop()
          await server.process.stop()
        },
      }
    } catch (error) {
      await server.process.stop()
      throw error
    }
  }
}
