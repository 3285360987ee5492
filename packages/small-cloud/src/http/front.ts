/** Serves a provider's HTTP API below its own path of the cloud's address, with faults, a journal and lost answers. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { z } from 'zod'
import type { Clock } from '../clock'
import { complaintsOf, inWords } from '../issues'
import type { Journal, JournalEntry } from '../journal'
import { ApiError } from '../wire/errors'
import type { Faults, Occasion } from '../world/faults'
import { readTarget } from './target'
import { HttpAnswer, type HttpRequest, type HttpRoute, type HttpService, type WrongField } from './service'

export interface FrontParts {
  service: HttpService
  faults: Faults
  journal: Journal
  clock: Clock
  /** Returns the id of the next request. */
  requestId(): string
}

/** Larger than any request of the services implemented here. */
const BODY_BYTES_MAX = 8 * 1024 * 1024

type Entry = Omit<JournalEntry, 'number'>

/** Thrown by the schemas: the wrong fields of one part of a request. */
class WrongInput extends Error {
  constructor(readonly fields: WrongField[]) {
    super(fields.map(({ field, words }) => `${field}: ${words}`).join('; '))
  }
}

export class HttpFront {
  readonly prefix: string
  private readonly entries = new WeakMap<FastifyRequest, Entry>()
  private app: Promise<FastifyInstance> | undefined

  constructor(private readonly parts: FrontParts) {
    this.prefix = `/_${parts.service.name}`
  }

