import { createServer, request, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { openUiDoor, type UiDoor } from '../../../../cli/dev/temporal/ui-door'

let ui: Server
let door: UiDoor
let seen: string[]
/** Names of the headers of the last request that arrived. */
let names: string[]

beforeEach(async () => {
  seen = []
  ui = createServer((incoming, outgoing) => {
    seen.push(`${incoming.method} ${incoming.url}`)
    names = Object.keys(incoming.headers)
    outgoing.end('the page')
  })
  await new Promise<void>((resolve) => ui.listen(0, '127.0.0.1', resolve))
  door = await openUiDoor(undefined, { host: '127.0.0.1', port: (ui.address() as AddressInfo).port })
})

afterEach(async () => {
  await door.close()
  await new Promise((resolve) => ui.close(resolve))
})

function ask(
  headers: Record<string, string>,
  method = 'GET',
  path = '/api',
): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const asking = request({ host: '127.0.0.1', port: door.port, path, method, headers }, (answer) => {
      let text = ''
      answer.on('data', (chunk) => (text += chunk))
      answer.on('end', () => resolve({ status: answer.statusCode!, text }))
    })
    asking.on('error', reject).end()
  })
}

describe('the door of the Web UI', () => {
  it.each(['localhost', '127.0.0.1', '[::1]'])('lets requests for %s through, at any port', async (name) => {
    expect(await ask({ host: `${name}:9999` })).toEqual({ status: 200, text: 'the page' })
    expect(seen).toEqual(['GET /api'])
  })

  it.each(['rebound.example:8233', '127.0.0.1.nip.io', 'localhost.evil.example', '10.0.0.1'])(
    'refuses requests for the foreign host %s and does not pass them on',
    async (host) => {
      expect(await ask({ host })).toMatchObject({ status: 403, text: expect.stringContaining(host) })
      expect(seen).toEqual([])
    },
  )

  it('refuses requests of pages of another origin', async () => {
    const host = `localhost:${door.port}`
    expect(await ask({ host, origin: 'https://evil.example' }, 'POST')).toMatchObject({ status: 403 })
    expect(await ask({ host, origin: 'null' }, 'POST')).toMatchObject({ status: 403 })
    expect(seen).toEqual([])
    expect(await ask({ host, origin: `http://${host}` }, 'POST')).toMatchObject({ status: 200 })
  })

  it.each([
    [
      '/api/v1/namespaces/default/workflows/job%2Fx?a=1&b=%20',
      '/api/v1/namespaces/default/workflows/job%2Fx?a=1&b=+',
    ],
    ['/a/b/', '/a/b/'],
  ])('passes %s on, written anew', async (path, arrived) => {
    const headers = { host: 'localhost', 'x-forwarded-host': 'evil.example', 'x-csrf-token': 't' }
    expect(await ask(headers, 'GET', path)).toMatchObject({ status: 200 })
    expect(seen).toEqual([`GET ${arrived}`])
    expect(names.sort()).toEqual(['connection', 'host', 'x-csrf-token'])
  })

  it.each(['/a/../b', '/a/%2e%2e/b', '/a/..%2fb', '/a//b', '/%zz', '/a%00', 'http://other/a'])(
    'refuses the path %s',
    async (path) => {
      expect(await ask({ host: 'localhost' }, 'GET', path)).toMatchObject({ status: 400 })
      expect(seen).toEqual([])
    },
  )

  it('says that the Web UI is down when it is', async () => {
    await new Promise((resolve) => ui.close(resolve))
    expect(await ask({ host: 'localhost' })).toMatchObject({ status: 502 })
    ui = createServer()
    await new Promise<void>((resolve) => ui.listen(0, '127.0.0.1', resolve))
  })
})
