/** The worker of one quiet backend, as a process of its own: `fleet.ts` starts it and measures it from outside. */
import { Client } from '@temporalio/client'
import { DefaultLogger, NativeConnection, Runtime } from '@temporalio/worker'
import { openStore } from '../../storage/open-store'
import { createBackendWorkers } from '../../workers/backend'
import { quietBackend } from './quiet-backend'

async function main(): Promise<void> {
  const [name, address, namespace, storeUrl] = process.argv.slice(1) as [string, string, string, string]
  Runtime.install({ logger: new DefaultLogger('ERROR'), shutdownSignals: [] })
  const connection = await NativeConnection.connect({ address })
  const workers = await createBackendWorkers({
    connection,
    namespace,
    client: new Client({ connection, namespace }),
    store: openStore(storeUrl),
    backend: quietBackend(name),
    secrets: { handOver: async () => undefined, mask: async (_jobId, text) => text },
  })
  const running = workers.map((worker) => worker.run())
  process.send!('ready')
  await Promise.all(running)
}

void main()
