/** The speed of a machine's connections to the object store. */
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { duplexPair, pipeline, type Duplex } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'

/** A limit in bytes per second that several connections share. */
export class Limit {
  private freeAtMs = 0

  constructor(private readonly bytesPerSecond: number) {}

  /** Milliseconds until so many bytes have passed after all that came before them. */
  take(bytes: number): number {
    const nowMs = performance.now()
    this.freeAtMs = Math.max(nowMs, this.freeAtMs) + (bytes / this.bytesPerSecond) * 1_000
    return this.freeAtMs - nowMs
  }
}

/** The limits of a connection in each direction, seen from the machine. */
export interface Limits {
  up: readonly Limit[]
  down: readonly Limit[]
}

/** Lets each connection of a server pass its limits; one without any is served as it comes. */
export function paceConnections(server: Server, limitsOf: (client: Socket) => Limits | undefined): void {
  const listeners = server.listeners('connection')
  server.removeAllListeners('connection')
  server.on('connection', (client: Socket) => {
    const limits = limitsOf(client)
    const served = limits === undefined ? client : paced(client, limits)
    for (const listener of listeners) listener.call(server, served)
  })
}

function paced(client: Socket, { up, down }: Limits): Duplex {
  const [inner, served] = duplexPair()
  // A client that is gone ends both directions.
  const end = (): void => void [client, inner].map((one) => one.destroy())
  pipeline(client, (bytes: AsyncIterable<Buffer>) => slowed(bytes, up), inner, end)
  pipeline(inner, (bytes: AsyncIterable<Buffer>) => slowed(bytes, down), client, end)
  return served
}

async function* slowed(chunks: AsyncIterable<Buffer>, limits: readonly Limit[]): AsyncGenerator<Buffer> {
  for await (const chunk of chunks) {
    const waitMs = Math.max(0, ...limits.map((limit) => limit.take(chunk.length)))
    if (waitMs >= 1) await sleep(waitMs)
    yield chunk
  }
}
