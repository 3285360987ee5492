import { checkDeployment, parseDeployment } from './deployment-id'
import { putDocumentIfAbsent, readDocument } from './json'
import { layout } from './layout'
import { StoreError, type ObjectStore } from './store'

/**
 * Returns the deployment that owns this store, or `undefined` for an unused store. From then on every write makes sure that the store is
 * still that deployment's.
 */
export async function readDeployment(store: ObjectStore): Promise<string | undefined> {
  const id = (await readDocument(store, layout.deployment(), parseDeployment))?.id
  if (id !== undefined) store.belongTo?.(id)
  return id
}

/** Returns the deployment that owns this store. The first caller gives it the id from `makeId`, and every caller gets the same answer. */
export async function ensureDeployment(store: ObjectStore, makeId: () => string): Promise<string> {
  const standing = await readDeployment(store)
  if (standing !== undefined) return standing
  const { id } = checkDeployment({ id: makeId() })
  const isFirst = await putDocumentIfAbsent(store, layout.deployment(), { id })
  const first = await readDeployment(store)
  if (first !== undefined) return first
  if (isFirst) return id
  throw new StoreError(`${layout.deployment()} disappeared: another program deletes objects in this store.`, {
    isTransient: true,
  })
}
