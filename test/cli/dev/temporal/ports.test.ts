import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { afterEach, expect, it } from '@jest/globals'
import { choosePorts, listenOn, LOOPBACK } from '../../../../cli/dev/temporal/ports'
import { freePort } from '../../../support/free-port'

const servers: ReturnType<typeof createServer>[] = []
afterEach(() => Promise.all(servers.splice(0).map((server) => new Promise((done) => server.close(done)))))

function newServer(): ReturnType<typeof createServer> {
  const server = createServer()
  servers.push(server)
  return server
}

it('takes free ports that no outgoing connection of another program gets', async () => {
  const told =
    process.platform === 'linux' ? readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8') : '49152'
  const lowest = Number.parseInt(told, 10)
  const { grpc, ui } = await choosePorts({})
  expect(grpc).not.toBe(ui)
  for (const port of [grpc, ui, await freePort(), await listenOn(newServer(), undefined)]) {
    expect(port).toBeGreaterThanOrEqual(1_024)
    expect(port).toBeLessThan(lowest)
  }
})

it('takes the port that is asked for, and says which program to look for where another has it', async () => {
  const taken = newServer().listen(0, LOOPBACK)
  await once(taken, 'listening')
  const { port } = taken.address() as AddressInfo
  await expect(choosePorts({ grpc: port })).rejects.toMatchObject({
    code: 'port-taken',
    message: expect.stringContaining(`lsof -i :${port}`),
  })
  const free = await freePort()
  expect(await choosePorts({ ui: free })).toMatchObject({ ui: free })
})
