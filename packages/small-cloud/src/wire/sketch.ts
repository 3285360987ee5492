/** Properties of a call that are known before it is handled. */
import type { IncomingHttpHeaders } from 'node:http'
import type { JournalEntry } from '../journal'
import { ApiError, IdentityProblem } from './errors'
import { readForm } from './query'
import type { Service, ServiceName } from './service'
import { readSignature, type Signature } from './sigv4'

export interface Incoming {
  method: string
  url: string
  headers: IncomingHttpHeaders
  body: Buffer
}

export interface Sketch {
  service: Service
  actionName: string
  /** The raw parameters; an error when they are unreadable. */
  parameters: unknown
  signature: Signature | undefined
}

/** Determines the service and the action; the service of the signature decides. */
export function sketchOf(services: ReadonlyMap<ServiceName, Service>, incoming: Incoming): Sketch {
  const { headers, body } = incoming
  const signature = signatureOf(incoming)
  const [prefix, targeted] = single(headers['x-amz-target'])?.split('.') ?? []
  const service =
    services.get(signature?.service as ServiceName) ??
    [...services.values()].find(({ style, namespace }) => style === 'json' && namespace === prefix) ??
    services.get('ec2')!
  if (service.style === 'json')
    return { service, actionName: targeted ?? '', parameters: readJson(body), signature }
  const form = incoming.method === 'GET' ? (incoming.url.split('?')[1] ?? '') : body.toString('utf8')
  try {
    const { action = '', tree } = readForm(form)
    return { service, actionName: action, parameters: tree, signature }
  } catch (error) {
    return { service, actionName: '', parameters: error, signature }
  }
}

export type JournalWords = Omit<JournalEntry, 'number' | 'atMs' | 'requestId' | 'outcome' | 'isAnswerLost'>

/** The journal's fields of a call. */
export function journalWords(
  { service, actionName, parameters, signature }: Sketch,
  { headers }: Incoming,
): JournalWords {
  const sending = /attempt=(\d+)/.exec(single(headers['amz-sdk-request']) ?? '')?.[1]
  const invocation = single(headers['amz-sdk-invocation-id'])
  const token = (parameters as { ClientToken?: unknown } | undefined)?.ClientToken
  return {
    service: service.name,
    action: actionName,
    region: signature?.region ?? '',
    isMutating: false,
    isDryRun: false,
    parameters: parameters instanceof ApiError ? undefined : parameters,
    ...(typeof token === 'string' ? { clientToken: token } : {}),
    ...(sending === undefined ? {} : { sending: Number(sending) }),
    ...(invocation === undefined ? {} : { invocation }),
  }
}

function signatureOf(incoming: Incoming): Signature | undefined {
  try {
    return readSignature({ ...incoming, payloadHash: '' })
  } catch (error) {
    if (error instanceof IdentityProblem) return undefined
    throw error
  }
}

function readJson(body: Buffer): unknown {
  if (body.length === 0) return {}
  try {
    return JSON.parse(body.toString('utf8'))
  } catch {
    return new ApiError('SerializationException', 'The body is not JSON')
  }
}

function single(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value
}
