/** How clients of AWS's SDK reach their servers. */
import type { Readable } from 'node:stream'
import type { Dispatcher } from 'undici'
import { isDirect, ownEnvironment, silenceSdk } from './config'
import type * as Outside from './outside'

/** Limits of a request in milliseconds, and the number of connections. */
export interface RequestLimits {
  connectMs: number
  /** Until the answer is complete; missing for none. */
  answerMs?: number
  /** Without a byte; missing for none. */
  silenceMs?: number
  socketsMax?: number
}

interface Request {
  protocol: string
  hostname: string
  port?: number
  method: string
  path: string
  query?: Record<string, string | string[] | null | undefined>
  headers: Record<string, string>
  body?: unknown
}

/** The SDK's own handler where servers are reached directly, else one that takes the way of `network/outside.ts`. */
export function requestHandler(limits: RequestLimits): object {
  silenceSdk()
  if (!isDirect(ownEnvironment())) return new OutsideHandler(limits)
  // The SDK's limit of a request ends with the head of its answer, and the limit of silence with the body.
  const { connectMs, answerMs, silenceMs = answerMs, socketsMax } = limits
  const agent = socketsMax === undefined ? undefined : { keepAlive: true, maxSockets: socketsMax }
  return {
    connectionTimeout: connectMs,
    ...(answerMs !== undefined && { requestTimeout: answerMs, throwOnRequestTimeout: true }),
    ...(silenceMs !== undefined && { socketTimeout: silenceMs }),
    ...(agent && { httpAgent: agent, httpsAgent: agent }),
  }
}

/** Headers that undici sets itself. No signature covers them. */
const OWN_HEADERS = new Set(['expect', 'transfer-encoding', 'connection'])
const TIMEOUTS = new Set(['UND_ERR_CONNECT_TIMEOUT', 'UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT'])
const PROXY_REFUSAL = /^Proxy response \((\d+)\)/

class OutsideHandler {
  readonly metadata = { handlerProtocol: 'http/1.1' }
  readonly #limits: RequestLimits
  #dispatcher: Dispatcher | undefined

  constructor(limits: RequestLimits) {
    this.#limits = limits
  }

  async handle(
    request: Request,
    { abortSignal, requestTimeout }: { abortSignal?: unknown; requestTimeout?: number } = {},
  ): Promise<{ response: { statusCode: number; headers: Record<string, string>; body: Readable } }> {
    const { answerMs = 0, silenceMs = 0 } = this.#limits
    const limitMs = requestTimeout ?? answerMs
    const { protocol, hostname, port, method, path, headers, body } = request
    const signals = [
      ...(limitMs > 0 ? [AbortSignal.timeout(limitMs)] : []),
      ...(abortSignal instanceof AbortSignal ? [abortSignal] : []),
    ]
    try {
      this.#dispatcher ??= this.#connect()
      const answer = await this.#dispatcher.request({
        origin: `${protocol}//${hostname}${port === undefined ? '' : `:${port}`}`,
        path: path + queryOf(request),
        method: method,
        headers: Object.fromEntries(
          Object.entries(headers).filter(([name]) => !OWN_HEADERS.has(name.toLowerCase())),
        ),
        body: body as Dispatcher.RequestOptions['body'],
        signal: AbortSignal.any(signals),
        headersTimeout: silenceMs,
        bodyTimeout: silenceMs,
      })
      const given = Object.entries(answer.headers).map(([name, value]) => [name, [value].flat().join(', ')])
      return {
        response: {
          statusCode: answer.statusCode,
          headers: Object.fromEntries(given) as Record<string, string>,
          body: answer.body,
        },
      }
    } catch (error) {
      throw inWordsOfSdk(error, request)
    }
  }

  #connect(): Dispatcher {
    const { connectMs, socketsMax } = this.#limits
    const { dispatcherTo } = require('./outside') as typeof Outside
    return dispatcherTo({
      connect: { timeout: connectMs },
      ...(socketsMax !== undefined && { connections: socketsMax }),
    })
  }

  destroy(): void {
    void this.#dispatcher?.destroy()
  }

  updateHttpClientConfig(): void {
    // The limits of a client never change.
  }

  httpHandlerConfigs(): object {
    return {}
  }
}

function queryOf({ query = {} }: Request): string {
  const parts = Object.keys(query)
    .sort()
    .flatMap((name) => {
      const value = query[name]
      if (value === null || value === undefined) return [escaped(name)]
      return [value].flat().map((one) => `${escaped(name)}=${escaped(one)}`)
    })
  return parts.length === 0 ? '' : `?${parts.join('&')}`
}

/** Returns a text in the encoding that signatures of AWS use. */
function escaped(text: string): string {
  return encodeURIComponent(text).replaceAll(
    /[!'()*]/g,
    (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`,
  )
}

/** The SDK repeats a request by the names and codes of errors of Node. */
function inWordsOfSdk(error: unknown, { hostname, port }: Request): unknown {
  const { code, message, name } = error as { code?: string; message: string; name?: string }
  const refused = PROXY_REFUSAL.exec(message)
  if (refused !== null)
    return new Error(
      `the proxy refuses connections to ${hostname}${port === undefined ? '' : `:${port}`} (HTTP ${refused[1]})`,
      { cause: error },
    )
  if (name === 'TimeoutError' || (code !== undefined && TIMEOUTS.has(code)))
    return Object.assign(new Error(message, { cause: error }), { name: 'TimeoutError' })
  if (code === 'UND_ERR_SOCKET')
    return Object.assign(new Error(message, { cause: error }), { name: 'TimeoutError', code: 'ECONNRESET' })
  return error
}
