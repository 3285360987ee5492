import type { Client } from '@temporalio/client'
import type { ObjectStore } from '../storage/store'
import { knownDeployment } from '../service/deployment'

/** A worker was started with the server of one deployment and the store of another. */
class ForeignDeploymentError extends Error {
  constructor(at: { address: string; known: string; store: ObjectStore; deployment: string }) {
    super(
      `The Temporal server at ${at.address} belongs to deployment ${at.known}, but the store ${at.store.url} to ${at.deployment}. ` +
        'Use the server, the store and the key file of one deployment (TEMPORAL_ADDRESS, CRUCIBLE_HOME, CRUCIBLE_STORE, CRUCIBLE_SECRET_KEY_FILE), ' +
        'or give this one a namespace of its own (TEMPORAL_NAMESPACE). ' +
        'If the server was reset or should change deployments, run: crucible gc --adopt.',
    )
    this.name = 'ForeignDeploymentError'
  }
}

/**
 * Throws `ForeignDeploymentError` before a worker takes its first task, if the server is known to belong to another deployment.
 */
export async function checkSameDeployment(
  client: Client,
  at: { address: string; store: ObjectStore; deployment: string },
): Promise<void> {
  const known = await knownDeployment(client)
  if (known !== undefined && known !== at.deployment) throw new ForeignDeploymentError({ ...at, known })
}
