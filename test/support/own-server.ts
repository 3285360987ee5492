import { startLeashed } from '../../cli/dev/temporal/leash'
import { DEV_NAMESPACE, serverArguments } from '../../cli/dev/temporal/launch'
import { choosePorts } from '../../cli/dev/temporal/ports'
import { waitUntilReady } from '../../cli/dev/temporal/ready'
import { SEARCH_ATTRIBUTES } from '../../core/queues'
import { patient } from './patience'
import { connectTo, testServer, type TestConnection } from './temporal'

/** A server that suggests to workflows to continue in a fresh history once they have so many events. */
export async function serverOfShortHistories(
  eventsMax: number,
): Promise<{ at: TestConnection; stop: () => Promise<void> }> {
  const ports = await choosePorts({})
  const suggested = ['--dynamic-config-value', `limit.historyCount.suggestContinueAsNew=${eventsMax}`]
  const server = startLeashed(testServer().executable.path, [...serverArguments(ports, {}), ...suggested])
  await waitUntilReady({
    port: ports.grpc,
    namespace: DEV_NAMESPACE,
    searchAttributes: Object.values(SEARCH_ATTRIBUTES),
    signal: AbortSignal.timeout(patient(60_000)),
  })
  const at = await connectTo(`127.0.0.1:${ports.grpc}`)
  const stop = async (): Promise<void> => {
    await at.close()
    await server.stop()
  }
  return { at, stop }
}
