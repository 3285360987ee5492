import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Claim } from '../../../core/documents'
import type { SignedUrls } from '../../../storage/store'
import { MemoryStore } from '../scripted/memory-store'

/** The key of a claim, with its job and attempt. */
const CLAIM = /^jobs\/([^/]+)\/attempts\/(\d+)\/claim\.json$/

/**
 * A store whose signed URLs are all that machines reach. What a runner would claim is on the disk of its machine, where its stand-in is.
 */
export class WireStore extends MemoryStore {
  #server: Server | undefined
  #root = ''

  /** @param nameOf what the machine on which an attempt has begun claims with, which is its send unless `claimWith` says otherwise */
  constructor(
    private readonly nameOf: (attemptId: string) => string | undefined,
    private readonly claimWith: (name: string) => Claim = (send) => ({ machine: 'unnamed-1', send }),
  ) {
    super(Date.now)
  }

  async listen(): Promise<void> {
    this.#server = createServer((request, response) => {
      void this.#answer(request, response)
    })
    await new Promise<void>((resolve) => this.#server!.listen(0, '127.0.0.1', resolve))
    this.#root = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = 'GET' } = request
    if (method === 'PUT') {
      const key = decodeURIComponent(request.url!.slice(1).split('?')[0]!)
      await this.put(key, Buffer.concat(await request.toArray()))
      response.end()
      return
    }
    const asked = method === 'DELETE' ? 'DELETE' : 'GET'
    const body = await this.ask(asked, `${this.#root}${request.url}`)
    response.writeHead(body === undefined && asked === 'GET' ? 404 : 200)
    response.end(body)
  }

  async close(): Promise<void> {
    this.#server?.closeAllConnections()
    await new Promise((resolve) => this.#server?.close(resolve))
  }

  override async signUrls(key: string, forMs: number): Promise<SignedUrls> {
    const url = `${this.#root}/${encodeURIComponent(key)}?until=${Date.now() + forMs}`
    return { read: url, write: url, delete: url }
  }

  override async get(key: string): Promise<Buffer | undefined> {
    return CLAIM.test(key) ? this.#claimAt(key) : super.get(key)
  }

  override async head(key: string): ReturnType<MemoryStore['head']> {
    const claim = this.#claimAt(key)
    return claim === undefined ? super.head(key) : { key, sizeBytes: claim.length, modifiedAtMs: Date.now() }
  }

  #claimAt(key: string): Buffer | undefined {
    const [, jobId, attempt] = CLAIM.exec(key) ?? []
    const name = jobId === undefined ? undefined : this.nameOf(`${jobId}-${attempt}`)
    return name === undefined ? undefined : Buffer.from(JSON.stringify(this.claimWith(name)))
  }
}
