/** A proxy between a backend and its provider that breaks answers, and ways to break one. */
import { createServer, request as send, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Answer {
  status: number
  headers: IncomingHttpHeaders
  body: string
}

/** A request that the proxy has received. */
export interface Question {
  method: string
  path: string
  body: string
}

export interface Fault {
  /** Returns the broken answer; the connection ends without one if it returns nothing. */
  change?: (answer: Answer, earlier: Answer) => Answer | undefined
  /** Writes the answer itself. */
  write?: (response: ServerResponse, answer: Answer) => void
  /** It says in the provider's way that nothing was done. */
  isRefusal?: boolean
  /** The caller's time limit ends it. */
  isEndless?: boolean
}

export type Faults = Readonly<Record<string, Fault>>

function withBody(change: (body: string) => string): Fault {
  return { change: (answer) => ({ ...answer, body: change(answer.body) }) }
}

const redirectTo = (location: string): Fault => ({
  change: (answer) => ({ ...answer, status: 302, headers: { location }, body: '' }),
})
const failedWith = (status: number): Fault => ({
  change: (answer) => ({ ...answer, status, headers: {}, body: '<html>busy</html>' }),
})
const LONG = 10_000_000

/** Faults that can strike an answer of any provider. */
export const ANY: Faults = {
  nothing: withBody(() => ''),
  'the page of a proxy': withBody(() => '<html><body>Log in</body></html>'),
  null: withBody(() => 'null'),
  'half of it': withBody((body) => body.slice(0, body.length / 2)),
  'its first bytes': withBody((body) => body.slice(0, 90)),
  'it twice': withBody((body) => body + body),
  '10 MB of another text': withBody(() => 'x'.repeat(LONG)),
  'the answer to an earlier question': { change: (_, earlier) => earlier },
  'bytes that are not text': withBody((body) => `${body.slice(0, 200)}\u0000\ufffd${body.slice(200)}`),
  'a redirect to this host': redirectTo('http://127.0.0.1:9/'),
  'a redirect to a file': redirectTo('file:///etc/passwd'),
  'an overload': failedWith(503),
  'an error of the server': failedWith(500),
  'a throttling without a header': { ...failedWith(429), isRefusal: true },
  'a hang-up': { change: () => undefined },
  'a hang-up in the middle': {
    write: (response, { status, headers, body }) => {
      response.writeHead(status, { ...headers, 'content-length': Buffer.byteLength(body) })
      response.write(body.slice(0, body.length / 2), () => response.destroy())
    },
  },
  'a silence': { write: () => undefined, isEndless: true },
  'a silence in the middle': {
    write: (response, { status, headers, body }) => {
      response.writeHead(status, { ...headers, 'content-length': Buffer.byteLength(body) })
      response.write(body.slice(0, body.length / 2))
    },
    isEndless: true,
  },
}

/** Faults that can strike an answer in JSON. */
export const OF_JSON: Faults = {
  'an empty object': withBody(() => '{}'),
  'an empty list': withBody(() => '[]'),
  'an error with status 200': withBody(() => '{"error":{"code":"global/internal-error","message":"no"}}'),
  'another error with status 200': withBody(() => '{"code":"modal","message":"no","type":"InternalError"}'),
  'empty ids': withBody((body) =>
    body.replace(/"(id|key|sandbox_id)":"[^"]*"|(?<="instance_ids":\[)"[^"]*"/g, (all, name) =>
      name === undefined ? '""' : `"${name}":""`,
    ),
  ),
  'empty texts': withBody((body) => body.replace(/":"[^"]*"/g, '":""')),
  'other ids': withBody((body) => body.replace(/"(id|key)":"(?!crucible:)/g, '"$1":"other-')),
  'numbers for texts': withBody((body) => body.replace(/":"[^"]*"/g, '":17')),
  'texts for numbers': withBody((body) => body.replace(/":[\d.]+/g, '":"many"')),
  'null in each field': withBody((body) => body.replace(/":("[^"]*"|[\d.]+)/g, '":null')),
  'an unknown state': withBody((body) => body.replace(/"(phase|status)":"[^"]*"/g, '"$1":"dreaming"')),
  'an empty state': withBody((body) => body.replace(/"(phase|status)":"[^"]*"/g, '"$1":""')),
}

const ERROR =
  '<Response><Errors><Error><Code>InternalError</Code><Message>no</Message></Error></Errors></Response>'

/** Faults that can strike an answer in XML. */
export const OF_XML: Faults = {
  JSON: withBody(() => '{"message": "ok"}'),
  'an error with status 200': withBody(() => ERROR),
  'an answer to another question': withBody(
    () => '<DescribeRegionsResponse><regionInfo/></DescribeRegionsResponse>',
  ),
  'empty fields': withBody((body) => body.replace(/>[^<>]+</g, '><')),
  'words for numbers and dates': withBody((body) => body.replace(/>[\d.:TZ-]+</g, '>many<')),
  'machines in an unknown state': withBody((body) => body.replace(/>(running|pending)</g, '>dreaming<')),
  'machines of another Region': withBody((body) => body.replaceAll('us-east-1', 'xx-north-9')),
}

/** Breaks the answers to some questions. */
export class AnswerBreaker {
  /** Which questions get a broken answer; none at first. */
  breaks: ((question: Question) => boolean) | undefined
  /** A question that gets a broken answer does not reach the provider, which would have answered with `{}`. */
  keepsBack = false
  private earlier: Answer = { status: 200, headers: {}, body: '' }
  private readonly server = createServer((asked, response) => {
    const chunks: Buffer[] = []
    asked.on('data', (chunk: Buffer) => chunks.push(chunk))
    asked.on('end', () => {
      const { method = '', url: path = '', headers } = asked
      const body = Buffer.concat(chunks)
      const isBroken = this.breaks?.({ method, path, body: body.toString() }) === true
      if (isBroken && this.keepsBack) return this.answer(response, { status: 200, headers: {}, body: '{}' })
      const { hostname: host, port } = this.provider
      const passed = send({ host, port, method, path, headers }, (got) => {
        let text = ''
        got.setEncoding('utf8')
        got.on('data', (piece: string) => (text += piece))
        got.on('end', () => {
          const answer = { status: got.statusCode!, headers: withoutLength(got.headers), body: text }
          if (isBroken) return this.answer(response, answer)
          this.earlier = answer
          response.writeHead(answer.status, answer.headers).end(answer.body)
        })
      })
      passed.on('error', () => asked.socket.destroy())
      passed.end(body)
    })
  })

  private constructor(
    private readonly provider: URL,
    private readonly fault: Fault,
  ) {}

  static async open(provider: string, fault: Fault): Promise<AnswerBreaker> {
    const made = new AnswerBreaker(new URL(provider), fault)
    await new Promise<void>((resolve) => made.server.listen(0, '127.0.0.1', resolve))
    return made
  }

  /** The address in place of the provider's, with the same path. */
  get url(): string {
    const { port } = this.server.address() as AddressInfo
    return `http://127.0.0.1:${port}${this.provider.pathname.replace(/\/$/, '')}`
  }

  close(): void {
    this.server.closeAllConnections()
    this.server.close()
  }

  private answer(response: ServerResponse, answer: Answer): void {
    const { change, write } = this.fault
    if (write !== undefined) return write(response, answer)
    const made = change!(answer, this.earlier)
    if (made === undefined) return void response.destroy()
    response.writeHead(made.status, made.headers).end(made.body)
  }
}

function withoutLength(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  const kept = { ...headers }
  delete kept['content-length']
  delete kept['transfer-encoding']
  return kept
}
