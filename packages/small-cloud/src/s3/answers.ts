/** Answers of the front itself, and lost answers. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { FaultOf } from '../world/fault-schema'
import { StoreProblem } from './problems'

export interface UpstreamAnswer {
  status: number
  headers: Record<string, string>
  body: string
}

type Lost = FaultOf<'lost-answer'>

export function tell(
  { status, headers, body }: UpstreamAnswer,
  way: { request: IncomingMessage; response: ServerResponse; lost?: Lost | undefined },
): void {
  if (way.lost !== undefined) return lose(way.request, way.lost)
  way.response.writeHead(status, { ...headers, 'content-length': Buffer.byteLength(body) })
  way.response.end(body)
}

export function lose(request: IncomingMessage, { instead }: Lost): void {
  if (instead === 'reset') return void request.socket.destroy()
  if (instead === 'silence') return
  throw instead === 'unavailable'
    ? new StoreProblem('ServiceUnavailable', 503, 'As the world has it.')
    : new StoreProblem('InternalError', 500, 'As the world has it.')
}
