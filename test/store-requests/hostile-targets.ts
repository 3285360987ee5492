/** Draws requests to any HTTP API: its own routes, with the encodings, dots, empty parts and headers that two readers could read in two ways. */
import { request } from 'node:http'
import type { Dice } from '../kit/dice'

export interface HostileRequest {
  method: string
  target: string
  headers: Record<string, string>
  body: string
}

const METHODS = ['GET', 'GET', 'POST', 'POST', 'PUT', 'DELETE', 'PATCH', 'HEAD', 'OPTIONS', 'TRACE'] as const
const PARTS = ['..', '.', '', '%2e%2e', '.%2E', '..%2f', '%2f', '%5c', '\\', '%252e%252e', '%00', '%zz', '%', ';', ';a', '%3f', '%23', '#', '*', '%c0%ae', '__proto__', 'x', '%0a', '%0d%0aHost:%20evil'] as const // prettier-ignore
const QUERIES = ['', '', '', '?', '?x=1', '?owner=a&owner=b', '?lines=1e9', '?%00', '?a[b]=1', '?__proto__=1', '?owner=%zz', '?prefix=crucible-', '?Action=DescribeInstances', '?#/control/secrets'] as const // prettier-ignore
const HEADERS = [
  ['content-type', 'application/json'],
  ['content-type', 'text/plain'],
  ['content-type', 'application/x-www-form-urlencoded'],
  ['x-original-url', '/control/secrets'],
  ['x-http-method-override', 'DELETE'],
  ['x-forwarded-host', 'evil.example'],
  ['x-forwarded-for', '127.0.0.1'],
  ['origin', 'https://evil.example'],
  ['x-amz-target', 'AmazonSSM.SendCommand'],
  ['authorization', 'Bearer '],
  ['authorization', 'AWS4-HMAC-SHA256 Credential=AKIA/20270101/us-east-1/ec2/aws4_request, SignedHeaders=host, Signature=0'], // prettier-ignore
  ['cookie', '__proto__=1'],
  ['expect', '100-continue'],
] as const
const BODIES = ['', '', '{}', '[]', 'null', '{"__proto__":{"a":1}}', '{"instance_ids":[]}', '{"name":"a","name":"b"}', `${'['.repeat(5_000)}`, 'Action=TerminateInstances&InstanceId.1=*', 'GET /control/secrets HTTP/1.1\r\nhost: localhost\r\n\r\n'] as const // prettier-ignore

/** @param routes paths of the API, as its clients write them */
export function drawHostile(dice: Dice, routes: readonly string[]): HostileRequest {
  const parts = dice.oneOf(routes).split('/')
  for (let times = dice.between(0, 2); times > 0; times--)
    parts.splice(dice.between(1, parts.length), dice.between(0, 1), dice.oneOf(PARTS))
  const path = dice.chance(0.4) ? parts.map((part) => encodedAt(dice, part)).join('/') : parts.join('/')
  const target = `${dice.chance(0.03) ? 'http://127.0.0.1' : ''}${dice.chance(0.05) ? '/' : ''}${path}${dice.oneOf(QUERIES)}`
  const headers: Record<string, string> = {}
  for (let times = dice.between(0, 2); times > 0; times--) {
    const [name, value] = dice.oneOf(HEADERS)
    headers[name] = value
  }
  return { method: dice.oneOf(METHODS), target, headers, body: dice.oneOf(BODIES) }
}

/** A part with one letter encoded, as another reader might compare it undecoded. */
function encodedAt(dice: Dice, part: string): string {
  if (part === '' || dice.chance(0.6)) return part
  const at = dice.between(0, part.length - 1)
  const code = part.charCodeAt(at).toString(16).padStart(2, '0')
  return `${part.slice(0, at)}%${dice.chance(0.5) ? code : code.toUpperCase()}${part.slice(at + 1)}`
}

/** Sends a request. Returns the status; 0 if there is no answer. */
export function sendHostile(
  port: number,
  { method, target, headers, body }: HostileRequest,
): Promise<number> {
  return new Promise((resolve) => {
    try {
      const length = body === '' ? {} : { 'content-length': String(Buffer.byteLength(body)) }
      const all = { host: `127.0.0.1:${port}`, ...headers, ...length }
      const asking = request({ host: '127.0.0.1', port, method, path: target, headers: all }, (answer) => {
        answer.resume()
        answer.on('close', () => resolve(answer.statusCode ?? 0))
      })
      asking.setTimeout(10_000, () => asking.destroy())
      asking.on('error', () => resolve(0))
      asking.end(body)
    } catch {
      // Node's client refuses to write such a path.
      resolve(0)
    }
  })
}
