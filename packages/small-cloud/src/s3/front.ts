/**
 * The object store's front. A real S3 server does the work; the front checks keys and permissions of this cloud and the region of buckets,
 * and injects faults.
 */
import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Principal } from '../identity/identities'
import type { KeyAction } from '../identity/kms'
import type { AuthorizationRequest } from '../identity/policy'
import type { StoreFront, StoreFrontOptions } from '../store-front'
import { IdentityProblem } from '../wire/errors'
import { setDate } from '../wire/server'
import { checkSignature, readSignature, sha256, type Signature } from '../wire/sigv4'
import { DOCUMENT_BYTES_MAX, drained, LIST_BYTES_MAX, readDocument } from './bodies'
import { lose, tell, type UpstreamAnswer } from './answers'
import { Buckets } from './buckets'
import { readCreateBucket, readDeletion, readParts } from './documents'
import {
  hasCondition,
  headersOf,
  listingWish,
  operationOf,
  targetOf,
  wishesOf,
  withoutConditions,
  type ObjectName,
  type Operation,
} from './operation'
import { paceConnections } from './pace'
import { answerProblem, problemOf, StoreProblem } from './problems'
import { Upstream, type UpstreamOptions } from './upstream'

export interface FrontOptions extends StoreFrontOptions {
  upstream: UpstreamOptions
  /** Stores the properties that the server behind cannot; without a file they end with the process. */
  bucketsFile?: string | undefined
}

/** How the content of a request may be signed: as a whole, or not. */
const PAYLOAD_HASH = /^(?:[0-9a-f]{64}|UNSIGNED-PAYLOAD|STREAMING-UNSIGNED-PAYLOAD-TRAILER)$/
/** Retry limit for an error of the server behind when one of its folders vanishes: S3 has no folders, and would have succeeded. */
const STUMBLES_MAX = 20
const FOLDER_TROUBLE = ['ExistingObjectIsDirectory', 'ObjectParentIsFile']

/** Starts a front for a server that is already running; the caller ends that server. */
export async function startFront(options: FrontOptions): Promise<Omit<StoreFront, 'ended'>> {
  const front = new Front(options)
  await front.listen(options.port)
  return front
}

class Front implements Omit<StoreFront, 'ended'> {
  private readonly server: Server
  private readonly upstream: Upstream
  private readonly buckets: Buckets

  constructor(private readonly options: FrontOptions) {
    this.upstream = new Upstream(options.upstream)
    this.buckets = new Buckets(options.bucketsFile, options.region)
    this.server = createServer((request, response) => this.handle(request, response))
    if (options.limitsOf !== undefined) paceConnections(this.server, options.limitsOf)
  }

