/** Error answers of the object store. */
import type { ServerResponse } from 'node:http'
import { IdentityProblem, type IdentityFault } from '../wire/errors'

export class StoreProblem extends Error {
  constructor(
    readonly code: string,
    readonly status: number,
    message: string,
  ) {
    super(message)
    this.name = 'StoreProblem'
  }

  /** Further fields of the document, and headers. */
  readonly more: { fields?: Record<string, string>; headers?: Record<string, string> } = {}

  with(more: StoreProblem['more']): this {
    Object.assign(this.more, more)
    return this
  }
}

const IDENTITY: Readonly<Record<IdentityFault, readonly [code: string, status: number, message: string]>> = {
  missing: ['AccessDenied', 403, 'Access Denied'],
  incomplete: ['AuthorizationHeaderMalformed', 400, 'The authorization header is malformed.'],
  'unknown-key': ['InvalidAccessKeyId', 403, 'No user has this access key id.'],
  'wrong-token': ['InvalidToken', 400, 'The provided token is malformed or otherwise invalid.'],
  'wrong-signature': [
    'SignatureDoesNotMatch',
    403,
    'The request was signed with another key, or changed afterwards.',
  ],
  'clock-skew': ['RequestTimeTooSkewed', 403, 'The clock of the request is too far from that of the store.'],
  'expired-session': ['ExpiredToken', 400, 'The provided token has expired.'],
}

export function problemOf(error: unknown): StoreProblem {
  if (error instanceof StoreProblem) return error
  if (error instanceof IdentityProblem) return new StoreProblem(...IDENTITY[error.fault])
  return new StoreProblem('InternalError', 500, error instanceof Error ? error.message : String(error))
}

export function answerProblem(
  response: ServerResponse,
  { code, status, message, more }: StoreProblem,
  { isHead, requestId }: { isHead: boolean; requestId: string },
): void {
  const fields = { Code: code, Message: message, ...more.fields, RequestId: requestId }
  const inner = Object.entries(fields)
    .map(([name, value]) => `<${name}>${escaped(value)}</${name}>`)
    .join('')
  const body = isHead ? '' : `<?xml version="1.0" encoding="UTF-8"?>\n<Error>${inner}</Error>`
  response.writeHead(status, {
    ...more.headers,
    'content-type': 'application/xml',
    'x-amz-request-id': requestId,
    ...(isHead ? {} : { 'content-length': Buffer.byteLength(body) }),
  })
  response.end(body)
}

function escaped(text: string): string {
  return text.replace(/[<>&"']/g, (c) => `&#${c.charCodeAt(0)};`)
}
