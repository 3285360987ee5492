import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { drawSecret } from '../keys'
import { clientOf, hopsOf } from './hops'
import type { MachineMetadata } from './metadata'

const TOKEN_PATH = '/latest/api/token'
const TTL_HEADER = 'x-aws-ec2-metadata-token-ttl-seconds'
const TOKEN_HEADER = 'x-aws-ec2-metadata-token'
const TTL_MAX_SECONDS = 21_600
/** `latest`, or the date of a version. */
const VERSION = /^(?:latest|1\.0|\d{4}-\d{2}-\d{2})$/

interface MetadataOptions {
  /** Whether a process of this host belongs to the machine. */
  isOwn: (pid: number) => boolean
  hopLimit?: number | undefined
  monotonicMs?: (() => number) | undefined
}

/** Whether the system shows the process of a client; elsewhere, only the machine knows the path of its service. */
const SHOWS_CLIENTS = process.platform === 'linux'

/**
 * The metadata of one machine on loopback, for holders of a token: only version 2 of the protocol. Only the machine's own processes get
 * one, because every user of this host reaches the port.
 */
export class MetadataService {
  private readonly path = SHOWS_CLIENTS ? '' : `/${drawSecret()}`
  private readonly tokens = new Map<string, number>()
  private readonly server: Server

  /** Hop limit of an answer with a token: 1 for the machine's own processes, 2 for its containers. */
  private readonly hopLimit: number
  private readonly isOwn: (pid: number) => boolean
  /** Monotonic milliseconds. */
  private readonly monotonicMs: () => number

  constructor(
    private readonly metadata: MachineMetadata,
    private readonly userData: string,
    { isOwn, hopLimit = 1, monotonicMs = () => performance.now() }: MetadataOptions,
  ) {
    this.isOwn = isOwn
    this.hopLimit = hopLimit
    this.monotonicMs = monotonicMs
    this.server = createServer((request, response) => this.answer(request, response))
  }

  /** Resolves to the endpoint, for `AWS_EC2_METADATA_SERVICE_ENDPOINT`. */
  async listen(): Promise<string> {
    this.server.listen(0, '127.0.0.1')
    await once(this.server, 'listening')
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}${this.path}`
  }

  async close(): Promise<void> {
    if (!this.server.listening) return
    const closed = once(this.server, 'close')
    this.server.close()
    this.server.closeAllConnections()
    await closed
  }

  private answer(request: IncomingMessage, response: ServerResponse): void {
    request.resume()
    const whole = decode(request.url ?? '/')
    if (whole === undefined) return refuse(response, 400)
    if (!whole.startsWith(this.path)) return refuse(response, 403)
    const path = whole.slice(this.path.length)
    if (request.method === 'PUT')
      return path === TOKEN_PATH ? this.giveToken(request, response) : refuse(response, 405)
    if (request.method !== 'GET' && request.method !== 'HEAD') return refuse(response, 405)
    if (!this.isKnown(request.headers[TOKEN_HEADER])) return refuse(response, 401)
    const text = this.read(path)
    if (text === undefined) return refuse(response, 404)
    const length = Buffer.byteLength(text)
    response.writeHead(200, { server: 'EC2ws', 'content-type': 'text/plain', 'content-length': length })
    response.end(text)
  }

  /** Answers with a token. A stranger or a request through a proxy gets none; an answer beyond the hop limit never arrives. */
  private giveToken(request: IncomingMessage, response: ServerResponse): void {
    if (request.headers['x-forwarded-for'] !== undefined) return refuse(response, 403)
    const pid = clientOf(request.socket)
    if (SHOWS_CLIENTS && (pid === undefined || !this.isOwn(pid))) return refuse(response, 403)
    if (pid !== undefined && (hopsOf(pid) ?? 1) > this.hopLimit) return
    const asked = request.headers[TTL_HEADER]
    const ttlSeconds = typeof asked === 'string' && /^\d+$/.test(asked) ? Number(asked) : 0
    if (ttlSeconds < 1 || ttlSeconds > TTL_MAX_SECONDS) return refuse(response, 400)
    const token = randomBytes(40).toString('base64url')
    this.tokens.set(token, this.monotonicMs() + ttlSeconds * 1000)
    response.writeHead(200, {
      server: 'EC2ws',
      'content-type': 'text/plain',
      'content-length': Buffer.byteLength(token),
      [TTL_HEADER]: String(ttlSeconds),
    })
    response.end(token)
  }

  private isKnown(token: string | string[] | undefined): boolean {
    const now = this.monotonicMs()
    for (const [known, end] of this.tokens) if (end <= now) this.tokens.delete(known)
    return typeof token === 'string' && this.tokens.has(token)
  }

  private read(path: string): string | undefined {
    const [version, ...rest] = path.replace(/^\/+/, '').split('/')
    if (version === '') return '1.0\n2021-07-15\nlatest'
    if (!VERSION.test(version!)) return undefined
    const inner = rest.join('/').replace(/\/+/g, '/')
    return look(this.leaves(), inner)
  }

  /** Everything below `/latest/`, by path. */
  private leaves(): Map<string, () => string> {
    const leaves = new Map<string, () => string>()
    for (const [path, value] of Object.entries(this.metadata)) {
      const place = path.startsWith('dynamic/') ? path : `meta-data/${path}`
      if (value !== undefined) leaves.set(place, typeof value === 'string' ? () => value : value)
    }
    if (this.userData !== '') leaves.set('user-data', () => this.userData)
    return leaves
  }
}

/** Returns the value at a path, or the names in a folder, with a slash after names of folders. */
function look(leaves: Map<string, () => string>, path: string): string | undefined {
  const value = leaves.get(path.replace(/\/$/, ''))
  if (value !== undefined) return value()
  const folder = path === '' || path.endsWith('/') ? path : `${path}/`
  const names = new Set<string>()
  for (const leaf of leaves.keys()) {
    if (!leaf.startsWith(folder)) continue
    const [name, ...below] = leaf.slice(folder.length).split('/')
    names.add(below.length > 0 ? `${name}/` : name!)
  }
  if (names.size === 0) return undefined
  return [...names].sort().join('\n')
}

function decode(url: string): string | undefined {
  try {
    return decodeURIComponent(url.split('?')[0]!)
  } catch {
    return undefined
  }
}

const REASONS: Record<number, string> = {
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
}

function refuse(response: ServerResponse, status: number): void {
  const title = `${status} - ${REASONS[status]}`
  const page = `<?xml version="1.0" encoding="iso-8859-1"?>\n<html><head><title>${title}</title></head><body><h1>${title}</h1></body></html>\n`
  response.writeHead(status, {
    server: 'EC2ws',
    'content-type': 'text/html',
    'content-length': Buffer.byteLength(page),
  })
  response.end(page)
}