  get endpoint(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`
  }

  async listen(port: number): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.server.once('error', reject)
      this.server.listen(port, '127.0.0.1', resolve)
    })
  }

  handle(request: IncomingMessage, response: ServerResponse): void {
    const requestId = randomUUID()
    setDate(response, this.options.aheadMs)
    this.serve(request, response).catch((error: unknown) => {
      // An unread rest of the body would be parsed as the next request.
      request.resume()
      if (response.headersSent) return void response.destroy()
      answerProblem(response, problemOf(error), { isHead: request.method === 'HEAD', requestId })
    })
  }

  async stop(): Promise<void> {
    const closed = new Promise((resolve) => this.server.close(resolve))
    this.server.closeAllConnections()
    await closed
    this.upstream.close()
  }

  private async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const asked = operationOf(request)
    const { signature, principal } = this.identify(request)
    for (const wish of wishesOf(asked, this.options.account)) this.checkAllowed(principal, wish)
    this.checkRegion(signature, asked)
    const occasion = {
      service: 's3',
      action: asked.name,
      region: signature.region,
      caller: principal.arn,
    }
    const slow = this.options.faults.first('slow', occasion)
    if (slow?.stage === 'before') await sleep(slow.by)
    const wrong = this.options.faults.first('error', occasion)
    if (wrong !== undefined)
      throw new StoreProblem(wrong.code, wrong.status ?? 503, wrong.message ?? 'As the world has it.')
    const lost = this.options.faults.first('lost-answer', occasion)
    const isIgnoring =
      hasCondition(asked) && this.options.faults.first('ignored-condition', occasion) !== undefined
    const operation = isIgnoring ? withoutConditions(asked) : asked
    const { kind, bucket, name } = operation
    if (name === 'CreateBucket')
      return tell(await this.createBucket(request, operation), { request, response, lost })
    if (kind.place === 'bucket' && kind.flag !== undefined && this.buckets.isSetting(kind.flag))
      return tell(await this.configure(request, { bucket, setting: kind.flag }), { request, response, lost })
    const { source } = operation
    const refused =
      (source && this.keyRefusal(principal, source, 'kms:Decrypt')) ??
      (operation.isMutating ? this.keyRefusal(principal, operation, kind.usesKey) : undefined)
    if (refused !== undefined) throw refused
    const answer = await this.pass(operation, request)
    if (slow?.stage === 'after') await sleep(slow.by)
    if (lost !== undefined) {
      await drained(answer)
      return lose(request, lost)
    }
    await this.giveBack(answer, response, { operation, principal, isHead: request.method === 'HEAD' })
  }

  private identify(request: IncomingMessage): { signature: Signature; principal: Principal } {
    const { method = 'GET', url = '/', headers } = request
    const payloadHash = String(headers['x-amz-content-sha256'] ?? 'UNSIGNED-PAYLOAD')
    if (payloadHash.startsWith('STREAMING-AWS4-HMAC'))
      throw new StoreProblem(
        'NotImplemented',
        501,
        'This small cloud takes no bodies whose pieces are signed one by one; sign the whole, or leave the body unsigned.',
      )
    if (!PAYLOAD_HASH.test(payloadHash))
      throw new StoreProblem('InvalidArgument', 400, 'x-amz-content-sha256 is not valid.')
    const signed = { method, url, headers, payloadHash }
    const signature = readSignature(signed)
    if (signature === undefined) throw new IdentityProblem('missing')
    const { identities } = this.options
    const { secretAccessKey, principal } = identities.secretOf(signature.accessKeyId, signature.sessionToken)
    try {
      checkSignature(signed, signature, { secretAccessKey, nowMs: Date.now() + this.options.aheadMs })
    } catch (error) {
      const isOver = error instanceof IdentityProblem && error.fault === 'clock-skew'
      if (isOver && signature.validForMs !== undefined)
        throw new StoreProblem('AccessDenied', 403, 'Request has expired')
      throw error
    }
    return { signature, principal }
  }

  private checkAllowed(principal: Principal, wish: AuthorizationRequest): void {
    if (this.options.identities.judge(principal, wish) === 'allowed') return
    throw new StoreProblem(
      'AccessDenied',
      403,
      `User: ${principal.arn} is not authorized to perform: ${wish.action} on resource: "${wish.resource}"`,
    )
  }

  private keyRefusal(
    principal: Principal,
    { bucket, key: name }: ObjectName,
    action: KeyAction | undefined,
  ): StoreProblem | undefined {
    const key = this.buckets.keyOf(bucket)
    if (key === undefined || action === undefined) return undefined
    const words = this.options.kms.refusal(principal, action, {
      key,
      of: this.buckets.contextOf(bucket, name),
    })
    return words === undefined ? undefined : new StoreProblem('AccessDenied', 403, words)
  }

  /** Refuses another region, because a bucket answers only in its own. */
  private checkRegion(signature: Signature, { bucket, name }: Operation): void {
    if (bucket === '' || name === 'CreateBucket' || name === 'GetBucketLocation') return
    const region = this.buckets.regionOf(bucket)
    if (signature.region === region) return
    const Endpoint = `${bucket}.s3.${region}.amazonaws.com`
    const words = `The bucket ${bucket} is in ${region}, and the request is for ${signature.region}.`
    const headers = { 'x-amz-bucket-region': region }
    throw new StoreProblem('PermanentRedirect', 301, words).with({
      headers,
      fields: { Endpoint, Bucket: bucket },
    })
  }

  /** Sends an operation on. A small body can be sent again when the server behind fails. */
  private async pass(operation: Operation, request: IncomingMessage): Promise<IncomingMessage> {
    const body = await bodyOf(operation, request)
    const isRepeatable = operation.name === 'PutObject' && Buffer.isBuffer(body)
    for (let tries = 1; ; tries++) {
      const answer = await this.send(operation, { body, payloadHash: payloadHashOf(request) })
      if (!isRepeatable || answer.statusCode !== 409 || tries === STUMBLES_MAX) return answer
      await drained(answer)
    }
  }

  private send(
    operation: Operation,
    content: { body: IncomingMessage | Buffer | undefined; payloadHash?: string | undefined },
  ): Promise<IncomingMessage> {
    const headers = headersOf(operation)
    if (operation.kind.needsChecksum === true && Buffer.isBuffer(content.body))
      headers['x-amz-checksum-sha256'] = Buffer.from(sha256(content.body), 'hex').toString('base64')
    const onward = { method: operation.method, target: targetOf(operation), headers }
    return this.upstream.send({ ...onward, ...content }).catch((error: Error) => {
      throw new StoreProblem(
        'InternalError',
        500,
        `The server behind the front does not answer: ${error.message}`,
      )
    })
  }

  private async giveBack(
    answer: IncomingMessage,
    response: ServerResponse,
    { operation, principal, isHead }: { operation: Operation; principal: Principal; isHead: boolean },
  ): Promise<void> {
    const { statusCode = 502 } = answer
    const headers = { ...answer.headers }
    const { bucket, kind } = operation
    // An object that does not exist needs no key.
    const isRead = statusCode < 300 && !operation.isMutating
    const refused = isRead ? this.keyRefusal(principal, operation, kind.usesKey) : undefined
    if (refused !== undefined) {
      answer.destroy()
      throw refused
    }
    const key = statusCode < 300 && kind.place === 'object' ? this.buckets.keyOf(bucket) : undefined
    if (key !== undefined) {
      headers['x-amz-server-side-encryption'] = 'aws:kms'
      headers['x-amz-server-side-encryption-aws-kms-key-id'] = key
    }
    for (const name of ['connection', 'keep-alive', 'transfer-encoding', 'date']) delete headers[name]
    if (operation.bucket !== '') headers['x-amz-bucket-region'] = this.buckets.regionOf(operation.bucket)
    if (operation.name === 'DeleteBucket' && statusCode < 300) this.buckets.deleted(operation.bucket)
    if (statusCode === 404 && operation.key !== '' && !operation.isMutating) {
      const verdict = this.options.identities.judge(principal, listingWish(operation))
      if (verdict !== 'allowed') {
        await drained(answer)
        throw new StoreProblem('AccessDenied', 403, 'Access Denied')
      }
    }
    if (statusCode === 409 && !isHead) {
      const text = (await drained(answer)).toString()
      if (FOLDER_TROUBLE.some((code) => text.includes(`<Code>${code}<`)))
        throw new StoreProblem('SlowDown', 503, 'Reduce your request rate.')
      response.writeHead(statusCode, { ...headers, 'content-length': Buffer.byteLength(text) })
      return void response.end(text)
    }
    response.writeHead(statusCode, headers)
    answer.on('error', () => response.destroy())
    answer.pipe(response)
  }

  private async createBucket(request: IncomingMessage, operation: Operation): Promise<UpstreamAnswer> {
    const { bucket } = operation
    const region = readCreateBucket((await readDocument(request)).toString())
    const answer = await this.send(operation, { body: Buffer.alloc(0) })
    const body = (await drained(answer)).toString()
    const { statusCode: status = 502 } = answer
    if (status < 300) this.buckets.created(bucket, region)
    return { status, headers: { 'content-type': 'application/xml', location: `/${bucket}` }, body }
  }

  private async configure(
    request: IncomingMessage,
    { bucket, setting }: { bucket: string; setting: string },
  ): Promise<UpstreamAnswer> {
    const document = (await readDocument(request)).toString()
    await this.checkExists(bucket)
    if (request.method === 'PUT') this.buckets.put(bucket, setting, document)
    else if (request.method === 'DELETE') this.buckets.remove(bucket, setting)
    const isGet = request.method === 'GET'
    const type = setting === 'policy' ? 'application/json' : 'application/xml'
    return {
      status: request.method === 'DELETE' ? 204 : 200,
      headers: isGet ? { 'content-type': type } : {},
      body: isGet ? this.buckets.get(bucket, setting) : '',
    }
  }

  private async checkExists(bucket: string): Promise<void> {
    const target = targetOf({ bucket, key: '', parameters: {} })
    const answer = await this.upstream.send({ method: 'HEAD', target, headers: {} })
    await drained(answer)
    if (answer.statusCode === 404)
      throw new StoreProblem('NoSuchBucket', 404, `The specified bucket does not exist: ${bucket}`)
  }
}

/** The body to send on: a small object or a document as a whole, written anew, or the stream of a large object. */
async function bodyOf(
  { kind, name }: Operation,
  request: IncomingMessage,
): Promise<IncomingMessage | Buffer | undefined> {
  if (kind.body === undefined) {
    request.resume()
    return undefined
  }
  if (name === 'DeleteObjects') return Buffer.from(readDeletion(await documentOf(request)).document)
  if (name === 'CompleteMultipartUpload') return Buffer.from(readParts(await documentOf(request)))
  const { headers } = request
  const isWhole = !String(headers['x-amz-content-sha256']).startsWith('STREAMING')
  const isSmall = isWhole && Number(headers['content-length']) <= DOCUMENT_BYTES_MAX
  return isSmall ? wholeOf(request) : request
}

async function documentOf(request: IncomingMessage): Promise<string> {
  return (await wholeOf(request, LIST_BYTES_MAX)).toString()
}

/** Reads a body, and compares it with the signed hash: the server behind gets another one. Throws `StoreProblem`. */
async function wholeOf(request: IncomingMessage, bytesMax?: number): Promise<Buffer> {
  const body = await readDocument(request, bytesMax)
  const signed = payloadHashOf(request) ?? ''
  if (!/^[0-9a-f]{64}$/.test(signed) || signed === sha256(body)) return body
  throw new StoreProblem(
    'XAmzContentSHA256Mismatch',
    400,
    'The x-amz-content-sha256 header does not match the content.',
  )
}

function payloadHashOf({ headers }: IncomingMessage): string | undefined {
  const [hash] = [headers['x-amz-content-sha256']].flat()
  return hash
}
