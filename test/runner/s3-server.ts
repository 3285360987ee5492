import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface S3Options {
  bucket: string
  region: string
  /** Who may read; missing where anybody may. */
  keys?: { id: string; secret: string; token?: string } | undefined
  objects: Record<string, string | Buffer>
  /** Where an error says what the bucket's region is. */
  tellsRegionBy?: 'header' | 'document'
}

const SKEW_MS = 15 * 60_000
const PAGE = 2

/** As much of S3 as reading takes, which checks every signature by the specification, with nothing of the runner's in it. */
export class S3Server {
  readonly requests: { url: string; range: string | undefined; status: number }[] = []
  /** Where the next answers are cut. */
  readonly cuts: number[] = []
  readonly #o: S3Options
  readonly #server: Server

  private constructor(options: S3Options) {
    this.#o = options
    this.#server = createServer((request, response) => this.#answer(request, response))
  }

  static async open(options: S3Options): Promise<S3Server> {
    const server = new S3Server(options)
    await new Promise<void>((resolve) => server.#server.listen(0, '127.0.0.1', resolve))
    return server
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const url = new URL(request.url!, this.url)
    const [, bucket, ...rest] = decodeURIComponent(url.pathname).split('/')
    const key = rest.join('/')
    const entry = { url: request.url!, range: request.headers.range, status: 200 }
    this.requests.push(entry)
    const fail = (status: number, code: string): void => {
      entry.status = status
      const { region, tellsRegionBy = 'header' } = this.#o
      response.writeHead(status, {
        'content-type': 'application/xml',
        ...(tellsRegionBy === 'header' ? { 'x-amz-bucket-region': region } : {}),
      })
      response.end(
        `<?xml version="1.0"?><Error><Code>${code}</Code><Message>Words about ${code}.</Message><Region>${region}</Region></Error>`,
      )
    }
    const problem = this.#problemOf(request, url)
    if (problem !== undefined) return fail(...problem)
    if (bucket !== this.#o.bucket) return fail(404, 'NoSuchBucket')
    if (key === '') return void response.end(this.#page(url))
    const object = this.#o.objects[key]
    if (object === undefined) return fail(404, 'NoSuchKey')
    const body = Buffer.from(object)
    const etag = `"${createHash('md5').update(body).digest('hex')}"`
    if (request.headers['if-none-match'] === etag) {
      entry.status = 304
      response.writeHead(304, { etag })
      return void response.end()
    }
    if ((request.headers['if-match'] ?? etag) !== etag) return fail(412, 'PreconditionFailed')
    const from = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? '')?.[1] ?? 0)
    entry.status = from > 0 ? 206 : 200
    response.writeHead(entry.status, {
      etag,
      'content-length': body.length - from,
      ...(from > 0 ? { 'content-range': `bytes ${from}-${body.length - 1}/${body.length}` } : {}),
    })
    const cut = this.cuts.shift()
    if (cut === undefined) response.end(body.subarray(from))
    else response.write(body.subarray(from, from + cut), () => response.destroy())
  }

  /** What is wrong with a signature, by https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html */
  #problemOf({ headers, method }: IncomingMessage, url: URL): [number, string] | undefined {
    const { keys, region } = this.#o
    if (keys === undefined) return undefined
    const pattern =
      /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/s3\/aws4_request, ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$/
    const [, id, day, asked, names, signature] = pattern.exec(headers.authorization ?? '') ?? []
    if (id === undefined) return [403, 'AccessDenied']
    if (id !== keys.id) return [404, 'InvalidAccessKeyId'] // 403 at AWS; some servers say 404
    if (asked !== region) return [400, 'AuthorizationHeaderMalformed']
    if (headers['x-amz-security-token'] !== keys.token) return [400, 'InvalidToken']
    const stamp = String(headers['x-amz-date'])
    const at = Date.parse(stamp.replace(/(\d{4})(\d\d)(\d\dT\d\d)(\d\d)(\d\dZ)/, '$1-$2-$3:$4:$5'))
    if (!(Math.abs(Date.now() - at) < SKEW_MS) || !stamp.startsWith(day!))
      return [403, 'RequestTimeTooSkewed']
    const signed = names!.split(';')
    const amz = Object.keys(headers).filter((name) => name.startsWith('x-amz-'))
    if (!['host', ...amz].every((name) => signed.includes(name))) return [403, 'AccessDenied']
    const canonical = [
      method,
      url.pathname
        .split('/')
        .map((part) => encode(decodeURIComponent(part)))
        .join('/'),
      [...url.searchParams]
        .map(([name, value]) => `${encode(name)}=${encode(value)}`)
        .sort()
        .join('&'),
      ...signed.map((name) => `${name}:${String(headers[name]).trim()}`),
      '',
      names,
      String(headers['x-amz-content-sha256']),
    ].join('\n')
    if (headers['x-amz-content-sha256'] !== sha256('')) return [400, 'XAmzContentSHA256Mismatch']
    const text = ['AWS4-HMAC-SHA256', stamp, `${day}/${region}/s3/aws4_request`, sha256(canonical)].join('\n')
    const key = [day!, region, 's3', 'aws4_request'].reduce<Buffer>(
      (secret, part) => createHmac('sha256', secret).update(part).digest(),
      Buffer.from(`AWS4${keys.secret}`),
    )
    const wanted = createHmac('sha256', key).update(text).digest()
    return timingSafeEqual(wanted, Buffer.from(signature!, 'hex'))
      ? undefined
      : [403, 'SignatureDoesNotMatch']
  }

  #page(url: URL): string {
    const prefix = url.searchParams.get('prefix') ?? ''
    const from = Number(url.searchParams.get('continuation-token') ?? 0)
    const keys = Object.keys(this.#o.objects)
      .filter((key) => key.startsWith(prefix))
      .sort()
    const next =
      from + PAGE < keys.length ? `<NextContinuationToken>${from + PAGE}</NextContinuationToken>` : ''
    const contents = keys
      .slice(from, from + PAGE)
      .map((key) => `<Contents><Key>${encode(key).replaceAll('%20', '+')}</Key></Contents>`)
    return `<?xml version="1.0"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Prefix/>${next}${contents.join('')}<EncodingType>url</EncodingType></ListBucketResult>`
  }
}

function encode(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  )
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
