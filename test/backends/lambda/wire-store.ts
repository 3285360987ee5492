import { createServer, type Server } from 'node:http'
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
      const method = request.method === 'DELETE' ? 'DELETE' : 'GET'
      void this.ask(method, `${this.#root}${request.url}`).then((body) => {
        response.writeHead(body === undefined && method === 'GET' ? 404 : 200)
        response.end(body)
      })
    })
    await new Promise<void>((resolve) => this.#server!.listen(0, '127.0.0.1', resolve))
    this.#root = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  async close(): Promise<void> {
    this.#server?.closeAllConnections()
    await new Promise((resolve) => this.#server?.close(resolve))
  }

  override async signUrls(key: string, forMs: number): Promise<SignedUrls> {
    const url = `${this.#root}/${encodeURIComponent(key)}?until=${Date.now() + forMs}`
    return { read: url, delete: url }
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
