/**
 * Answers that EC2 never gives, between the backend and the small cloud: after each, no machine is lost or bought twice, no healthy one is
 * declared gone, and the error is one of Crucible's.
 */
import { createServer, request as send, type IncomingHttpHeaders, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals'
import type { Backend } from '../../../backends/backend'
import { BackendError, failureOf } from '../../../backends/errors'
import type { MachineHandle } from '../../../core/handle'
import type { Order } from '../../../core/job/plan'
import { MINUTE_MS } from '../../../core/time/time'
import { chosen } from '../../support/selection'
import { patiently } from '../harness'
import { Ec2Harness, type PaperHarness } from './harness'

interface Answer {
  status: number
  headers: IncomingHttpHeaders
  body: string
}

/** Breaks a good answer. The answer never comes if it returns nothing. */
type Fault = (answer: Answer) => Answer | undefined

const withBody = (change: (body: string) => string): Fault => {
  return (answer) => ({ ...answer, body: change(answer.body) })
}
const ERROR =
  '<Response><Errors><Error><Code>InternalError</Code><Message>no</Message></Error></Errors></Response>'

const FAULTS: Readonly<Record<string, Fault>> = {
  nothing: withBody(() => ''),
  'the page of a proxy': withBody(() => '<html><body>Log in</body></html>'),
  JSON: withBody(() => '{"message": "ok"}'),
  null: withBody(() => 'null'),
  'half of it': withBody((body) => body.slice(0, body.length / 2)),
  'its first bytes': withBody((body) => body.slice(0, 90)),
  'an error with status 200': withBody(() => ERROR),
  'an answer to another question': withBody(
    () => '<DescribeRegionsResponse><regionInfo/></DescribeRegionsResponse>',
  ),
  'empty fields': withBody((body) => body.replace(/>[^<>]+</g, '><')),
  'words for numbers and dates': withBody((body) => body.replace(/>[\d.:TZ-]+</g, '>many<')),
  'machines in an unknown state': withBody((body) => body.replace(/>(running|pending)</g, '>dreaming<')),
  'machines of another Region': withBody((body) => body.replaceAll('us-east-1', 'xx-north-9')),
  'bytes that are not text': withBody((body) => `${body.slice(0, 200)}\u0000\ufffd${body.slice(200)}`),
  'a redirect': (answer) => ({ ...answer, status: 301, headers: { location: 'http://127.0.0.1:9/' } }),
  'an overload': (answer) => ({ ...answer, status: 503, body: '<html>busy</html>' }),
  'a hang-up': () => undefined,
}

const FEW = ['nothing', 'half of it', 'empty fields', 'machines in an unknown state']

describe.each(chosen(Object.keys(FAULTS), FEW))('an answer with %s', (name) => {
  let h: PaperHarness
  let server: Server
  let backend: Backend
  let order: Order
  let handle: MachineHandle
  /** The action whose answers are broken; none at first. */
  let broken: string | undefined

  beforeAll(async () => {
    h = await Ec2Harness.onPaper({ config: { staleForMs: 5 * MINUTE_MS } })
    const cloud = new URL(h.cloud.endpoint)
    server = createServer((asked, response) => {
      const chunks: Buffer[] = []
      asked.on('data', (chunk: Buffer) => chunks.push(chunk))
      asked.on('end', () => {
        const question = Buffer.concat(chunks)
        const action = new URLSearchParams(question.toString()).get('Action')
        const { method, url: path, headers } = asked
        const passed = send({ host: cloud.hostname, port: cloud.port, method, path, headers }, (got) => {
          let body = ''
          got.setEncoding('utf8')
          got.on('data', (text: string) => (body += text))
          got.on('end', () => {
            const answer = { status: got.statusCode!, headers: got.headers, body }
            const made = action === broken ? FAULTS[name]!(answer) : answer
            if (made === undefined) return void asked.socket.destroy()
            const kept = { ...made.headers }
            delete kept['content-length']
            delete kept['transfer-encoding']
            response.writeHead(made.status, kept).end(made.body)
          })
        })
        passed.on('error', () => asked.socket.destroy())
        passed.end(question)
      })
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    backend = await h.reopen({ endpoint: `http://127.0.0.1:${port}` })
    order = await h.order()
    handle = await h.launched(order)
    await h.clock.advance(MINUTE_MS)
  })
  beforeEach(() => void (broken = undefined))
  afterAll(async () => {
    server.closeAllConnections()
    server.close()
    await h.dispose()
  })

  /** Returns the outcome of a call; checks that a refusal has words for a person. */
  async function outcome<T>(call: Promise<T>): Promise<T | 'refused'> {
    try {
      return await h.meanwhile(call)
    } catch (error) {
      expect(error).toBeInstanceOf(BackendError)
      expect(failureOf(error).message).not.toMatch(/undefined|Cannot read|is not a function|not iterable/)
      return 'refused'
    }
  }

  it('ends no healthy machine, and hides none', async () => {
    broken = 'DescribeInstances'
    const seen = await outcome(backend.observe([handle], patiently()))
    if (seen !== 'refused') expect(seen[0]!.state).not.toBe('gone')
    const found = await outcome(backend.find(order.attemptId, patiently()))
    if (found !== 'refused') expect(found.kind).not.toBe('absent')
    const listed = await outcome(backend.list('test', patiently()))
    if (listed !== 'refused') expect(JSON.stringify(listed)).toContain(handle.id)
  })

  it('to a launch buys one machine, which is found', async () => {
    const next = await h.order()
    broken = 'CreateFleet'
    const launched = await outcome(backend.launch(next, patiently()))
    broken = undefined
    const machines = h.cloud.instances().filter(({ tags }) => tags['crucible:attempt'] === next.attemptId)
    expect(machines).toHaveLength(1)
    const isKnown = launched !== 'refused' && launched.kind === 'launched'
    if (isKnown) return expect(launched.handle.id).toBe(machines[0]!.id)
    expect(launched).toMatchObject({ kind: 'unconfirmed' })
    const again = await outcome(backend.launch(next, patiently()))
    if (again !== 'refused' && again.kind === 'launched') expect(again.handle.id).toBe(machines[0]!.id)
    expect(await backend.find(next.attemptId, patiently())).toMatchObject({
      kind: 'found',
      handles: [{ id: machines[0]!.id }],
    })
  })

  it('to an end leaves the machine ended, or says that it may not be', async () => {
    const one = await h.launched(await h.order())
    broken = 'TerminateInstances'
    await outcome(backend.terminate(one, patiently()))
    broken = undefined
    await h.meanwhile(backend.terminate(one, patiently()))
    expect(h.cloud.instances().find(({ id }) => id === one.id)?.state).not.toBe('running')
  })

  it.each(['DescribeInstanceTypes', 'DescribeSpotPriceHistory', 'DescribeImages', 'DescribeSubnets'])(
    'to %s gives no offer without a price and a place',
    async (action) => {
      const fresh = await h.reopen({ endpoint: backendEndpoint() })
      broken = action
      const offers = await outcome(fresh.offers({}, patiently()))
      if (offers === 'refused') return
      for (const { priceMicroUsdPerHour, place } of offers) {
        expect(priceMicroUsdPerHour).toBeGreaterThan(0)
        expect(place).toMatch(/^us-east-1/)
      }
    },
  )

  function backendEndpoint(): string {
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }
})
