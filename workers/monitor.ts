import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createSocketServer, type AddressInfo } from 'node:net'
import { Runtime, type PrometheusMetricsExporter } from '@temporalio/worker'
import { BUCKETS_SECONDS, HISTOGRAMS, Metrics } from '../activities/metrics'

const LOOPBACK = '127.0.0.1'
/** An answer of Temporal's SDK, or of the server about its jobs, that takes longer counts as none. */
const ANSWER_LIMIT_MS = 5_000

export interface MonitorAddress {
  host: string
  port: number
}

/**
 * Serves what monitors ask a worker process for: `/healthz` says that it lives, `/readyz` that all its workers poll, `/metrics` how it goes,
 * in the text format of Prometheus. It answers before the workers do, and while Temporal is away.
 */
export class Monitor {
  #metrics: Metrics | undefined
  /** Says whether all workers of the process poll. */
  isReady: () => boolean = () => false

  private constructor(
    private readonly server: Server,
    /** Where the SDK serves its own metrics; see `exporter`. */
    private readonly sdkAddress: string,
  ) {}

  /** Listens at once. Rejects with the system's error when the address cannot be used. */
  static async open({ host, port }: MonitorAddress): Promise<Monitor> {
    const server = createServer()
    const monitor = new Monitor(server, `${LOOPBACK}:${await freePort()}`)
    server.on('request', (request, response) => void monitor.answer(request, response))
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(port, host, resolve)
    })
    // Workers keep the process alive, and a process whose workers cannot start ends.
    server.unref()
    return monitor
  }

  /** Where it listens, as `host:port`. */
  get address(): string {
    const { address, port } = this.server.address() as AddressInfo
    return address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`
  }

  /** Option of the SDK's runtime. */
  get exporter(): PrometheusMetricsExporter {
    const histogramBucketOverrides = Object.fromEntries(HISTOGRAMS.map((name) => [name, BUCKETS_SECONDS]))
    return {
      prometheus: {
        bindAddress: this.sdkAddress,
        countersTotalSuffix: true,
        useSecondsForDurations: true,
        histogramBucketOverrides,
      },
    }
  }

  /** The metrics of the product; the runtime must have been installed. */
  get metrics(): Metrics {
    this.#metrics ??= new Metrics(Runtime.instance().metricMeter, Date.now, () => performance.now())
    return this.#metrics
  }

  async close(): Promise<void> {
    this.server.closeAllConnections()
    await new Promise((resolve) => this.server.close(resolve))
  }

  private async answer({ method, url }: IncomingMessage, response: ServerResponse): Promise<void> {
    const { status, text } = method === 'GET' ? await this.textAt(url ?? '') : NOT_FOUND
    response.writeHead(status, { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' }).end(text)
  }

  private async textAt(url: string): Promise<Answer> {
    switch (url) {
      case '/healthz':
        return { status: 200, text: 'alive\n' }
      case '/readyz':
        return this.isReady()
          ? { status: 200, text: 'all workers poll\n' }
          : { status: 503, text: 'not all workers poll\n' }
      case '/metrics':
        return this.metricsText()
      default:
        return NOT_FOUND
    }
  }

  private async metricsText(): Promise<Answer> {
    const signal = AbortSignal.timeout(ANSWER_LIMIT_MS)
    try {
      await Promise.race([this.#metrics?.read(), aborted(signal)])
      const answer = await fetch(`http://${this.sdkAddress}/metrics`, { signal })
      return { status: answer.status, text: await answer.text() }
    } catch (error) {
      return { status: 503, text: `no metrics: ${(error as Error).message}\n` }
    }
  }
}

interface Answer {
  status: number
  text: string
}

const NOT_FOUND: Answer = { status: 404, text: 'There are /healthz, /readyz and /metrics.\n' }

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
}

/** A port of loopback that is free now. */
async function freePort(): Promise<number> {
  const server = createSocketServer()
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, LOOPBACK, resolve)
  })
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}
