import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { request } from 'node:http'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { Client, Connection } from '@temporalio/client'
import { startDevServer, type DevServer } from '../../../cli/dev/temporal/dev-server'
import { testServer } from '../../support/temporal'
import { patient } from '../../support/patience'

let server: DevServer
let connection: Connection

beforeAll(async () => {
  server = await startDevServer({ executable: testServer().executable })
  connection = await Connection.connect({ address: server.address })
})
afterAll(async () => {
  await connection.close()
  await server.stop()
})

/** What the server listens on, as any process of the machine can see it. Linux only. */
function listening(pid: number): { host: string; port: number }[] {
  const own = new Set(
    readdirSync(`/proc/${pid}/fd`).map((fd) => {
      try {
        return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`))?.[1]
      } catch {
        return undefined
      }
    }),
  )
  const rows = readFileSync('/proc/net/tcp', 'utf8').trim().split('\n').slice(1)
  return rows
    .map((row) => row.trim().split(/\s+/))
    .filter((fields) => fields[3] === LISTENS && own.has(fields[9]))
    .map((fields) => {
      const [address = '', port = ''] = fields[1]!.split(':')
      const host = [...Buffer.from(address, 'hex')].reverse().join('.')
      return { host, port: parseInt(port, 16) }
    })
}

const LISTENS = '0A'

/** A request as a page of another site makes it without asking first: no special header, a plain content type. */
function post(to: { host: string; port: number }, headers: Record<string, string>): Promise<number | string> {
  const path = '/api/v1/namespaces/default/workflows/stranger'
  const body = JSON.stringify({
    workflowType: { name: 'job' },
    taskQueue: { name: 'crucible' },
    requestId: 'x',
  })
  return new Promise((resolve) => {
    const asking = request(
      { ...to, path, method: 'POST', headers: { 'content-type': 'text/plain', ...headers } },
      (answer) => {
        answer.resume()
        resolve(answer.statusCode ?? 0)
      },
    )
    asking.setTimeout(patient(3_000), () => asking.destroy())
    asking.on('error', (error) => resolve(error.message))
    asking.end(body)
  })
}

async function isThere(): Promise<boolean> {
  const client = new Client({ connection })
  return client.workflow
    .getHandle('stranger')
    .describe()
    .then(
      () => true,
      () => false,
    )
}

const onLinux = process.platform === 'linux' ? it : it.skip

describe('the ports of a dev server', () => {
  onLinux('start no workflow for a web page, whatever host it names', async () => {
    const places = listening(server.pid)
    expect(places.length).toBeGreaterThan(2)
    const { port } = new URL(server.uiUrl)
    for (const place of [...places, { host: '127.0.0.1', port: Number(port) }]) {
      expect(place.host).toMatch(/^127\./)
      for (const host of ['evil.example', 'localhost', `127.0.0.1:${place.port}`]) {
        const status = await post(place, { host, origin: 'https://evil.example' })
        expect([place, host, status]).not.toEqual([place, host, 200])
      }
    }
    expect(await isThere()).toBe(false)
  })

  onLinux('do not include one of the Web UI that a page could guess', () => {
    const places = listening(server.pid)
    expect(places.map(({ host }) => host).filter((host) => host !== '127.0.0.1')).toHaveLength(1)
  })

  it('show the Web UI to this machine, and to no foreign host name', async () => {
    const page = await fetch(server.uiUrl)
    expect(page.status).toBe(200)
    expect(await page.text()).toContain('<html')
    const port = Number(new URL(server.uiUrl).port)
    expect(await post({ host: '127.0.0.1', port }, { host: 'rebound.example' })).toBe(403)
  })
})
