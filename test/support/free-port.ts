import { createServer } from 'node:net'
import { listenOn } from '../../cli/dev/temporal/ports'

/** A port that no program has at this moment. */
export async function freePort(): Promise<number> {
  const server = createServer()
  const port = await listenOn(server, undefined)
  await new Promise((resolve) => server.close(resolve))
  return port
}
