/** The description of a provider's HTTP API: one table of routes with their schemas, and the API's manners. */
import type { IncomingHttpHeaders } from 'node:http'
import { z } from 'zod'
import type { ApiError } from '../wire/errors'

/** A request as its first line and its headers show it. */
export interface HttpRequest {
  method: string
  /** URL without the prefix of the service. */
  url: string
  headers: IncomingHttpHeaders
}

/** An answer; a text is sent unchanged, any other body as JSON. */
export class HttpAnswer {
  constructor(
    readonly status: number,
    readonly body: unknown,
    readonly headers: Readonly<Record<string, string>> = {},
  ) {}
}

/** The context of a call. */
interface HttpCall {
  action: string
  /** The caller, as `identify` names it. */
  caller: string
  requestId: string
}

/** The parts of a request, as its schemas read them. */
interface HttpInput<P, Q, B> {
  params: P
  query: Q
  body: B
}

export interface HttpRoute {
  /** Name in the journal and in fault rules. */
  action: string
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Path such as `/instances/:id`. */
  path: string
  params: z.ZodType
  query: z.ZodType
  body: z.ZodType
  /** Status of a result that is not an `HttpAnswer`. */
  status: number
  isMutating: boolean
  run: (input: HttpInput<never, never, never>, call: HttpCall) => unknown
}

interface Definition<P extends z.ZodType, Q extends z.ZodType, B extends z.ZodType> {
  params?: P
  query?: Q
  body?: B
  status?: number
  isMutating?: boolean
  run: (input: HttpInput<z.output<P>, z.output<Q>, z.output<B>>, call: HttpCall) => unknown
}

type Nothing = z.ZodType<Record<string, never>>

/** Accepts no fields. */
const NOTHING: Nothing = z.strictObject({})

/**
 * Defines a route; `where` is the method and the path: `GET /instances/:id`. A missing schema accepts no fields; use strict objects, so that
 * unknown fields are refused.
 */
export function route<
  P extends z.ZodType = Nothing,
  Q extends z.ZodType = Nothing,
  B extends z.ZodType = Nothing,
>(
  action: string,
  where: `${HttpRoute['method']} /${string}`,
  { params, query, body, status = 200, isMutating = false, run }: Definition<P, Q, B>,
): HttpRoute {
  const [method, path] = where.split(' ') as [HttpRoute['method'], string]
  return {
    action,
    method,
    path,
    status,
    isMutating,
    run,
    params: params ?? NOTHING,
    query: query ?? NOTHING,
    body: body ?? NOTHING,
  }
}

/** A field that a request has wrongly, or must not have. */
export interface WrongField {
  /** Field such as `file_system_names.0`; empty for the whole body. */
  field: string
  words: string
}

export interface HttpService {
  /** Name in the journal, in fault rules and, after `_`, in paths: `http://127.0.0.1:PORT/_lambda/...`. */
  readonly name: string
  readonly routes: readonly HttpRoute[]
  /** Answers in place of the API, like a firewall in front of it. */
  screen?(request: HttpRequest): HttpAnswer | undefined
  /** Returns the caller's name for the journal. Throws `ApiError` for one that is not accepted. */
  identify(request: HttpRequest): string
  /** Takes the call from the caller's rate limits. Throws `ApiError` when it exceeds them. */
  pace?(call: Pick<HttpCall, 'action' | 'caller'>): void
  /** The error for parameters that the schemas refuse, or a body that is not JSON. */
  wrongFields(fields: WrongField[]): ApiError
  unknownRoute(request: HttpRequest): ApiError
  /** The error of a fault rule: of its code, or in place of a lost answer. */
  fault(
    which: { code: string; message?: string; status?: number } | 'internal-error' | 'unavailable',
  ): ApiError
  /** The answer for an error, in the format of the provider. */
  writeError(error: ApiError, requestId: string): HttpAnswer
}
