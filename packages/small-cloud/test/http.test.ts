import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { z } from 'zod'
import { WallClock } from '../src/clock'
import { HttpFront } from '../src/http/front'
import { HttpAnswer, route, type HttpService } from '../src/http/service'
import { Journal } from '../src/journal'
import { Random } from '../src/random'
import { TokenBuckets } from '../src/token-buckets'
import { ApiError } from '../src/wire/errors'
import { faultSchema, type FaultText } from '../src/world/fault-schema'
import { Faults } from '../src/world/faults'

const clock = new WallClock()
let boxes: string[] = []
let journal: Journal
let faults: Faults
let server: Server
let front: HttpFront
let address: string

/** A provider of boxes. */
function boxService(): HttpService {
  const buckets = new TokenBuckets(clock)
  return {
    name: 'lambda',
    routes: [
      route('list', 'GET /boxes', {
        query: z.strictObject({ prefix: z.string().default('') }),
        run: ({ query }) => ({ boxes: boxes.filter((name) => name.startsWith(query.prefix)) }),
      }),
      route('make', 'POST /boxes/:shelf', {
        params: z.strictObject({ shelf: z.string() }),
        body: z.strictObject({ name: z.string(), size: z.int().default(1) }),
        isMutating: true,
        status: 201,
        run: ({ params, body }, { caller }) => {
          boxes.push(`${params.shelf}/${body.name}`)
          return { made: body.name, size: body.size, caller }
        },
      }),
      route('break', 'DELETE /boxes', {
        run: () => {
          throw new Error('on purpose')
        },
      }),
      route('page', 'GET /page', { run: () => new HttpAnswer(303, 'moved', { location: '/elsewhere' }) }),
    ],
    screen: ({ headers }) =>
      headers['user-agent'] === 'bad' ? new HttpAnswer(403, '<html>1010</html>') : undefined,
    identify: ({ headers }) => {
      if (headers.authorization !== 'Bearer key') throw new ApiError('no-key', 'Give the key.', 401)
      return 'owner'
    },
    pace: ({ action }) => {
      if (action === 'break' && !buckets.take('break', { size: 1, perSecond: 0 }))
        throw new ApiError('too-fast', 'Slow down.', 429)
    },
    wrongFields: (fields) =>
      new ApiError('wrong', fields.map(({ field, words }) => `${field}: ${words}`).join()),
    unknownRoute: ({ url }) => new ApiError('no-route', url, 404),
    fault: (which) =>
      typeof which === 'string'
        ? new ApiError(which, which, which === 'unavailable' ? 503 : 500)
        : new ApiError(which.code, which.message ?? '', which.status),
    writeError: ({ code, message, status }, requestId) =>
      new HttpAnswer(status, { code, message, requestId }),
  }
}

interface Answer {
  status: number
  body: unknown
}

