import { createServer as createHttp2, type Http2Server } from 'node:http2'
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { afterEach, describe, expect, it } from '@jest/globals'
import { Context, type ContextOptions } from '../../client/context'
import { ensureDeploymentKey } from '../../storage/secrets'
import { patient } from '../support/patience'
import { ClientWorld } from './world'

let world: ClientWorld
let server: Server | Http2Server | undefined
let context: Context
const sockets: Socket[] = []

afterEach(async () => {
  await context.close()
  for (const socket of sockets.splice(0)) socket.destroy()
  await new Promise((resolve) => (server === undefined ? resolve(undefined) : server.close(resolve)))
  server = undefined
  await world.remove()
})

async function contextTo(port: number, options: ContextOptions): Promise<Context> {
  world = await ClientWorld.make()
  const { config } = world.context
  const connection = { address: `127.0.0.1:${port}` }
  context = new Context({ ...config, temporal: { ...config.temporal, connection } }, Date.now, options)
  return context
}

async function listening(made: Server | Http2Server): Promise<number> {
  server = made
  made.on('connection', (socket: Socket) => sockets.push(socket))
  await new Promise<void>((resolve) => made.listen(0, '127.0.0.1', resolve))
  return (made.address() as AddressInfo).port
}

/** Accepts connections and does not answer, as a machine that is very busy. */
const busy = (): Server => createServer((socket) => socket.on('error', () => {}).unref())

/** An answer of gRPC without any field, to every call. */
function answering(http2: Http2Server): void {
  http2.on('stream', (stream) => {
    stream.on('error', () => {})
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
    stream.end(Buffer.alloc(5))
  })
}

describe('a connection to the Temporal server', () => {
  it('is waited for, with a note, when the machine is busy', async () => {
    const notes: string[] = []
    const http2 = createHttp2()
    const port = await listening(http2)
    const connecting = await contextTo(port, {
      connectTimeoutsMs: [300, 20_000],
      onNote: (text) => {
        notes.push(text)
        answering(http2)
      },
    })
    expect(await connecting.temporal()).toBeDefined()
    expect(notes).toEqual([
      `The Temporal server at 127.0.0.1:${port} has not answered within 0.3s; waiting up to 20s more.`,
    ])
  })

  it('is given up after the last try, and later asked for once, without notes', async () => {
    const notes: string[] = []
    const port = await listening(busy())
    const connecting = await contextTo(port, {
      connectTimeoutsMs: [100, 100, 100],
      onNote: (text) => void notes.push(text),
    })
    for (const time of ['first', 'later']) {
      await expect(connecting.temporal()).rejects.toMatchObject({ kind: 'unavailable' })
      expect({ time, notes }).toEqual({ time, notes: [expect.any(String), expect.any(String)] })
    }
  })

  it('is not waited for where the port is closed', async () => {
    const port = await listening(busy())
    await new Promise((resolve) => server!.close(resolve))
    server = undefined
    const notes: string[] = []
    const connecting = await contextTo(port, { onNote: (text) => void notes.push(text) })
    await expect(connecting.temporal()).rejects.toMatchObject({
      kind: 'unavailable',
      message: `No Temporal server answers at 127.0.0.1:${port} (the port is closed).`,
    })
    expect(notes).toEqual([])
  })

  it('comes back on its own under `crucible dev`: the hint says so', async () => {
    const port = await listening(busy())
    await new Promise((resolve) => server!.close(resolve))
    server = undefined
    const { config } = await contextTo(port, {})
    const temporal = { ...config.temporal, isOfDev: true }
    await expect(new Context({ ...config, temporal }, Date.now, {}).temporal()).rejects.toMatchObject({
      hint: '`crucible dev` runs here and restarts its server: try again in a few seconds.',
    })
  })
})

describe('a request to the Temporal server', () => {
  it('is sent while the store, which would confirm the key, answers nothing', async () => {
    const http2 = createHttp2()
    answering(http2)
    const connected = await contextTo(await listening(http2), {})
    await ensureDeploymentKey(connected.config.home.secretKeyFile)
    connected.store.get = () => new Promise(() => undefined)
    const client = await connected.temporal()
    await client.withDeadline(Date.now() + patient(10_000), () =>
      client.workflow.getHandle('job/x').signal('retry', 1),
    )
  })
})
