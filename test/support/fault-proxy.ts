import {
  Agent,
  createServer,
  request as ask,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http'
import type { AddressInfo } from 'node:net'

/** What goes wrong with a request. */
export type Fault =
  /** Answered so without being passed on: with the body, or the error document of a code. */
  | { kind: 'answer'; status: number; code?: string; body?: string; headers?: Record<string, string> }
  /** The connection ends at once, and the server obeys later. */
  | { kind: 'late'; afterMs: number }
  /** Obeyed by the server, but the answer never comes. */
  | { kind: 'lost-answer' }
  /** Obeyed by the server, which then says that it failed, with status 200. */
  | { kind: 'error-in-200'; code: string }
  /** The connection ends after so many bytes of the request's body; nothing of it reaches the server. */
  | { kind: 'cut-request'; afterBytes: number }
  /** The connection ends after so many bytes of the answer's body. */
  | { kind: 'cut-answer'; afterBytes: number }
  /** The answer's body comes one byte at a time, with so much time between two. */
  | { kind: 'trickle'; everyMs: number }
  /** Nothing ever comes. */
  | { kind: 'hang' }

export interface Rule {
  /** Of the requests that it is about: method and path with query, as `^PUT .*partNumber=2`. */
  match: string
  fault: Fault
  /** How many requests it is about; after that they pass. */
  times: number
}

/**
 * Stands before a server and does what networks and servers do. Requests pass as they are, with their signatures: the host that
 * was signed is passed on. Rules come from the test, or over HTTP at `/-/rules`.
 */
export class FaultProxy {
  readonly rules: Rule[] = []
  /** Method and path of every request, in order, and whether something went wrong with it. */
  readonly seen: string[] = []
  /** The ids of the keys that requests were signed with. */
  readonly keyIds = new Set<string>()
  /** Method and path of every request that a key signed, in order. */
  readonly #signed = new Map<string, string[]>()
  readonly #server: Server
  readonly #target: URL
  #port = 0
  readonly #agent = new Agent({ keepAlive: true })

  private constructor(target: string) {
    this.#target = new URL(target)
    this.#server = createServer((request, response) => this.#take(request, response))
    this.#server.keepAliveTimeout = 60_000
  }

  static async open(target: string): Promise<FaultProxy> {
    const proxy = new FaultProxy(target)
    await new Promise<void>((resolve) => proxy.#server.listen(0, '127.0.0.1', resolve))
    return proxy
  }

  get target(): string {
    return this.#target.origin
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  signedBy(keyId: string): readonly string[] {
    return this.#signed.get(keyId) ?? []
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    this.#agent.destroy()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  /** Closes every connection, as a server does that is started again. */
  dropConnections(): void {
    this.#server.closeAllConnections()
  }

  /** Refuses connections, as a host does that is down. */
  async goDown(): Promise<void> {
    this.#port = Number(new URL(this.url).port)
    const closed = new Promise((resolve) => this.#server.close(resolve))
    this.dropConnections()
    await closed
    // Clients of this process notice that their connections have ended.
    await new Promise((resolve) => setTimeout(resolve, 5))
  }

  async comeUp(): Promise<void> {
    if (this.#server.listening) return
    await new Promise<void>((resolve) => this.#server.listen(this.#port, '127.0.0.1', resolve))
  }

  #take(request: IncomingMessage, response: ServerResponse): void {
    if (request.url?.startsWith('/-/') === true) return this.#steer(request, response)
    const line = `${request.method} ${request.url}`
    const rule = this.rules.find(({ match, times }) => times > 0 && new RegExp(match).test(line))
    this.seen.push(rule === undefined ? line : `${line} !${rule.fault.kind}`)
    if (rule !== undefined) rule.times--
    const keyId = /Credential=([^/]+)\//.exec(request.headers.authorization ?? '')?.[1]
    if (keyId !== undefined) {
      this.keyIds.add(keyId)
      this.#signed.set(keyId, [...this.signedBy(keyId), line])
    }
    const fault = rule?.fault
    if (fault?.kind === 'hang') return
    if (fault?.kind === 'cut-request') return this.#cutRequest(request, fault.afterBytes)
    if (fault?.kind === 'answer') {
      request.resume()
      request.once('end', () => {
        response.writeHead(fault.status, { 'content-type': 'application/xml', ...fault.headers })
        response.end(request.method === 'HEAD' ? undefined : (fault.body ?? errorDocument(fault.code ?? '')))
      })
      return
    }
    if (fault?.kind === 'late') return this.#passLater(request, fault.afterMs)
    this.#pass(request, response, fault)
  }

  #passLater(request: IncomingMessage, afterMs: number): void {
    const { method, url: path, headers } = request
    const { hostname, port } = this.#target
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.once('end', () => {
      request.socket.destroy()
      setTimeout(() => {
        const onward = ask({ hostname, port, method, path, headers, agent: this.#agent }, (answer) =>
          answer.resume(),
        )
        onward.on('error', () => undefined)
        onward.end(Buffer.concat(chunks))
      }, afterMs)
    })
  }

  #cutRequest(request: IncomingMessage, afterBytes: number): void {
    let bytes = 0
    request.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes >= afterBytes) request.socket.destroy()
    })
    request.on('end', () => request.socket.destroy())
  }

  #pass(request: IncomingMessage, response: ServerResponse, fault: Fault | undefined): void {
    const { hostname, port } = this.#target
    const { method, url: path, headers } = request
    let isAnswered = false
    const onward = ask({ hostname, port, method, path, headers, agent: this.#agent }, (answer) => {
      isAnswered = true
      if (fault?.kind === 'lost-answer') {
        answer.resume()
        answer.once('end', () => request.socket.destroy())
        return
      }
      if (fault?.kind === 'error-in-200') {
        answer.resume()
        answer.once('end', () => response.end(errorDocument(fault.code)))
        return
      }
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      if (fault?.kind === 'cut-answer') {
        let left = fault.afterBytes
        answer.on('data', (chunk: Buffer) => {
          response.write(chunk.subarray(0, left))
          left = Math.max(0, left - chunk.length)
          if (left === 0) setImmediate(() => request.socket.destroy())
        })
        return
      }
      if (fault?.kind === 'trickle') return trickle(answer, response, fault.everyMs)
      answer.pipe(response)
    })
    // A server that refuses answers before it has everything, and closes.
    onward.on('error', () => isAnswered || request.socket.destroy())
    response.on('close', () => onward.destroy())
    request.pipe(onward)
  }

  #steer(request: IncomingMessage, response: ServerResponse): void {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      if (request.url === '/-/drop') {
        response.end('{}', () => this.dropConnections())
        return
      }
      if (request.method === 'PUT') {
        const rules = JSON.parse(Buffer.concat(chunks).toString()) as Rule[]
        this.rules.splice(0, this.rules.length, ...rules)
        this.seen.length = 0
      }
      response.end(JSON.stringify({ rules: this.rules, seen: this.seen }))
    })
  }
}

function trickle(answer: IncomingMessage, response: ServerResponse, everyMs: number): void {
  const chunks: Buffer[] = []
  answer.on('data', (chunk: Buffer) => chunks.push(chunk))
  answer.once('end', () => {
    const body = Buffer.concat(chunks)
    let sent = 0
    const timer = setInterval(() => {
      response.write(body.subarray(sent, ++sent))
      if (sent < body.length) return
      clearInterval(timer)
      response.end()
    }, everyMs)
    response.on('close', () => clearInterval(timer))
  })
}

function errorDocument(code: string): string {
  return `<?xml version="1.0" encoding="UTF-8"?><Error><Code>${code}</Code><Message>Words about ${code}.</Message></Error>`
}
