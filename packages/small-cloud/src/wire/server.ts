/** The HTTP server: one address on loopback for every service. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { hasBearer } from '../keys'
import type { Dispatch } from './dispatch'

/** Larger than any request of the services implemented here; objects go to the store. */
const BODY_BYTES_MAX = 8 * 1024 * 1024

/** A handler of requests below a path. */
export interface Front {
  owns(url: string): boolean
  handle(request: IncomingMessage, response: ServerResponse): Promise<void>
  close(): Promise<void>
}

export interface ServerParts {
  dispatch: Dispatch
  /** How far its clock is ahead of this host's clock. */
  aheadMs: number
  /** Handles requests that are signed for the object store. */
  store?: ((request: IncomingMessage, response: ServerResponse) => void) | undefined
  /** The HTTP APIs of other providers, and public files, each below its own path. */
  fronts: readonly Front[]
  /** The bearer token of requests below `/_sim/`. */
  controlKey: string
  /** Handles requests below `/_sim/`. */
  control: (path: string, method: string, body: Buffer) => Promise<{ status: number; value: unknown }>
}

export class WireServer {
  private readonly server: Server
  private readonly sockets = new Set<Socket>()

  constructor(private readonly parts: ServerParts) {
    this.server = createServer((request, response) => {
      setDate(response, parts.aheadMs)
      this.serve(request, response).catch((error: unknown) => {
        if (!response.headersSent) response.writeHead(500)
        response.end(error instanceof Error ? error.message : String(error))
      })
    })
    this.server.on('connection', (socket) => {
      this.sockets.add(socket)
      socket.on('close', () => this.sockets.delete(socket))
      socket.on('error', () => undefined)
    })
  }

  /** Listens on loopback; port 0 takes a free one. Returns the port. Throws when the port is taken. */
  async listen(port: number): Promise<number> {
    await new Promise<void>((resolve, reject) => {
      this.server.once('error', reject)
      this.server.listen(port, '127.0.0.1', resolve)
    })
    return (this.server.address() as AddressInfo).port
  }

  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.server.close(() => resolve()))
    for (const socket of this.sockets) socket.destroy()
    await closed
    await Promise.all(this.parts.fronts.map((front) => front.close()))
  }

  private async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = request.url ?? '/'
    if (url.startsWith('/_sim/')) return this.serveControl(request, response)
    const front = this.parts.fronts.find((each) => each.owns(url))
    if (front !== undefined) return front.handle(request, response)
    if (isForStore(request)) return this.serveStore(request, response)
    const body = await readBody(request, response)
    if (body === undefined) return
    const { method = 'GET', headers } = request
    const { answer, lost } = await this.parts.dispatch.handle({ method, url, headers, body })
    if (lost === 'reset') return void request.socket.destroy()
    // The client waits for its own timeout, or for the end of the cloud.
    if (lost === 'silence') return
    response.writeHead(answer.status, answer.headers)
    response.end(answer.body)
  }

  private async serveControl(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (!hasBearer(request.headers.authorization, this.parts.controlKey)) {
      request.resume()
      response.writeHead(401, { 'content-type': 'application/json', 'www-authenticate': 'Bearer' })
      return void response.end(
        JSON.stringify({ error: 'send the key of this cloud: authorization: Bearer KEY' }),
      )
    }
    const body = await readBody(request, response)
    if (body === undefined) return
    const { method = 'GET', url = '/' } = request
    // A web page can send a form across origins, but not JSON.
    const isForeign = method !== 'GET' && request.headers['content-type'] !== 'application/json'
    const { status, value } = isForeign
      ? { status: 415, value: { error: 'send JSON, with content-type: application/json' } }
      : await this.parts.control(url.slice('/_sim/'.length), method, body)
    response.writeHead(status, { 'content-type': 'application/json' })
    response.end(JSON.stringify(value))
  }

  private serveStore(request: IncomingMessage, response: ServerResponse): void {
    if (this.parts.store !== undefined) return this.parts.store(request, response)
    response.writeHead(501, { 'content-type': 'application/xml' })
    const message = 'This small cloud was started without an object store.'
    response.end(`<Error><Code>NotImplemented</Code><Message>${message}</Message></Error>`)
  }
}

/** Clients measure their clock skew with this header. */
export function setDate(response: ServerResponse, aheadMs: number): void {
  response.setHeader('date', new Date(Date.now() + aheadMs).toUTCString())
}

/** A request is for S3 if its signing name, the query of a presigned URL, or a path shows it. */
function isForStore({ url = '/', headers }: IncomingMessage): boolean {
  const scope = /Credential=[^/]+\/\d+\/[^/]+\/([^/]+)\//.exec(headers.authorization ?? '')?.[1]
  if (scope !== undefined) return scope === 's3'
  const [path, query] = url.split('?')
  const presigned = new URLSearchParams(query).get('X-Amz-Credential')?.split('/').at(-2)
  return presigned === undefined ? path !== '/' : presigned === 's3'
}

async function readBody(request: IncomingMessage, response: ServerResponse): Promise<Buffer | undefined> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > BODY_BYTES_MAX) {
      response.writeHead(413)
      response.end()
      return undefined
    }
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}
