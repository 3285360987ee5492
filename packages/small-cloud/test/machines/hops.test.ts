import { afterEach, describe, expect, it } from '@jest/globals'
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { clientOf, hopsOf } from '../../src/machines/hops'
import { HAS_NAMESPACES } from './machines'

/** Connects from a port to a service, and keeps the connection. */
const CLIENT = `
import socket, sys
client = socket.socket()
client.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
client.bind(("127.0.0.1", int(sys.argv[1])))
client.connect(("127.0.0.1", int(sys.argv[2])))
client.recv(1)`

const servers: Server[] = []
const sockets: Socket[] = []
let child: ChildProcess | undefined

afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy()
  for (const server of servers.splice(0)) server.close()
  child?.kill('SIGKILL')
})

async function listen(): Promise<Server> {
  const server = createServer((socket) => sockets.push(socket.on('error', () => undefined)))
  servers.push(server)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return server
}

const portOf = (server: Server): number => (server.address() as AddressInfo).port

const inNamespaces = HAS_NAMESPACES ? it : it.skip

describe('the hops of a client', () => {
  inNamespaces('are its own where a client of another service has the same port', async () => {
    const [near, far, spare] = [await listen(), await listen(), await listen()]
    const localPort = portOf(spare)
    await new Promise((resolve) => spare.close(resolve))
    sockets.push(connect({ host: '127.0.0.1', port: portOf(near), localPort }))
    const [atNear] = (await once(near, 'connection')) as [Socket]
    const connected = once(far, 'connection') as Promise<[Socket]>
    const python = ['python3', '-IS', '-c', CLIENT, String(localPort), String(portOf(far))]
    const user = process.getuid!() === 0 ? { uid: 65_534, gid: 65_534 } : {}
    const unshare = ['--user', '--map-root-user', '--pid', '--fork', '--kill-child']
    child = spawn('unshare', [...unshare, ...python], { ...user, cwd: '/', stdio: 'inherit' })
    const [atFar] = await connected
    expect(atFar.remotePort).toBe(atNear.remotePort)
    expect([atNear, atFar].map((socket) => hopsOf(clientOf(socket)!))).toEqual([0, 1])
  })
})
