import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { Connection } from '@temporalio/client'
import { DAY_MS, SECOND_MS } from '../../../core/time/time'
import { LOOPBACK } from './ports'

const LOOK_EVERY_MS = 50
const CONNECT_TIMEOUT_MS = 2_000

/** `INDEXED_VALUE_TYPE_KEYWORD` of Temporal's API. */
const KEYWORD = 2

export interface ReadyOptions {
  port: number
  namespace: string
  /** Keyword search attributes that must be usable. */
  searchAttributes: readonly string[]
  signal: AbortSignal
}

/**
 * Waits until the server answers for the namespace; rejects only when `signal` aborts. Adds the search attributes that the
 * server lacks.
 */
export async function waitUntilReady(options: ReadyOptions): Promise<void> {
  const { port, signal } = options
  for (;;) {
    signal.throwIfAborted()
    // Checked first because a gRPC connection to a closed port needs its whole timeout to fail.
    if ((await isOpen(port)) && (await isServing(options))) return
    await sleep(LOOK_EVERY_MS, undefined, { signal })
  }
}

function isOpen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, LOOPBACK)
    const answer = (isConnected: boolean): void => {
      socket.destroy()
      resolve(isConnected)
    }
    socket.once('connect', () => answer(true)).once('error', () => answer(false))
  })
}

/** The server's default is a day. The store outlives either. */
const RETENTION_SECONDS = (30 * DAY_MS) / SECOND_MS

/** Sets the retention of finished workflows to a month. */
async function keepHistories({ workflowService }: Connection, namespace: string): Promise<void> {
  const { config } = await workflowService.describeNamespace({ namespace })
  if (Number(config?.workflowExecutionRetentionTtl?.seconds ?? 0) === RETENTION_SECONDS) return
  // The type is a Long, but a number is encoded correctly.
  const seconds = RETENTION_SECONDS as never
  await workflowService.updateNamespace({
    namespace,
    config: { workflowExecutionRetentionTtl: { seconds } },
  })
}

async function isServing({ port, namespace, searchAttributes }: ReadyOptions): Promise<boolean> {
  let connection: Connection | undefined
  try {
    connection = await Connection.connect({
      address: `${LOOPBACK}:${port}`,
      connectTimeout: CONNECT_TIMEOUT_MS,
    })
    // Answers only once the frontend knows the namespace, shortly after the port opens.
    await connection.workflowService.countWorkflowExecutions({ namespace, query: '' })
    const { customAttributes } = await connection.operatorService.listSearchAttributes({ namespace })
    const missing = searchAttributes.filter((name) => !(name in (customAttributes ?? {})))
    if (missing.length > 0) {
      const added = Object.fromEntries(missing.map((name) => [name, KEYWORD]))
      await connection.operatorService.addSearchAttributes({ namespace, searchAttributes: added })
    }
    await keepHistories(connection, namespace)
    return true
  } catch {
    return false
  } finally {
    await connection?.close()
  }
}
