/** Runs the small cloud alone, with its object store: `npm run --silent sim`. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { homeOf } from '../../client/config'
import type { StartFront } from '#small-cloud'
import { main } from '#small-cloud/main'
import { readCliConfig } from '../kit/config'
import { noteRestart, progressOn } from './temporal/progress'
import { storeFrontOver } from './versitygw/front'
import { resolveVersitygw } from './versitygw/resolve'

/** Gets the store's server if it is missing, and keeps its objects while the cloud runs. */
const startFront: StartFront = async (options) => {
  const { environment } = readCliConfig()
  const progress = progressOn(process.stderr, Date.now)
  const home = homeOf(environment).directory
  const executable = await resolveVersitygw({ home, env: { ...environment }, progress })
  const directory = await mkdtemp(join(tmpdir(), 'crucible-sim-store-'))
  const remove = (): Promise<void> => rm(directory, { recursive: true, force: true, maxRetries: 5 })
  try {
    const front = await storeFrontOver({ executable, directory, onRestart: noteRestart(progress) })(options)
    return {
      endpoint: front.endpoint,
      ended: front.ended,
      handle: (request, response) => front.handle(request, response),
      stop: () => front.stop().finally(remove),
    }
  } catch (error) {
    await remove()
    throw error
  }
}

void main(process.argv.slice(2), startFront).then((exitCode) => {
  process.exitCode = exitCode
})
