/** Requests to an S3 server exactly as written: path, query and headers are signed and sent without any change, as no SDK sends them. */
import { createHash, createHmac } from 'node:crypto'
import { Agent, request as ask } from 'node:http'

export interface RawRequest {
  method: string
  /** Path and query as they go over the wire. */
  target: string
  headers?: Readonly<Record<string, string>>
  body?: string
}

export interface RawAnswer {
  status: number
  body: string
}

export interface RawKeys {
  accessKeyId: string
  secretAccessKey: string
  sessionToken?: string | undefined
}

export class RawS3 {
  private readonly agent = new Agent({ keepAlive: true, maxSockets: 16 })

  /** @param place the server; with the name of another service of AWS, if it is not S3 */
  constructor(private readonly place: { endpoint: string; region: string; service?: string }) {}

  /** Resolves with status 0 when the server closes the connection, and for a request that Node refuses to send. */
  async send(raw: RawRequest, keys: RawKeys): Promise<RawAnswer> {
    const { hostname, port } = new URL(this.place.endpoint)
    const { method, target: path, body = '' } = raw
    return new Promise((resolve) => {
      try {
        const options = {
          hostname,
          port,
          method,
          path,
          headers: this.headersOf(raw, keys),
          agent: this.agent,
        }
        const request = ask(options, (response) => {
          const pieces: Buffer[] = []
          response.on('data', (piece: Buffer) => pieces.push(piece))
          const answer = (): void =>
            resolve({ status: response.statusCode ?? 0, body: Buffer.concat(pieces).toString() })
          response.on('end', answer)
          response.on('error', answer)
        })
        request.on('error', (error) => resolve({ status: 0, body: error.message }))
        request.end(body)
      } catch (error) {
        resolve({ status: 0, body: String(error) })
      }
    })
  }

  close(): void {
    this.agent.destroy()
  }

  private headersOf({ method, target, headers = {}, body = '' }: RawRequest, keys: RawKeys) {
    const { region, endpoint, service = 's3' } = this.place
    const stamp = new Date().toISOString().replace(/[-:]|\.\d+/g, '')
    const all: Record<string, string> = {
      ...headers,
      host: new URL(endpoint).host,
      'x-amz-date': stamp,
      'x-amz-content-sha256': sha256(body),
      'content-length': String(Buffer.byteLength(body)),
    }
    if (keys.sessionToken !== undefined) all['x-amz-security-token'] = keys.sessionToken
    const signed = Object.keys(all).sort()
    const at = target.indexOf('?')
    const [path, query] = at < 0 ? [target, ''] : [target.slice(0, at), target.slice(at + 1)]
    const canonical = [
      method,
      path || '/',
      canonicalQuery(query),
      ...signed.map((name) => `${name}:${all[name]!.trim().replace(/ +/g, ' ')}`),
      '',
      signed.join(';'),
      sha256(body),
    ].join('\n')
    const scope = `${stamp.slice(0, 8)}/${region}/${service}/aws4_request`
    const text = ['AWS4-HMAC-SHA256', stamp, scope, sha256(canonical)].join('\n')
    const key = scope
      .split('/')
      .reduce<Buffer | string>((by, part) => hmac(by, part), `AWS4${keys.secretAccessKey}`)
    all['authorization'] =
      `AWS4-HMAC-SHA256 Credential=${keys.accessKeyId}/${scope}, SignedHeaders=${signed.join(';')}, Signature=${hmac(key, text).toString('hex')}`
    return all
  }
}

function canonicalQuery(query: string): string {
  return query
    .split('&')
    .filter((part) => part !== '')
    .map((part) => {
      const at = part.indexOf('=')
      return at < 0 ? [part, ''] : [part.slice(0, at), part.slice(at + 1)]
    })
    .map(([name, value]) => `${recoded(name!)}=${recoded(value!)}`)
    .sort()
    .join('&')
}

function recoded(text: string): string {
  try {
    return encoded(decodeURIComponent(text))
  } catch {
    return encoded(text)
  }
}

function encoded(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)
}

function sha256(data: string): string {
  return createHash('sha256').update(data).digest('hex')
}

function hmac(key: Buffer | string, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest()
}
