import { createServer, type RequestListener, type Server } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, it } from '@jest/globals'
import { createLambdaBackend } from '../../../backends/lambda'
import type { Backend } from '../../../backends/backend'
import { HttpError } from '../../../backends/http'
import { failureOf, lambdaError, MEANINGS, mayHaveHappened } from '../../../backends/lambda/errors'
import type { Failure, FailureClass } from '../../../core/failure'
import type { LaunchOutcome } from '../../../core/activities'
import type { Offer } from '../../../core/offer'
import { patiently } from '../harness'
import { makeOrder } from '../orders'
import { MemoryStore } from '../scripted/memory-store'
import { CONFIG } from './harness'

function refusal(status: number, code: string, message = code): HttpError {
  const body = { error: { code, message } }
  return new HttpError(`Lambda answered ${status}`, { reach: 'answered', status, body })
}

/** Each documented code: its status, its class, what to do about it, and whether a launch may have had its effect. */
const CODES: [string, number, FailureClass, RegExp | undefined, boolean?][] = [
  ['global/invalid-api-key', 401, 'auth', /LAMBDA_API_KEY/],
  ['global/account-inactive', 403, 'auth', /payment method/],
  ['global/invalid-address', 403, 'auth', /billing address/],
  ['global/forbidden', 403, 'auth', /key of an account that may/],
  ['global/quota-exceeded', 400, 'quota', /higher quota/],
  ['global/invalid-parameters', 400, 'invalid', /CRUCIBLE_LAMBDA_/],
  ['global/object-does-not-exist', 404, 'invalid', /crucible setup lambda/],
  ['global/not-found', 404, 'invalid', /CRUCIBLE_LAMBDA_ENDPOINT/],
  ['global/duplicate', 400, 'invalid', /another name/],
  ['global/conflict', 409, 'transient', undefined],
  ['global/internal-error', 500, 'transient', /Running jobs continue/, true],
  ['global/unknown', 500, 'transient', /Running jobs continue/, true],
  ['instance-operations/launch/insufficient-capacity', 400, 'capacity', undefined],
  ['instance-operations/launch/file-system-in-wrong-region', 400, 'invalid', /CRUCIBLE_LAMBDA_CACHE/],
  ['instance-operations/launch/file-systems-not-supported', 400, 'capacity', /CRUCIBLE_LAMBDA_CACHE/],
  ['filesystems/filesystem-in-use', 400, 'transient', undefined],
  ['firewall-rulesets/firewall-ruleset-in-use', 409, 'invalid', undefined],
  ['ssh-keys/key-in-use', 400, 'transient', /End the machines/],
]

describe('what a code of Lambda allows to be done next', () => {
  it.each(CODES)('%s (%i) is %s', (code, status, failureClass, hint, isUncertain = false) => {
    const error = refusal(status, code, 'It cannot be done.')
    const failure = failureOf(error)
    expect(failure).toMatchObject({
      class: failureClass,
      code,
      message: `Lambda answered ${status}: It cannot be done.`,
    })
    if (hint === undefined) expect(failure.hint).toBeUndefined()
    else expect(failure.hint).toMatch(hint)
    expect(mayHaveHappened(error)).toBe(isUncertain)
  })

  it('has a line for every code in the table', () => {
    expect(CODES.map(([code]) => code).sort()).toEqual(Object.keys(MEANINGS).sort())
  })

  it('is to try again where a service behind the API fails, whatever its status', () => {
    for (const [code, status] of [
      ['provider/internal-unavailable', 503],
      ['provider/new-trouble', 400],
    ] as const) {
      expect(failureOf(refusal(status, code))).toMatchObject({ class: 'transient', code })
      expect(mayHaveHappened(refusal(status, code))).toBe(true)
    }
  })

  it('is unknown for a new code: it stays as it is, with the words and the advice of the API', () => {
    const body = {
      error: {
        code: 'global/moon-in-the-way',
        message: 'The moon is in the way.',
        suggestion: 'Wait for the night.',
        request_id: 'r-1',
      },
    }
    const error = new HttpError('Lambda answered 400', { reach: 'answered', status: 400, body })
    expect(failureOf(error)).toEqual({
      class: 'unclassified',
      code: 'global/moon-in-the-way',
      hint: 'Wait for the night.',
      message: 'Lambda answered 400: The moon is in the way. (request r-1)',
    })
    expect(mayHaveHappened(error)).toBe(false)
    expect(failureOf(refusal(500, 'global/moon-in-the-way'))).toMatchObject({ class: 'transient' })
    expect(mayHaveHappened(refusal(500, 'global/moon-in-the-way'))).toBe(true)
  })

  it('is kept where the failure has its class already, and is unclassified for everything else', () => {
    const known = lambdaError(refusal(400, 'global/quota-exceeded'))
    expect(lambdaError(known)).toBe(known)
    expect(lambdaError(new TypeError('no such function')).failure).toEqual({
      class: 'unclassified',
      message: 'no such function',
    })
    expect(lambdaError('words').failure).toMatchObject({ class: 'unclassified', message: 'words' })
  })

  it('depends on the status where the answer has no code', () => {
    const classes = [200, 301, 401, 403, 404, 406, 408, 418, 429, 500, 502, 503, 520].map((status) => {
      const error = new HttpError(`Lambda answered ${status}`, { reach: 'answered', status })
      return [status, failureOf(error).class, mayHaveHappened(error)]
    })
    expect(classes).toEqual([
      [200, 'transient', false] as const,
      [301, 'transient', false],
      [401, 'auth', false],
      [403, 'transient', false] as const,
      [404, 'transient', false],
      [406, 'transient', false],
      [408, 'transient', true] as const,
      [418, 'transient', false],
      [429, 'throttled', false],
      [500, 'transient', true] as const,
      [502, 'transient', true],
      [503, 'transient', true],
      [520, 'transient', true],
    ])
  })
})

