/** The real server behind the front: requests are signed again with its own key and streamed to it. */
import { createHash, createHmac } from 'node:crypto'
import {
  Agent,
  request as ask,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type OutgoingHttpHeaders,
} from 'node:http'

export interface UpstreamOptions {
  /** Address such as `http://127.0.0.1:port`. */
  url: string
  keyId: string
  secret: string
  region: string
  /** Delays a request until the server is up, for example while it restarts. */
  whenUp?: () => Promise<void>
}

/** Headers of a single connection, which do not describe the request. */
const HOP_HEADERS = [
  'connection',
  'keep-alive',
  'transfer-encoding',
  'te',
  'upgrade',
  'proxy-authorization',
  'expect',
]
const SIGNING_HEADERS = [
  'authorization',
  'x-amz-date',
  'x-amz-security-token',
  'x-amz-content-sha256',
  'host',
]
const EMPTY_SHA256 = createHash('sha256').update('').digest('hex')

export interface Onward {
  method: string
  /** Path and query, without the signature. */
  target: string
  /** The headers of the original request, without signature and connection headers. */
  headers: IncomingHttpHeaders
  /** The original body, or a replacement. */
  body: IncomingMessage | Buffer
}

export class Upstream {
  private readonly agent = new Agent({ keepAlive: true })

  constructor(private readonly options: UpstreamOptions) {}

  /** Forwards a request. The caller reads the answer's body. Rejects when the server does not answer. */
  async send(onward: Onward): Promise<IncomingMessage> {
    const { method, target, body } = onward
    await this.options.whenUp?.()
    if (!Buffer.isBuffer(body) && body.destroyed) throw new Error('the client has not waited')
    const { hostname, port } = new URL(this.options.url)
    return new Promise((resolve, reject) => {
      const headers = this.sign(onward)
      const request = ask({ hostname, port, method, path: target, headers, agent: this.agent }, resolve)
      request.on('error', reject)
      if (Buffer.isBuffer(body)) return void request.end(body)
      body.on('aborted', () => request.destroy())
      body.pipe(request)
    })
  }

  close(): void {
    this.agent.destroy()
  }

  private sign({ method, target, headers: given, body }: Onward): OutgoingHttpHeaders {
    const { keyId, secret, region, url } = this.options
    const headers: Record<string, string> = {}
    for (const [name, value] of Object.entries(given))
      if (value !== undefined && !HOP_HEADERS.includes(name) && !SIGNING_HEADERS.includes(name))
        headers[name] = Array.isArray(value) ? value.join(',') : value
    if (Buffer.isBuffer(body)) headers['content-length'] = String(body.length)
    const stamp = new Date().toISOString().replace(/[-:]|\.\d+/g, '')
    headers['host'] = new URL(url).host
    headers['x-amz-date'] = stamp
    headers['x-amz-content-sha256'] = payloadHash({ method, headers: given, body })
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

/** Returns the hash of the payload: the one that the client sent, or one computed here, because a presigned URL contains none. */
function payloadHash({ headers, method, body }: Omit<Onward, 'target'>): string {
  if (Buffer.isBuffer(body)) return sha256(body)
  const told = headers['x-amz-content-sha256']
  if (typeof told === 'string') return told
  return method === 'GET' || method === 'HEAD' ? EMPTY_SHA256 : 'UNSIGNED-PAYLOAD'
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
