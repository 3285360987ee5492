import type { Connection } from '@temporalio/client'
import { randomUUID } from 'node:crypto'
import { SEARCH_ATTRIBUTES } from '../../core/queues'
import { until } from './until'

/** `temporal.api.enums.v1.IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD` */
const KEYWORD = 2
const RETENTION_SECONDS = 86_400

/** A namespace of its own for one test, with the search attributes: no other test's workers, ids or lists are in it. */
export async function freshNamespace(connection: Connection): Promise<string> {
  const namespace = `test-${randomUUID().slice(0, 8)}`
  await connection.workflowService.registerNamespace({
    namespace,
    workflowExecutionRetentionPeriod: { seconds: RETENTION_SECONDS as never },
  })
  const searchAttributes = Object.fromEntries(Object.values(SEARCH_ATTRIBUTES).map((name) => [name, KEYWORD]))
  // Every part of the server reads its own copy of the namespaces.
  await until(async () =>
    isDone(connection.operatorService.addSearchAttributes({ namespace, searchAttributes })),
  )
  await until(async () =>
    isDone(
      connection.workflowService.listWorkflowExecutions({
        namespace,
        query: `${SEARCH_ATTRIBUTES.state} = 'x'`,
      }),
    ),
  )
  return namespace
}

async function isDone(call: Promise<unknown>): Promise<boolean> {
  return call.then(
    () => true,
    () => false,
  )
}
