import { withoutEnd } from '../core/trim'
import { request as send, type Dispatcher } from 'undici'
import { trustRemedyOf, UNTRUSTED } from '../network/config'
import { dispatcherTo } from '../network/outside'
import type { z } from 'zod'
import { MINUTE_MS, SECOND_MS } from '../core/time/time'
import { limitedTo } from './calls'

/** How far a request without a usable answer got. */
type Reach =
  /** No connection was made, so the provider certainly did nothing. */
  | 'unsent'
  /** It may have arrived: no answer, half an answer, or one that is not what was asked for. */
  | 'unanswered'
  /** The provider, or something in front of it, refused it. */
  | 'answered'

interface HttpFacts {
  reach: Reach
  status?: number
  /** JSON of the answer; undefined for other content. */
  body?: unknown
  /** The beginning of an answer that is not JSON, such as the page of a firewall. */
  page?: string
  /** Value of `Retry-After`, at most five minutes. */
  retryAfterMs?: number
}

/** A request without a usable answer; messages contain neither headers nor the request's body. */
export class HttpError extends Error {
  readonly facts: HttpFacts

  constructor(message: string, facts: HttpFacts, options?: { cause?: unknown }) {
    super(message, options)
    this.name = 'HttpError'
    this.facts = facts
  }
}

export interface HttpCall<T> {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** Below the base URL, with `/` in front. */
  path: string
  /** Sent as JSON. */
  body?: unknown
  /** Checks the JSON of a success; let it keep unknown fields. */
  answer: z.ZodType<T>
  /** Time limit from the request to the end of its answer. */
  timeoutMs: number
}

export interface HttpClient {
  /** Sends one request, never repeated and without redirects. Throws an `HttpError`, also when the signal aborts. */
  call<T>(call: HttpCall<T>, signal: AbortSignal): Promise<T>
  close(): Promise<void>
}

export interface HttpClientOptions {
  /** Name of the provider, for messages. */
  name: string
  baseUrl: string
  /** Firewalls refuse the default names of libraries. */
  userAgent: string
  /** Credentials, asked for with each request. */
  headers: () => Record<string, string>
}

const KEEP_ALIVE_MS = 30_000
const CONNECT_MS = 10_000
/** Size limit of an answer; no provider sends a longer one. */
const ANSWER_BYTES_MAX = 16 * 1024 * 1024
const PAGE_CHARS_MAX = 500

export function createHttpClient({ name, baseUrl, userAgent, headers }: HttpClientOptions): HttpClient {
  const agent = dispatcherTo({
    keepAliveTimeout: KEEP_ALIVE_MS,
    connect: { timeout: CONNECT_MS },
    // The signal of each call has the limit.
    headersTimeout: 0,
    bodyTimeout: 0,
    maxResponseSize: ANSWER_BYTES_MAX,
  })
  const root = withoutEnd(baseUrl, '/')
  return {
    call: async ({ method, path, body, answer, timeoutMs }, signal) => {
      const options = {
        method,
        dispatcher: agent,
        signal: limitedTo(timeoutMs, signal),
        headers: {
          accept: 'application/json',
          'user-agent': userAgent,
          'content-type': body === undefined ? undefined : 'application/json',
          ...headers(),
        },
        body: body === undefined ? undefined : JSON.stringify(body),
      }
      const response = await asked(name, timeoutMs, () => send(`${root}${path}`, options))
      const text = await asked(name, timeoutMs, () => response.body.text())
      const value = readJson(text)
      if (response.statusCode < 200 || response.statusCode > 299)
        throw refused(name, response, { text, value })
      const read = answer.safeParse(value)
      if (read.success) return read.data
      const [issue] = read.error.issues
      const words = issue?.message.replace(/received undefined$/, 'and it is missing')
      const where = issue === undefined ? '' : ` at ${issue.path.join('.') || 'its root'}: ${words}`
      throw new HttpError(
        value === undefined
          ? `${name} answered with something other than JSON`
          : `${name} answered ${method} ${path} in an unknown form${where}`,
        { reach: 'unanswered', status: response.statusCode, ...(value === undefined && pageOf(text)) },
      )
    },
    close: () => agent.close(),
  }
}

/** Errors before a byte of the request has left. */
const BEFORE_SENDING = [
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
  'CERT_HAS_EXPIRED',
  ...UNTRUSTED,
  'ERR_TLS_CERT_ALTNAME_INVALID',
]

async function asked<T>(name: string, timeoutMs: number, ask: () => Promise<T>): Promise<T> {
  try {
    return await ask()
  } catch (error) {
    const { code, name: kind, message, errors = [] } = error as Trouble
    const codes = [code, ...errors.map((each) => each.code)].filter((each) => each !== undefined)
    const isUnsent = codes.length > 0 && codes.every((each) => BEFORE_SENDING.includes(each))
    const words =
      kind === 'TimeoutError'
        ? `did not answer within ${Math.round(timeoutMs / 1_000)} s`
        : [`did not answer: ${codes[0] ?? message}`, trustRemedyOf(codes[0])].filter(Boolean).join('. ')
    throw new HttpError(`${name} ${words}`, { reach: isUnsent ? 'unsent' : 'unanswered' }, { cause: error })
  }
}

/** Form of Node's and undici's errors; several addresses of one name fail together. */
interface Trouble {
  code?: string
  name?: string
  message?: string
  errors?: { code?: string }[]
}

function refused(
  name: string,
  { statusCode: status, headers }: Pick<Dispatcher.ResponseData, 'statusCode' | 'headers'>,
  { text, value }: { text: string; value: unknown },
): HttpError {
  const retryAfterMs = retryAfterOf(headers['retry-after'])
  const isRedirect = status >= 300 && status < 400
  return new HttpError(`${name} answered ${status}${isRedirect ? ', a redirect that is not followed' : ''}`, {
    reach: 'answered',
    status,
    body: value,
    ...(value === undefined && pageOf(text)),
    retryAfterMs,
  })
}

/**
 * Longest wait that a provider can request. While we wait, no machine is launched or observed, but all are billed; a request that comes too
 * early only costs another refusal.
 */
const RETRY_AFTER_MS_MAX = 5 * MINUTE_MS

/** Parses `Retry-After` in seconds; the other form, a date, is not used for short waits. */
function retryAfterOf(header: string | string[] | undefined): number | undefined {
  const seconds = Number(Array.isArray(header) ? header[0] : (header ?? NaN))
  return Number.isFinite(seconds) && seconds >= 0
    ? Math.min(seconds * SECOND_MS, RETRY_AFTER_MS_MAX)
    : undefined
}

function pageOf(text: string): { page: string } {
  const words = withoutBlocks(withoutBlocks(text, 'script'), 'style').replace(/<[^<>]*>/g, ' ')
  return { page: words.replace(/\s+/g, ' ').trim().slice(0, PAGE_CHARS_MAX) }
}

/** A page without its elements of one name: scripts or styles. */
function withoutBlocks(text: string, name: string): string {
  const lower = text.toLowerCase()
  let kept = ''
  let at = 0
  for (;;) {
    const start = lower.indexOf(`<${name}`, at)
    const end = start === -1 ? -1 : lower.indexOf(`</${name}>`, start)
    if (end === -1) return kept + text.slice(at)
    kept += `${text.slice(at, start)} `
    at = end + name.length + 3
  }
}

/** Parses JSON; undefined for another text. */
function readJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
