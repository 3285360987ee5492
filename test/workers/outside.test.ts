/** Where news go: to one URL, which may be a secret, on a server that may do anything. */
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { postJson } from '../../workers/outside'

let server: Server
let asked: string[]
let answer: RequestListener

beforeEach(async () => {
  asked = []
  server = createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`)
    answer(request, response)
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
})
afterEach(() => {
  server.closeAllConnections()
  server.close()
})

const url = (path: string): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`
const post = (to: string): Promise<void> => postJson(to, '{}', new AbortController().signal)

describe('a webhook', () => {
  it.each([302, 307])('that redirects with status %i is not followed', async (status) => {
    answer = (_, response) => void response.writeHead(status, { location: url('/internal') }).end()
    await expect(post(url('/hook'))).rejects.toThrow(`the webhook answered ${status}`)
    expect(asked).toEqual(['POST /hook'])
  })

  it('whose answer never ends takes the news', async () => {
    answer = (_, response) => {
      response.writeHead(200)
      response.write('more')
    }
    await post(url('/hook'))
    expect(asked).toEqual(['POST /hook'])
  })

  it.each([
    ['with a password', 'https://ada:canary@hook.invalid/canary?token=canary'],
    ['of no server', 'http://127.0.0.1:1/canary'],
  ])('%s is in no error', async (_, secret) => {
    const error = await post(secret).catch((thrown: unknown) => thrown)
    expect(String(error)).toMatch(/the webhook cannot be reached/)
    expect(JSON.stringify(error, Object.getOwnPropertyNames(error))).not.toContain('canary')
  })
})
