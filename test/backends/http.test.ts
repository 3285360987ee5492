import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { z } from 'zod'
import { createHttpClient, type HttpCall, type HttpClient, type HttpError } from '../../backends/http'

const ANSWER = z.looseObject({ number: z.int() })
const SECRET = 'secret-of-a-test'

let server: Server
let answer: RequestListener
let sockets: Set<Socket>
let client: HttpClient

beforeEach(async () => {
  sockets = new Set()
  server = createServer((request, response) => answer(request, response))
  server.on('connection', (socket) => sockets.add(socket))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  client = createHttpClient({
    name: 'Small',
    baseUrl: `${rootOf()}/v1/`,
    userAgent: 'a test',
    headers: () => ({ authorization: SECRET }),
  })
})
afterEach(async () => {
  await client.close()
  server.closeAllConnections()
  if (server.listening) await new Promise((resolve) => server.close(resolve))
})

const rootOf = (): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}`
const say =
  (status: number, text: string, headers: Record<string, string> = {}): RequestListener =>
  (_, response) =>
    void response.writeHead(status, headers).end(text)

const call = (
  changes: Partial<HttpCall<{ number: number }>> = {},
  signal = new AbortController().signal,
): Promise<{ number: number }> =>
  client.call({ method: 'GET', path: '/things', answer: ANSWER, timeoutMs: 20_000, ...changes }, signal)

const failed = (...parameters: Parameters<typeof call>): Promise<HttpError> =>
  call(...parameters).then(
    () => Promise.reject(new Error('it was answered')),
    (error: HttpError) => error,
  )

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

describe('the client for HTTP APIs', () => {
  it('gives up a request without an answer in time, even if memory is collected meanwhile', async () => {
    answer = () => undefined
    const failing = failed({ timeoutMs: 1_000 })
    await sleep(100)
    collectGarbage()
    expect(await failing).toMatchObject({
      message: 'Small did not answer within 1 s',
      facts: { reach: 'unanswered' },
    })
  })

  it('sends its name, its credentials and JSON, and keeps unknown fields of the answer', async () => {
    const seen: unknown[] = []
    answer = (request, response) => {
      const { method, url, headers } = request
      let body = ''
      request.on('data', (chunk) => (body += String(chunk)))
      request.on('end', () => {
        seen.push([method, url, headers['user-agent'], headers.authorization, headers['content-type'], body])
        response.end('{"number":7,"new":"field"}')
      })
    }
    expect(await call()).toEqual({ number: 7, new: 'field' })
    await call({ method: 'POST', body: { a: 1 } })
    expect(seen).toEqual([
      ['GET', '/v1/things', 'a test', SECRET, undefined, ''],
      ['POST', '/v1/things', 'a test', SECRET, 'application/json', '{"a":1}'],
    ])
  })

  it('uses its connections again for calls that follow each other', async () => {
    answer = say(200, '{"number":1}')
    for (let index = 0; index < 10; index++) await call()
    // A connection is free a moment after its answer.
    expect(sockets.size).toBeLessThan(4)
  })

  it('stops at its time limit, also in the middle of an answer, and never sends twice', async () => {
    let asked = 0
    answer = (_, response) => {
      asked += 1
      response.writeHead(200).write('{"number":')
    }
    // The request arrives within the limit, also on a machine under load.
    const error = await failed({ timeoutMs: 1_500 })
    expect(error.facts).toEqual({ reach: 'unanswered' })
    expect(error.message).toMatch(/^Small did not answer/)
    expect(asked).toBe(1)
  })

  it('stops when its caller leaves', async () => {
    const caller = new AbortController()
    answer = () => caller.abort()
    expect((await failed({}, caller.signal)).facts).toEqual({ reach: 'unanswered' })
  })

  it('knows what was never sent from what may have arrived', async () => {
    answer = (request) => void request.socket.destroy()
    expect((await failed({ method: 'POST', body: {} })).facts.reach).toBe('unanswered')
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
    const error = await failed()
    expect(error.facts.reach).toBe('unsent')
    expect(error.message).toContain('ECONNREFUSED')
  })

  it('follows no redirect, which would carry its credentials to another server', async () => {
    const paths: (string | undefined)[] = []
    answer = (request, response) => {
      paths.push(request.url)
      say(307, '', { location: `${rootOf()}/elsewhere` })(request, response)
    }
    const error = await failed()
    expect(error).toMatchObject({
      message: 'Small answered 307, a redirect that is not followed',
      facts: { reach: 'answered', status: 307 },
    })
    expect(paths).toEqual(['/v1/things'])
  })

  it('reads no answer without end', async () => {
    answer = (_, response) => {
      response.writeHead(200)
      const piece = Buffer.alloc(2 ** 20, 'x')
      const more = (): void => {
        while (!response.destroyed && response.write(piece));
        response.once('drain', more)
      }
      more()
    }
    const error = await failed()
    expect(error.facts.reach).toBe('unanswered')
    expect(error.message).toMatch(/UND_ERR_RES_EXCEEDED_MAX_SIZE/)
  })

  it.each([
    ['that is not JSON', 'no JSON', /something other than JSON/],
    ['of another form', '{"number":"seven"}', /GET \/things in an unknown form at number/],
  ])('has no use for an answer %s, which says nothing about the effect', async (_, text, message) => {
    answer = say(200, text)
    const error = await failed()
    expect(error.message).toMatch(message)
    expect(error.facts).toMatchObject({ reach: 'unanswered', status: 200 })
  })

  it('hands on the JSON of a refusal, or the words of a page, and how long to wait', async () => {
    answer = say(400, '{"error":{"code":"c"}}', { 'retry-after': '3' })
    expect((await failed()).facts).toEqual({
      reach: 'answered',
      status: 400,
      retryAfterMs: 3_000,
      body: { error: { code: 'c' } },
    })
    answer = say(503, `<style>b{}</style><h1>Sorry</h1>${'word '.repeat(500)}`, { 'retry-after': 'soon' })
    const { page, retryAfterMs } = (await failed()).facts
    expect([page!.slice(0, 10), page!.length, retryAfterMs]).toEqual(['Sorry word', 500, undefined])
  })

  it('waits no longer than five minutes, whatever the provider asks for', async () => {
    for (const [told, waitsMs] of [
      ['299', 299_000],
      ['86400', 300_000],
      ['1e300', 300_000],
      ['-1', undefined],
    ] as const) {
      answer = say(429, '{}', { 'retry-after': told })
      expect([told, (await failed()).facts.retryAfterMs]).toEqual([told, waitsMs])
    }
  })

  it('tells neither credentials nor the body of a request in an error', async () => {
    answer = say(500, 'broken')
    const error = await failed({ method: 'POST', body: { password: 'of the body' } })
    expect(`${error.message} ${JSON.stringify(error)}`).not.toMatch(/secret-of-a-test|of the body/)
  })
})