async function call(what: string, body?: unknown, headers: Record<string, string> = {}): Promise<Answer> {
  const [method, path] = what.split(' ') as [string, string]
  const answer = await fetch(`${address}/_lambda${path}`, {
    method,
    redirect: 'manual',
    headers: {
      authorization: 'Bearer key',
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  const text = await answer.text()
  const isJson = answer.headers.get('content-type')?.startsWith('application/json') === true
  return { status: answer.status, body: isJson ? JSON.parse(text) : text }
}

const fault = (rule: FaultText): (() => void) => faults.add(faultSchema.parse(rule))

beforeEach(async () => {
  boxes = []
  journal = new Journal()
  faults = new Faults([], clock, new Random('1'))
  let count = 0
  front = new HttpFront({ service: boxService(), faults, journal, clock, requestId: () => `r${++count}` })
  server = createServer((request, response) => void front.handle(request, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})

afterEach(async () => {
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
  await front.close()
})

describe('an HTTP service of the small cloud', () => {
  it('owns its own path and no other', () => {
    expect(['/_lambda', '/_lambda/boxes', '/_lambda?x'].every((url) => front.owns(url))).toBe(true)
    expect(['/', '/_lambdas', '/lambda/boxes'].some((url) => front.owns(url))).toBe(false)
  })

  it('reads path, query and body by the schemas of its table', async () => {
    expect(await call('POST /boxes/top', { name: 'a' })).toEqual({
      status: 201,
      body: { made: 'a', size: 1, caller: 'owner' },
    })
    await call('POST /boxes/low', { name: 'b', size: 2 })
    expect((await call('GET /boxes?prefix=top')).body).toEqual({ boxes: ['top/a'] })
    expect(await call('GET /page')).toEqual({ status: 303, body: 'moved' })
  })

  it('refuses unknown, missing and wrong fields, and a body that is not JSON', async () => {
    const refused = async (what: string, body?: unknown): Promise<unknown> => {
      const answer = await call(what, body)
      expect(answer.status).toBe(400)
      return (answer.body as { message: string }).message
    }
    expect(await refused('POST /boxes/top', { name: 'a', colour: 'red' })).toContain(
      'there is no field colour',
    )
    expect(await refused('POST /boxes/top', { size: 1 })).toBe('name: is missing')
    expect(await refused('POST /boxes/top')).toBe('name: is missing')
    expect(await refused('POST /boxes/top', { name: 'a', size: 'big' })).toMatch(/^size: /)
    expect(await refused('POST /boxes/top', '{')).toBe(': the body is not JSON')
    expect(await refused('GET /boxes?colour=red')).toContain('there is no field colour')
    expect(boxes).toEqual([])
  })

  it('refuses strangers, other paths, and calls that are too fast, in the format of the provider', async () => {
    expect(await call('GET /boxes', undefined, { authorization: '' })).toMatchObject({
      status: 401,
      body: { code: 'no-key', requestId: 'r1' },
    })
    expect(await call('GET /nothing')).toMatchObject({
      status: 404,
      body: { code: 'no-route', message: '/nothing' },
    })
    expect(await call('GET /boxes', undefined, { 'user-agent': 'bad' })).toEqual({
      status: 403,
      body: '<html>1010</html>',
    })
    expect((await call('DELETE /boxes')).status).toBe(500)
    expect(await call('DELETE /boxes')).toMatchObject({ status: 429, body: { code: 'too-fast' } })
  })

  it('keeps a journal with the outcome of every call', async () => {
    await call('POST /boxes/top', { name: 'a' })
    await call('POST /boxes/top', { name: 1 })
    await call('GET /boxes', undefined, { authorization: '' })
    expect(journal.calls({ service: 'lambda' })).toMatchObject([
      {
        action: 'make',
        caller: 'owner',
        isMutating: true,
        outcome: 'ok',
        isAnswerLost: false,
        parameters: { shelf: 'top', name: 'a', size: 1 },
      },
      { action: 'make', outcome: 'wrong' },
      { action: 'list', outcome: 'no-key', isMutating: false },
    ])
  })

  it('refuses a call without effect where a rule says so', async () => {
    fault({
      fault: 'error',
      code: 'sold-out',
      status: 409,
      where: { service: 'lambda', action: 'make' },
      times: 1,
    })
    expect(await call('POST /boxes/top', { name: 'a' })).toMatchObject({
      status: 409,
      body: { code: 'sold-out' },
    })
    expect((await call('POST /boxes/top', { name: 'b' })).status).toBe(201)
    expect(boxes).toEqual(['top/b'])
  })

  it('acts and loses the answer: the connection is cut, or an error comes in its place', async () => {
    fault({ fault: 'lost-answer', where: { action: 'make' }, times: 1 })
    await expect(call('POST /boxes/top', { name: 'a' })).rejects.toThrow('fetch failed')
    fault({ fault: 'lost-answer', instead: 'unavailable', where: { action: 'make' }, times: 1 })
    expect((await call('POST /boxes/top', { name: 'b' })).status).toBe(503)
    expect(boxes).toEqual(['top/a', 'top/b'])
    expect(journal.calls().map(({ isAnswerLost }) => isAnswerLost)).toEqual([true, true])
  })

  it('answers late, before or after the effect', async () => {
    const during = async (): Promise<string[]> => {
      const answer = call('POST /boxes/top', { name: 'a' })
      await new Promise((resolve) => setTimeout(resolve, 150))
      const seen = [...boxes]
      await answer
      return seen
    }
    // The first call makes the server.
    await call('GET /boxes')
    fault({ fault: 'slow', by: '400ms', where: { action: 'make' }, times: 1 })
    expect(await during()).toEqual([])
    fault({ fault: 'slow', by: '400ms', stage: 'after', where: { action: 'make' }, times: 1 })
    expect(await during()).toHaveLength(2)
  })
})
