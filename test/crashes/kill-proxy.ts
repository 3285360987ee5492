import { Agent, createServer, request as ask, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { operationOf } from '#small-cloud/s3/operation'
import { documentAt } from './gates'
import type { Death } from './process'

export interface KillProxyOptions {
  /** The cloud behind it. */
  target: string
  /** Told of every call before it is passed on; the death that the caller meets. */
  meet: (call: string) => Death | undefined
  /** Kills the caller. When it returns, that is dead. */
  kill: () => void
}

/** From the answer until the process that has it is killed: it has read it, and got not much further. */
const AFTER_MS = 5

/** Stands between one process and a cloud, and kills it before, in or after a call. Requests pass as they are, with their signatures. */
export class KillProxy {
  private readonly agent = new Agent({ keepAlive: true })
  private readonly target: URL
  private readonly server = createServer((request, response) => {
    this.take(request, response).catch(() => response.destroy())
  })

  private constructor(private readonly options: KillProxyOptions) {
    this.target = new URL(options.target)
  }

  static async open(options: KillProxyOptions): Promise<KillProxy> {
    const proxy = new KillProxy(options)
    await new Promise<void>((resolve) => proxy.server.listen(0, '127.0.0.1', resolve))
    return proxy
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`
  }

  async close(): Promise<void> {
    this.server.closeAllConnections()
    this.agent.destroy()
    await new Promise((resolve) => this.server.close(resolve))
  }

  private async take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const body = Buffer.concat(chunks)
    const call = nameOf(request, body)
    const death = call === undefined ? undefined : this.options.meet(call)
    if (death === undefined) return this.pass(request, body, response)
    if (death.moment !== 'after') this.options.kill()
    if (death.moment === 'in') await sleep(death.lateMs).then(() => this.pass(request, body))
    if (death.moment !== 'after') return void request.socket.destroy()
    await this.pass(request, body, response)
    await sleep(AFTER_MS)
    this.options.kill()
  }

  /** Resolves when the answer is there, and given to its caller. */
  private pass(request: IncomingMessage, body: Buffer, response?: ServerResponse): Promise<void> {
    const { hostname, port } = this.target
    const { method, url: path, headers } = request
    return new Promise((resolve, reject) => {
      const onward = ask({ hostname, port, method, path, headers, agent: this.agent }, (answer) => {
        answer.on('error', reject)
        if (response === undefined) answer.resume().once('end', resolve)
        else {
          response.writeHead(answer.statusCode ?? 502, answer.headers)
          answer.pipe(response).once('close', resolve)
        }
      })
      onward.on('error', reject)
      onward.end(body)
    })
  }
}

/**
 * As the SDK calls it: by the form of EC2, the header of services that speak JSON, or the path of S3; by method and path for other
 * providers. Undefined for the request of a machine, which has a signed URL.
 */
function nameOf(request: IncomingMessage, body: Buffer): string | undefined {
  const { headers, method = '', url = '' } = request
  const { pathname, searchParams } = new URL(url, 'http://cloud')
  if (searchParams.has('X-Amz-Signature')) return undefined
  const [, path] = OTHER_PROVIDER.exec(pathname) ?? []
  if (path !== undefined) return `${method} ${path.replaceAll(ID, '*')}`
  const target = headers['x-amz-target']
  if (typeof target === 'string') return target.slice(target.lastIndexOf('.') + 1)
  const scope = /Credential=[^/]+\/\d+\/[^/]+\/([^/]+)\//.exec(headers.authorization ?? '')?.[1]
  if (scope !== 's3') return new URLSearchParams(body.toString()).get('Action') ?? 'unknown'
  const { name, key } = operationOf(request)
  return key === '' ? name : `${name} ${documentAt(key, name === 'PutObject' ? body : undefined)}`
}

/** Below the prefix that the small cloud gives to a provider. */
const OTHER_PROVIDER = /^\/_\w+\/(?:api\/)?v1\/(.*)$/
/** Ids of machines and attempts have digits, and names in paths have none. */
const ID = /[^/]*\d[^/]*/g
