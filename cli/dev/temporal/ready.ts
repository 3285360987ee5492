import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { Connection } from '@temporalio/client'
import { DAY_MS, SECOND_MS } from '../../../core/time'
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
 * Waits until the server answers for the namespace; rejects only when `signal` aborts. A data file made by an earlier version
 * of Crucible may lack a search attribute: it is added.
 */
export async function waitUntilReady(options: ReadyOptions): Promise<void> {
  const { port, signal } = options
  for (;;) {
    signal.throwIfAborted()
    // Asked first because a gRPC connection to a closed port takes its whole timeout to say so.
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

/** The server's own choice is a day. What is in the store outlives either. */
const RETENTION_SECONDS = (30 * DAY_MS) / SECOND_MS

/** Has the namespace keep the histories of jobs that are over for a month, also where an earlier version has made it. */
async function keepHistories({ workflowService }: Connection, namespace: string): Promise<void> {
  const { config } = await workflowService.describeNamespace({ namespace })
  if (Number(config?.workflowExecutionRetentionTtl?.seconds ?? 0) === RETENTION_SECONDS) return
  // The type wants a Long; a number is encoded as one.
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
    // Answered only once the namespace is known to the frontend, which is a moment after the port opens.
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
