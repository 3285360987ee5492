import { homedir } from 'node:os'
import { join } from 'node:path'
import { startDevServer, type DevServer } from '../../cli/dev/temporal/dev-server'
import { progressOn } from '../../cli/dev/temporal/progress'
import { resolveExecutable } from '../../cli/dev/temporal/resolve'
import { TEST_SERVER_VARIABLE, type TestServer } from './temporal'

/** One Temporal server, in memory and with time skipping, for every file of the `temporal` project. */
async function setUp(): Promise<void> {
  const executable = await resolveExecutable({
    home: process.env['CRUCIBLE_HOME'] ?? join(homedir(), '.crucible'),
    env: process.env,
    progress: progressOn(process.stderr, Date.now),
  })
  const server = await startDevServer({ executable, isTimeSkippingEnabled: true })
  const { address, namespace } = server
  const testServer: TestServer = { address, namespace, executable }
  process.env[TEST_SERVER_VARIABLE] = JSON.stringify(testServer)
  ;(globalThis as { crucibleTestServer?: DevServer }).crucibleTestServer = server
}

export = setUp
