/** The worker of one quiet backend, as a process of its own: `fleet.ts` starts it and measures it from outside. */
import { DefaultLogger, NativeConnection, Runtime } from '@temporalio/worker'
import { openDeploymentKey } from '../../storage/deployment-key'
import { openStore } from '../../storage/open-store'
import { Authentication } from '../../workers/authentication'
import { createBackendWorkers } from '../../workers/backend'
import { quietBackend } from './quiet-backend'

async function main(): Promise<void> {
  const [name, address, namespace, storeUrl, keyFile] = process.argv.slice(1) as [
    string,
    string,
    string,
    string,
    string,
  ]
  Runtime.install({ logger: new DefaultLogger('ERROR'), shutdownSignals: [] })
  const connection = await NativeConnection.connect({ address })
  const store = openStore(storeUrl)
  const authentication = new Authentication(await openDeploymentKey(store, keyFile))
  const workers = await createBackendWorkers({
    connection,
    namespace,
    client: authentication.client(connection, namespace),
    store,
    authentication,
    backend: quietBackend(name),
    secrets: { handOver: async () => undefined, mask: async (_jobId, text) => text },
  })
  const running = workers.map((worker) => worker.run())
  process.send!('ready')
  await Promise.all(running)
}

void main()
