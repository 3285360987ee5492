import { Client, Connection } from '@temporalio/client'
import { IllegalStateError } from '@temporalio/common'
import { DefaultLogger, NativeConnection, Runtime } from '@temporalio/worker'
import type { TemporalExecutable } from '../../cli/dev/temporal/resolve'

/** How the global set-up hands its server to the test files: JSON in the environment of their processes. */
export const TEST_SERVER_VARIABLE = 'CRUCIBLE_TEST_SERVER'

export interface TestServer {
  address: string
  namespace: string
  executable: TemporalExecutable
}

/** The server that all files of the `temporal` project share; its ids and task queues must be unique to a test. */
export function testServer(): TestServer {
  const text = process.env[TEST_SERVER_VARIABLE]
  if (text === undefined) throw new Error('no test server: name the file *.e2e.test.ts and run it with Jest')
  return JSON.parse(text) as TestServer
}

/** Workers of this process log errors only. Called before the first connection. */
export function quietWorkers(): void {
  try {
    Runtime.install({
      logger: new DefaultLogger('ERROR'),
      telemetryOptions: { logging: { filter: { core: 'ERROR', other: 'ERROR' } } },
    })
  } catch (error) {
    // A test file that ran before in this process, or the same one with another mutant, has installed it.
    if (!(error instanceof IllegalStateError)) throw error
  }
}

export interface TestConnection {
  client: Client
  /** For workers. */
  nativeConnection: NativeConnection
  close: () => Promise<void>
}

/** Connects to a Temporal server: the shared one unless another is named. One per file, closed in `afterAll`. */
export async function connectTo(address = testServer().address): Promise<TestConnection> {
  const connection = await Connection.connect({ address })
  const nativeConnection = await NativeConnection.connect({ address })
  return {
    client: new Client({ connection, namespace: testServer().namespace }),
    nativeConnection,
    async close() {
      await nativeConnection.close()
      await connection.close()
    },
  }
}

/**
 * From now on the workflow's own clock skips what it waits for, and that of its children. It stands still while an activity or a
 * child runs, and it skips into the workflow's own timeouts too, so a workflow under test has none.
 */
export async function skipTime(client: Client, workflowId: string): Promise<void> {
  await client.workflowService.updateWorkflowExecutionOptions({
    namespace: client.options.namespace,
    workflowExecution: { workflowId },
    workflowExecutionOptions: { timeSkippingConfig: { enabled: true } },
    updateMask: { paths: ['time_skipping_config'] },
  })
}
