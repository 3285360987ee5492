import { describe, expect, it } from '@jest/globals'
import { createServer, type Server } from 'node:net'
import { Client, Connection } from '@temporalio/client'
import { Treasury } from '../../activities/treasury'
import { FileStore } from '../../storage/file-store'
import { testFolder } from '../support/folders'

/** A Temporal server that hangs up on whoever calls. */
async function hangingUp(): Promise<{ server: Server; address: string }> {
  const server = createServer((socket) => socket.destroy()).listen(0, '127.0.0.1')
  await new Promise((listening) => server.once('listening', listening))
  const { port } = server.address() as { port: number }
  return { server, address: `127.0.0.1:${port}` }
}

describe('the money of months', () => {
  it('is asked for again where the server does not answer: that is no reason for a job to fail', async () => {
    const { server, address } = await hangingUp()
    const connection = Connection.lazy({ address, interceptors: [] })
    const treasury = new Treasury({
      client: new Client({ connection }),
      store: new FileStore(testFolder('treasury'), Date.now),
      owners: () => Promise.resolve('open'),
      limits: { monthMicroUsd: 1, owners: {} },
    })
    const wanted = { jobId: 'job-1', owner: 'ada', month: '2026-11', microUsd: 1 }
    await expect(treasury.promise(wanted)).rejects.toMatchObject({
      failure: {
        class: 'transient',
        message: expect.stringContaining('The budget of 2026-11 could not be read') as unknown,
      },
    })
    await connection.close()
    server.close()
  })
})
