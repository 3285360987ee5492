import type { IncomingMessage } from 'node:http'
import { StoreProblem } from './problems'

/** Size limit of requests with a small document, such as the one that creates a bucket. */
export const DOCUMENT_BYTES_MAX = 256 * 1024

/** Size limit of lists of parts and of objects: 10,000 parts take about 2 MB. */
export const LIST_BYTES_MAX = 4 * 1024 * 1024

/** Throws `StoreProblem` when the document is too long. */
export async function readDocument(request: IncomingMessage, bytesMax = DOCUMENT_BYTES_MAX): Promise<Buffer> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of request) {
    bytes += (chunk as Buffer).length
    if (bytes > bytesMax) throw new StoreProblem('MaxMessageLengthExceeded', 400, 'The document is too long.')
    chunks.push(chunk as Buffer)
  }
  return Buffer.concat(chunks)
}

export async function drained(answer: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of answer) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}