  /** Whether a request is for this service. */
  owns(url: string): boolean {
    return url === this.prefix || url.startsWith(`${this.prefix}/`) || url.startsWith(`${this.prefix}?`)
  }

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = (request.url ?? '').slice(this.prefix.length) || '/'
    // No service has a route without a name.
    request.url = readTarget(url) ?? '/'
    // The app is made for the first request, because most clouds are used for one provider.
    const app = await (this.app ??= this.create())
    app.routing(request, response)
  }

  async close(): Promise<void> {
    await (await this.app)?.close()
  }

  private async create(): Promise<FastifyInstance> {
    const { fastify } = await import('fastify')
    const { service } = this.parts
    const app = fastify({ bodyLimit: BODY_BYTES_MAX })
    app.setValidatorCompiler<z.ZodType>(({ schema }) => readerOf(schema))
    app.removeContentTypeParser(['application/json', 'text/plain'])
    app.addContentTypeParser('application/json', { parseAs: 'string' }, (_request, body, done) => {
      try {
        done(null, body === '' ? undefined : JSON.parse(String(body)))
      } catch {
        done(new WrongInput([{ field: '', words: 'the body is not JSON' }]))
      }
    })
    app.addHook('onRequest', async (request, reply) => this.begin(request, reply))
    app.setErrorHandler<FastifyError>((error, request, reply) => this.refuse(error, request, reply))
    app.setNotFoundHandler((request, reply) =>
      this.refuse(service.unknownRoute(requestOf(request)), request, reply),
    )
    for (const route of service.routes) this.add(app, route)
    await app.ready()
    return app
  }

  private add(app: FastifyInstance, route: HttpRoute): void {
    const { method, path, params, query, body } = route
    const hasBody = method !== 'GET' && method !== 'DELETE'
    const schema = { params, querystring: query }
    app.route({
      method,
      url: path,
      attachValidation: true,
      config: { route },
      // Fastify warns of a body that is undefined.
      schema: hasBody ? { ...schema, body } : schema,
      handler: (request, reply) => this.serve(route, request, reply),
    })
  }

  /** Checks the firewall, the caller and the caller's rate before the body is read. */
  private begin(request: FastifyRequest, reply: FastifyReply): unknown {
    const { service, clock } = this.parts
    const asked = requestOf(request)
    const { route } = request.routeOptions.config as { route?: HttpRoute }
    const entry: Entry = {
      atMs: clock.nowMs(),
      service: service.name,
      action: route?.action ?? `${asked.method} ${asked.url}`,
      region: '',
      isMutating: route?.isMutating ?? false,
      isDryRun: false,
      parameters: undefined,
      outcome: 'ok',
      isAnswerLost: false,
      requestId: this.parts.requestId(),
    }
    this.entries.set(request, entry)
    const screened = service.screen?.(asked)
    if (screened !== undefined) {
      this.note(entry, `screened ${screened.status}`)
      return send(reply, screened)
    }
    entry.caller = service.identify(asked)
    service.pace?.({ action: entry.action, caller: entry.caller })
    return undefined
  }

  private async serve(route: HttpRoute, request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
    const entry = this.entries.get(request)!
    entry.parameters = {
      ...(request.params as object),
      ...(request.query as object),
      ...(request.body as object),
    }
    const slow = this.parts.faults.strike('slow', occasionOf(entry))
    await this.wait(slow.filter(({ stage }) => stage === 'before'))
    this.strike(entry)
    if (request.validationError !== undefined) throw request.validationError
    const { params, query, body = {} } = request
    const call = { action: entry.action, caller: entry.caller!, requestId: entry.requestId }
    const result = await route.run({ params, query, body } as never, call)
    const lost = this.parts.faults.first('lost-answer', occasionOf(entry))
    entry.isAnswerLost = lost !== undefined
    this.note(entry, 'ok')
    await this.wait(slow.filter(({ stage }) => stage === 'after'))
    if (lost !== undefined) return this.lose(lost.instead, request, reply)
    return send(reply, result instanceof HttpAnswer ? result : new HttpAnswer(route.status, result ?? {}))
  }

  private async wait(slow: readonly { by: number }[]): Promise<void> {
    for (const { by } of slow) await new Promise<void>((resolve) => this.parts.clock.after(by, resolve))
  }

  private strike(entry: Entry): void {
    const fault = this.parts.faults.first('error', occasionOf(entry))
    if (fault === undefined) return
    const { code, message, status } = fault
    throw this.parts.service.fault({
      code,
      message,
      status,
    })
  }

  /** The call has had its effect. */
  private lose(
    instead: 'reset' | 'silence' | 'internal-error' | 'unavailable',
    request: FastifyRequest,
    reply: FastifyReply,
  ): unknown {
    const { service } = this.parts
    if (instead === 'internal-error' || instead === 'unavailable')
      return send(reply, service.writeError(service.fault(instead), this.entries.get(request)!.requestId))
    reply.hijack()
    if (instead === 'reset') request.raw.socket.destroy()
    return undefined
  }

  private refuse(error: unknown, request: FastifyRequest, reply: FastifyReply): unknown {
    const { service } = this.parts
    const entry = this.entries.get(request)!
    const fault = this.asApiError(error)
    this.note(entry, fault.code)
    return send(reply, service.writeError(fault, entry.requestId))
  }

  private asApiError(error: unknown): ApiError {
    const { service } = this.parts
    if (error instanceof ApiError) return error
    if (error instanceof WrongInput) return service.wrongFields(error.fields)
    const { statusCode, message, stack } = error as FastifyError
    if (statusCode !== undefined && statusCode < 500)
      return service.wrongFields([{ field: '', words: message }])
    return new ApiError('small-cloud-failed', `The small cloud has failed: ${stack ?? String(error)}`, 500)
  }

  private note(entry: Entry, outcome: string): void {
    this.parts.journal.add({ ...entry, outcome })
  }
}

/** Fastify's validator for a schema: a missing body counts as an empty one. */
function readerOf(schema: z.ZodType): (value: unknown) => { value?: unknown; error?: Error } {
  return (value) => {
    const read = schema.safeParse(value ?? {}, { error: inWords })
    if (read.success) return { value: read.data }
    const fields = complaintsOf(read.error).map(({ path, words }) => ({
      field: path.map(String).join('.'),
      words: words.slice(words.indexOf(': ') + 2),
    }))
    return { error: new WrongInput(fields) }
  }
}

function requestOf({ method, url, headers }: FastifyRequest): HttpRequest {
  return { method, url, headers }
}

function occasionOf({ service, action, caller, parameters }: Entry): Occasion {
  return { service, action, parameters, caller }
}

function send(reply: FastifyReply, { status, body, headers }: HttpAnswer): FastifyReply {
  const isText = typeof body === 'string'
  return reply
    .code(status)
    .headers({ 'content-type': isText ? 'text/plain' : 'application/json', ...headers })
    .send(isText ? body : JSON.stringify(body))
}
