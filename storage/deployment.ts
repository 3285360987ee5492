import { putDocumentIfAbsent, readDocument } from './json'
import { layout } from './layout'
import { StoreError, type ObjectStore } from './store'

/** Ids of deployments: valid in every provider's tags. */
const DEPLOYMENT_ID_PATTERN = /^dep-[0-9a-z]{10}$/

/** Returns the deployment that owns this store, or `undefined` for an unused store. */
export async function readDeployment(store: ObjectStore): Promise<string | undefined> {
  return (await readDocument(store, layout.deployment(), parseDeployment))?.id
}

/** Returns the deployment that owns this store. The first caller gives it the id from `makeId`, and every caller gets the same answer. */
export async function ensureDeployment(store: ObjectStore, makeId: () => string): Promise<string> {
  const standing = await readDeployment(store)
  if (standing !== undefined) return standing
  const { id } = checkDeployment({ id: makeId() })
  if (await putDocumentIfAbsent(store, layout.deployment(), { id })) return id
  const first = await readDeployment(store)
  if (first !== undefined) return first
  throw new StoreError(`${layout.deployment()} disappeared: another program deletes objects in this store.`, {
    isTransient: true,
  })
}

function parseDeployment(text: string): { id: string } {
  return checkDeployment(JSON.parse(text) as unknown)
}

function checkDeployment(value: unknown): { id: string } {
  const id = (value as { id?: unknown } | null)?.id
  if (typeof id === 'string' && DEPLOYMENT_ID_PATTERN.test(id)) return { id }
  throw new Error(`${JSON.stringify(id)} is not the id of a deployment ("dep-" and ten of a-z, 0-9)`)
}
