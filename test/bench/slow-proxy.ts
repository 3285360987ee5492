import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net'

export interface Shape {
  /** From one end to the other and back. */
  roundTripMs: number
  /** Of each connection, in each direction. */
  bytesPerSecond: number
}

/** What may be on its way in one direction of a connection: enough to keep its rate over the round trip. */
const IN_FLIGHT_BYTES_MAX = 1024 * 1024

/** A TCP proxy with a given delay and bandwidth. */
export class SlowProxy {
  readonly #server: Server
  readonly #sockets = new Set<Socket>()

  private constructor(port: number, shape: Shape) {
    this.#server = createServer({ noDelay: true, allowHalfOpen: true }, (near) => {
      const far = connect({ port, host: '127.0.0.1', noDelay: true, allowHalfOpen: true })
      for (const socket of [near, far]) {
        this.#sockets.add(socket)
        socket.on('close', () => this.#sockets.delete(socket))
        socket.on('error', () => {
          near.destroy()
          far.destroy()
        })
      }
      shapeDirection(near, far, shape)
      shapeDirection(far, near, shape)
    })
  }

  /** @param port of the server behind it, on loopback */
  static async open(port: number, shape: Shape): Promise<SlowProxy> {
    const proxy = new SlowProxy(port, shape)
    await new Promise<void>((resolve) => proxy.#server.listen(0, '127.0.0.1', resolve))
    return proxy
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve))
    for (const socket of this.#sockets) socket.destroy()
    await closed
  }
}

/** Passes on what comes, each piece when the line has had time for it, half a round trip later. */
function shapeDirection(from: Socket, to: Socket, { roundTripMs, bytesPerSecond }: Shape): void {
  const queue: { chunk: Buffer; dueMs: number }[] = []
  let freeAtMs = 0
  let inFlight = 0
  let isEnded = false
  let timer: NodeJS.Timeout | undefined
  const deliver = (): void => {
    timer = undefined
    while (queue.length > 0 && queue[0]!.dueMs <= performance.now()) {
      const { chunk } = queue.shift()!
      inFlight -= chunk.length
      if (!to.destroyed) to.write(chunk)
    }
    if (inFlight <= IN_FLIGHT_BYTES_MAX) from.resume()
    if (queue.length > 0) timer = setTimeout(deliver, Math.max(1, queue[0]!.dueMs - performance.now()))
    else if (isEnded) to.end()
  }
  from.on('data', (chunk: Buffer) => {
    freeAtMs = Math.max(freeAtMs, performance.now()) + (chunk.length / bytesPerSecond) * 1_000
    queue.push({ chunk, dueMs: freeAtMs + roundTripMs / 2 })
    inFlight += chunk.length
    if (inFlight > IN_FLIGHT_BYTES_MAX) from.pause()
    timer ??= setTimeout(deliver, Math.max(1, queue[0]!.dueMs - performance.now()))
  })
  from.on('end', () => {
    isEnded = true
    timer ??= setTimeout(deliver, 1)
  })
  to.on('close', () => clearTimeout(timer))
}
