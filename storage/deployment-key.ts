import { createHmac } from 'node:crypto'
import { readDeployment } from './deployment'
import { putDocumentIfAbsent, readDocument } from './json'
import { layout } from './layout'
import { ensureDeploymentKey, readDeploymentKey, SecretsError } from './secrets'
import type { ObjectStore } from './store'

/**
 * Returns the deployment's key, created when neither this machine nor the deployment has one. Throws a `SecretsError` when the file holds
 * another key than the deployment uses: a worker with a wrong key would refuse the work of all jobs.
 */
export async function openDeploymentKey(store: ObjectStore, path: string): Promise<Buffer> {
  const known = await readCheck(store)
  const key = known === undefined ? await ensureDeploymentKey(path) : await readDeploymentKey(path)
  if (key === undefined) {
    throw new SecretsError(
      `There is no key file ${path}, and the deployment of ${store.url} has a key already. ` +
        'Copy the file from a machine of the deployment, or name it in CRUCIBLE_SECRET_KEY_FILE.',
    )
  }
  const check = checkOf(key)
  // A place without a mark may be an empty mount point, where nothing is written.
  if (known === undefined && (await readDeployment(store)) === undefined) return key
  const isFirst = known === undefined && (await putDocumentIfAbsent(store, layout.deploymentKey(), { check }))
  if (isFirst || (known ?? (await readCheck(store))) === check) return key
  throw otherKey(store, path)
}

/** Whether the store has a record of a key, and the key in the file is that one. */
export async function isOwnKey(store: ObjectStore, path: string): Promise<boolean> {
  const [known, key] = await Promise.all([readCheck(store), readDeploymentKey(path)])
  return known !== undefined && key !== undefined && checkOf(key) === known
}

/** Throws a `SecretsError` if the file has another key than the deployment of the store; an absent key is allowed. */
export async function checkKey(store: ObjectStore, path: string): Promise<void> {
  const [known, key] = await Promise.all([readCheck(store), readDeploymentKey(path)])
  if (known !== undefined && key !== undefined && checkOf(key) !== known) throw otherKey(store, path)
}

function otherKey(store: ObjectStore, path: string): SecretsError {
  return new SecretsError(
    `The key in ${path} is not the one of the deployment of ${store.url}. ` +
      'Copy the right file from another machine of the deployment, or name it in CRUCIBLE_SECRET_KEY_FILE. ' +
      `If that key is lost, end all jobs, then delete ${layout.deploymentKey()} from the store: stored secrets can no longer be opened.`,
  )
}

function readCheck(store: ObjectStore): Promise<string | undefined> {
  return readDocument(store, layout.deploymentKey(), (text) => {
    const { check } = JSON.parse(text) as { check?: unknown }
    if (typeof check === 'string' && CHECK_PATTERN.test(check)) return check
    throw new Error('"check" is not 32 hex digits')
  })
}

const CHECK_PATTERN = /^[0-9a-f]{32}$/

/** Returns a value that distinguishes two keys and reveals nothing else about them. */
function checkOf(key: Buffer): string {
  return createHmac('sha256', key).update('key check').digest('hex').slice(0, 32)
}
