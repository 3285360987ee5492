import { createHmac } from 'node:crypto'
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
  const isFirst = known === undefined && (await putDocumentIfAbsent(store, layout.deploymentKey(), { check }))
  if (isFirst || (known ?? (await readCheck(store))) === check) return key
  throw new SecretsError(
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
