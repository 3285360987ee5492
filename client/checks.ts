import { randomUUID } from 'node:crypto'
import { stat } from 'node:fs/promises'
import { CODES, isCoded } from '../core/errors'
import { SEARCH_ATTRIBUTES } from '../core/queues'
import { readDeployment } from '../storage/deployment'
import { provePutIfAbsent } from '../storage/probe'
import { ensureDeploymentKey } from '../storage/secrets'
import { isUnused, storeTrouble } from './store-trouble'
import type { Context } from './context'

/**
 * Writes, reads and removes a small object; rejects if one of these fails, or if the place is not this deployment's store. A folder is only
 * tried once it is marked, because an unmarked one may be an empty mount point.
 */
export async function tryStore(context: Context): Promise<void> {
  const { store } = context
  const trouble = await storeTrouble(context)
  if (trouble !== undefined && (store.make !== undefined || !isUnused(trouble))) throw trouble
  const key = `doctor/${randomUUID()}`
  const body = 'written by crucible doctor'
  try {
    await store.put(key, body)
    const back = await store.get(key)
    if (back?.toString('utf8') !== body) throw new Error(`${store.url} does not return the written content`)
    await provePutIfAbsent(store)
  } finally {
    await store.delete(key).catch(() => undefined)
  }
}

/** Whether the secret key exists. Rejects if it is invalid or readable by other users. */
export async function hasSecretKey({ config }: Context): Promise<boolean> {
  const path = config.home.secretKeyFile
  const isThere = await stat(path).then(
    () => true,
    () => false,
  )
  if (isThere) await ensureDeploymentKey(path)
  return isThere
}

/** Search attributes that the server lacks. Rejects if the server does not answer, or has no such namespace. */
export async function missingSearchAttributes(context: Context): Promise<string[]> {
  const client = await context.temporal()
  const { namespace } = context.config.temporal
  await client.workflowService.describeNamespace({ namespace })
  const { customAttributes } = await client.connection.operatorService.listSearchAttributes({ namespace })
  return Object.values(SEARCH_ATTRIBUTES).filter((name) => !(name in (customAttributes ?? {})))
}

/** The deployment of this store, or `undefined` for one that is unused or does not exist yet. */
export async function deploymentOfStore({ store }: Context): Promise<string | undefined> {
  try {
    return await readDeployment(store)
  } catch (error) {
    if (isCoded(error, 'store') && error.code === CODES.noRoot) return undefined
    throw error
  }
}