describe('an answer that is not one of the API', () => {
  let server: Server | undefined
  afterEach(async () => {
    server?.closeAllConnections()
    await new Promise((resolve) => (server === undefined ? resolve(undefined) : server.close(resolve)))
    server = undefined
  })

  async function backendOver(answer: RequestListener): Promise<Backend> {
    server = createServer(answer)
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const handOver = async () => ({ url: 'https://store.example/x', key: '0'.repeat(64) })
    return createLambdaBackend({ ...CONFIG, endpoint }, { clock: Date.now, handOver })
  }

  type Answer = { status: number; text: string; headers?: Record<string, string> }
  const plainly =
    ({ status, text, headers = {} }: Answer): RequestListener =>
    (_, response) =>
      void response.writeHead(status, { 'content-type': 'text/html', ...headers }).end(text)

  /** How a launch ends whose POST gets this answer, after a list without machines. */
  async function launched(answer: Answer): Promise<LaunchOutcome | Failure> {
    const backend = await backendOver((request, response) =>
      request.method === 'GET'
        ? void response.end(JSON.stringify({ data: [] }))
        : plainly(answer)(request, response),
    )
    const offer = {
      backend: 'lambda',
      capacityType: 'on-demand',
      type: 'gpu_1x_a10',
      place: 'us-east-1',
      shape: { cpus: 1, memoryGiB: 1, gpus: 1 },
      priceMicroUsdPerHour: 1,
      availability: 'available',
      priceSource: { kind: 'live', observedAtMs: 0 },
    } as Offer
    const order = makeOrder({ store: new MemoryStore(Date.now), offers: [offer] })
    return backend
      .launch(order, { ...patiently(), send: 'send-1' })
      .catch((error: unknown) => lambdaError(error).failure)
  }

  const PAGE = `<!doctype html><html><head><title>Access denied</title><style>b{}</style></head>
    <body><script>alert(1)</script><h1>Error 1010</h1>The owner has <b>banned</b> your access.</body></html>`

  it('is shown as words where the firewall sends a page, and stops no job', async () => {
    const failure = await launched({ status: 403, text: PAGE })
    expect(failure).toMatchObject({
      class: 'transient',
      code: 'HTTP 403',
      hint: expect.stringContaining('firewall'),
      message: 'Lambda answered 403: Access denied Error 1010 The owner has banned your access.',
    })
  })

  it('leaves it open whether a launch had its effect where the page comes from a broken gateway, or in time', async () => {
    expect(await launched({ status: 502, text: PAGE })).toMatchObject({ kind: 'unconfirmed' })
    server!.closeAllConnections()
    server!.close()
    expect(await launched({ status: 200, text: PAGE })).toMatchObject({ kind: 'unconfirmed' })
    server!.closeAllConnections()
    server!.close()
    expect(await launched({ status: 200, text: '{"data":{"instance_ids":[]}}' })).toMatchObject({
      kind: 'unconfirmed',
    })
  })

  it('is not followed to another server', async () => {
    const headers = { location: 'http://127.0.0.1:1/api/v1/instances' }
    expect(await launched({ status: 302, text: '', headers })).toMatchObject({
      class: 'transient',
      hint: expect.stringContaining('CRUCIBLE_LAMBDA_ENDPOINT'),
    })
  })

  it('is a failure of a read that says what is wrong with it', async () => {
    const listed = async (answer: Answer): Promise<Failure> =>
      (await backendOver(plainly(answer)))
        .list('test', patiently())
        .then(() => Promise.reject(new Error('it was read')))
        .catch((error: unknown) => lambdaError(error).failure)
    expect(await listed({ status: 200, text: 'not JSON' })).toEqual({
      class: 'transient',
      message: 'Lambda answered with something other than JSON.',
      hint: expect.stringContaining('Running jobs continue'),
    })
    server!.closeAllConnections()
    server!.close()
    expect(await listed({ status: 200, text: '{"data":[{"id":7}]}' })).toMatchObject({
      class: 'transient',
      message: expect.stringMatching(/GET \/instances in an unknown form at data\.0/),
    })
    server!.closeAllConnections()
    server!.close()
    expect(await listed({ status: 404, text: '<h1>Not here</h1>' })).toMatchObject({
      class: 'transient',
      hint: expect.stringContaining('CRUCIBLE_LAMBDA_ENDPOINT'),
    })
  })

  it.each([
    ['for as long as it says', { 'retry-after': '7' }, 7_000],
    ['for two seconds where it does not say', {}, 2_000],
    ['for two seconds where it says a date', { 'retry-after': 'Wed, 25 Nov 2026 04:00:00 GMT' }, 2_000],
  ])('holds the next launch back %s', async (_, headers, retryAfterMs) => {
    const text = '{"error":{"code":"global/rate-limit-exceeded","message":"Too many requests."}}'
    expect(await launched({ status: 429, text, headers })).toMatchObject({ class: 'throttled', retryAfterMs })
  })

  it('makes a read that came too early wait, and read again', async () => {
    const atMs: number[] = []
    const backend = await backendOver((_, response) => {
      atMs.push(Date.now())
      if (atMs.length === 1) return void response.writeHead(429, { 'retry-after': '0.2' }).end('slow down')
      response.end('{"data":[]}')
    })
    expect(await backend.list('test', patiently())).toEqual([])
    expect(atMs[1]! - atMs[0]!).toBeGreaterThanOrEqual(190)
  })
})
