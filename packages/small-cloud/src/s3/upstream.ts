/** The real server behind the front: requests are signed again with its own key and streamed to it. */
import { createHash, createHmac } from 'node:crypto'
import { Agent, request as ask, type IncomingMessage, type OutgoingHttpHeaders } from 'node:http'

export interface UpstreamOptions {
  /** Path of the socket of the server, in a folder that only the user of this process can enter. */
  socketPath: string
  keyId: string
  secret: string
  region: string
  /** Delays a request until the server is up, for example while it restarts. */
  whenUp?: () => Promise<void>
}

/** The name of the server in requests over its socket. */
const HOST = 'localhost'
const EMPTY_SHA256 = createHash('sha256').update('').digest('hex')

export interface Onward {
  method: string
  /** Path and query, without a signature. */
  target: string
  /** Headers without a signature; their names have small letters. */
  headers: Readonly<Record<string, string>>
  /** A stream, whose SHA-256 is `payloadHash`, or a whole body; none if missing. */
  body?: IncomingMessage | Buffer
  /** SHA-256 of a stream in hex, or how it is signed; without it the stream is not signed. */
  payloadHash?: string
}

export class Upstream {
  private readonly agent = new Agent({ keepAlive: true })

  constructor(private readonly options: UpstreamOptions) {}

  /** Forwards a request. The caller reads the answer's body. Rejects when the server does not answer. */
  async send(onward: Onward): Promise<IncomingMessage> {
    const { method, target, body } = onward
    await this.options.whenUp?.()
    if (body !== undefined && !Buffer.isBuffer(body) && body.destroyed)
      throw new Error('the client has not waited')
    const { socketPath } = this.options
    return new Promise((resolve, reject) => {
      const headers = this.sign(onward)
      const request = ask({ socketPath, method, path: target, headers, agent: this.agent }, resolve)
      request.on('error', reject)
      if (body === undefined || Buffer.isBuffer(body)) return void request.end(body)
      body.on('aborted', () => request.destroy())
      body.pipe(request)
    })
  }

  close(): void {
    this.agent.destroy()
  }

  private sign(onward: Onward): OutgoingHttpHeaders {
    const { method, target, body } = onward
    const { keyId, secret, region } = this.options
    const headers: Record<string, string> = { ...onward.headers }
    if (Buffer.isBuffer(body)) headers['content-length'] = String(body.length)
    const stamp = new Date().toISOString().replace(/[-:]|\.\d+/g, '')
    headers['host'] = HOST
    headers['x-amz-date'] = stamp
    headers['x-amz-content-sha256'] = payloadHashOf(onward)
    const signed = Object.keys(headers)
      .filter((name) => name === 'host' || name === 'content-type' || name.startsWith('x-amz-'))
      .sort()
    const [path = '/', query = ''] = target.split('?')
    const canonical = [
      method,
      path,
      canonicalQuery(query),
      ...signed.map((name) => `${name}:${headers[name]!.trim().replace(/ +/g, ' ')}`),
      '',
      signed.join(';'),
      headers['x-amz-content-sha256'],
    ].join('\n')
    const scope = `${stamp.slice(0, 8)}/${region}/s3/aws4_request`
    const text = ['AWS4-HMAC-SHA256', stamp, scope, sha256(canonical)].join('\n')
    const key = scope.split('/').reduce<Buffer | string>((by, part) => hmac(by, part), `AWS4${secret}`)
    const signature = hmac(key, text).toString('hex')
    headers['authorization'] =
      `AWS4-HMAC-SHA256 Credential=${keyId}/${scope}, SignedHeaders=${signed.join(';')}, Signature=${signature}`
    return headers
  }
}

function payloadHashOf({ body, payloadHash }: Onward): string {
  if (body === undefined) return EMPTY_SHA256
  return Buffer.isBuffer(body) ? sha256(body) : (payloadHash ?? 'UNSIGNED-PAYLOAD')
}

function canonicalQuery(query: string): string {
  return query
    .split('&')
    .filter((part) => part !== '')
    .map((part) => (part.includes('=') ? part : `${part}=`))
    .sort()
    .join('&')
}

function sha256(data: string | Buffer): string {
  return createHash('sha256').update(data).digest('hex')
}

function hmac(key: Buffer | string, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest()
}
