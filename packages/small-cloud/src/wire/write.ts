/** Writes answers and errors in the format of each service. */
import type { ApiError } from './errors'
import type { Service } from './service'
import { ec2Answer, ec2Fault, queryAnswer, queryFault, type Xml } from './xml'

export interface Answer {
  status: number
  headers: Record<string, string>
  body: string
}

export interface Words {
  service: Pick<Service, 'style' | 'namespace'>
  action: string
  requestId: string
}

export function writeAnswer(words: Words, result: unknown): Answer {
  const { service, action, requestId } = words
  if (service.style === 'json') return jsonAnswer(200, requestId, result ?? {})
  const body =
    service.style === 'ec2'
      ? ec2Answer(action, requestId, (result ?? {}) as Xml)
      : queryAnswer({ namespace: service.namespace, action, requestId }, (result ?? {}) as Xml)
  return xmlAnswer(200, requestId, body)
}

export function writeFault({ service, requestId }: Words, error: ApiError): Answer {
  const { code, message, status } = error
  if (service.style === 'json') {
    const answer = jsonAnswer(status, requestId, { __type: code, message })
    return { ...answer, headers: { ...answer.headers, 'x-amzn-errortype': code } }
  }
  const body =
    service.style === 'ec2'
      ? ec2Fault(code, message, requestId)
      : queryFault(service.namespace, { code, message, status }, requestId)
  return xmlAnswer(status, requestId, body)
}

function xmlAnswer(status: number, requestId: string, body: string): Answer {
  return {
    status,
    headers: { 'content-type': 'text/xml;charset=UTF-8', 'x-amzn-requestid': requestId },
    body,
  }
}

function jsonAnswer(status: number, requestId: string, value: unknown): Answer {
  return {
    status,
    headers: { 'content-type': 'application/x-amz-json-1.1', 'x-amzn-requestid': requestId },
    body: JSON.stringify(value),
  }
}
