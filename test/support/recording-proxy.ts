/** A server before another that writes down what passes, for those who judge it. */
import { once } from 'node:events'
import { createServer, request, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface RecordedCall {
  service: string
  action: string
  request: string
  status: number
  answer: string
}

export interface RecordingProxy {
  endpoint: string
  /** Calls of AWS's services but S3, in the order of their answers. */
  calls: RecordedCall[]
  stop(): Promise<void>
}

export async function startRecordingProxy(endpoint: string): Promise<RecordingProxy> {
  const target = new URL(endpoint)
  const calls: RecordedCall[] = []
  const server = createServer((incoming, outgoing) => {
    void bodyOf(incoming).then((body) => {
      // The host stays as it was signed.
      const { method, url, headers } = incoming
      const words = { host: target.hostname, port: target.port, method, path: url, headers }
      const forwarded = request(words, (answer) => {
        void bodyOf(answer).then((answered) => {
          const call = callOf(incoming, body)
          if (call !== undefined)
            calls.push({ ...call, status: answer.statusCode ?? 0, answer: answered.toString() })
          outgoing.writeHead(answer.statusCode ?? 502, answer.headers).end(answered)
        })
      })
      forwarded.on('error', () => outgoing.destroy())
      forwarded.end(body)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls,
    async stop() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

async function bodyOf(message: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of message) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}

/** The service that a request is signed for, and its action. */
function callOf(
  { headers }: IncomingMessage,
  body: Buffer,
): Omit<RecordedCall, 'status' | 'answer'> | undefined {
  const service = /Credential=[^/]+\/\d+\/[^/]+\/([^/]+)\//.exec(headers.authorization ?? '')?.[1]
  if (service === undefined || service === 's3') return undefined
  const text = body.toString()
  const target = headers['x-amz-target']
  const action =
    typeof target === 'string' ? target.split('.').at(-1) : new URLSearchParams(text).get('Action')
  return { service, action: action ?? '', request: text }
}
