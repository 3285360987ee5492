/** Handles one call, from the request's bytes to the answer. */
import type { Clock } from '../clock'
import type { Identities, Principal } from '../identity/identities'
import type { AuthorizationRequest } from '../identity/policy'
import type { Journal, JournalEntry } from '../journal'
import type { FaultOf } from '../world/fault-schema'
import type { Faults, Occasion } from '../world/faults'
import { ApiError, identityError, IdentityProblem } from './errors'
import { readInput } from './input'
import type { Call, Service, ServiceName } from './service'
import { checkSignature, readSignature, sha256, type Signature } from './sigv4'
import { journalWords, sketchOf, type Incoming, type Sketch } from './sketch'
import type { Throttle } from './throttle'
import { usualMessage, usualStatus } from './usual'
import { writeAnswer, writeFault, type Answer } from './write'

export interface DispatchParts {
  services: ReadonlyMap<ServiceName, Service>
  identities: Identities
  faults: Faults
  throttle: Throttle
  journal: Journal
  clock: Clock
  regions: ReadonlyMap<string, { isEnabled: boolean }>
  /** Returns the id of the next request. */
  requestId(): string
  /** The clock for checking signatures. */
  wallMs(): number
}

/** Changes to an answer on its way back. */
export interface Outcome {
  answer: Answer
  /** How the answer is lost. */
  lost?: FaultOf<'lost-answer'>['instead']
}

/** Facts about a call while it is handled. */
interface Handling {
  requestId: string
  entry: Omit<JournalEntry, 'number'>
  /** The delays of its answer. */
  slow: FaultOf<'slow'>[]
}

/** Services with one endpoint for all regions. */
const GLOBAL_SERVICES: readonly ServiceName[] = ['freetier', 'iam', 'pricing', 'sts']

export class Dispatch {
  constructor(private readonly parts: DispatchParts) {}

  async handle(incoming: Incoming): Promise<Outcome> {
    const { clock, journal } = this.parts
    const requestId = this.parts.requestId()
    const sketch = sketchOf(this.parts.services, incoming)
    const { service, actionName } = sketch
    const words = { requestId, action: actionName, service }
    const entry: Omit<JournalEntry, 'number'> = {
      ...journalWords(sketch, incoming),
      atMs: clock.nowMs(),
      requestId,
      outcome: 'ok',
      isAnswerLost: false,
    }
    const slow: FaultOf<'slow'>[] = []
    try {
      const result = await this.decide(sketch, incoming, { requestId, entry, slow })
      const lost = this.parts.faults.first('lost-answer', occasionOf(entry))
      entry.isAnswerLost = lost !== undefined
      journal.add(entry)
      await this.wait(slow.filter(({ stage }) => stage === 'after'))
      const answer = writeAnswer(words, result)
      return lost === undefined ? { answer } : { answer: lostAnswer(words, lost, answer), lost: lost.instead }
    } catch (error) {
      const fault = asApiError(error, service)
      entry.outcome = fault.code
      journal.add(entry)
      return { answer: writeFault(words, fault) }
    }
  }

  private async decide(
    { service, actionName, parameters }: Sketch,
    incoming: Incoming,
    { requestId, entry, slow }: Handling,
  ): Promise<unknown> {
    const { signature, principal } = this.identify(incoming, service)
    entry.caller = principal.arn
    const action = Object.hasOwn(service.actions, actionName) ? service.actions[actionName] : undefined
    if (action === undefined) {
      if (signature.service !== service.name) throw this.unknownService(signature.service)
      throw unknownAction(service, actionName)
    }
    entry.isMutating = action.isMutating
    if (!GLOBAL_SERVICES.includes(service.name) && !this.parts.regions.has(signature.region))
      throw new ApiError(
        service.style === 'ec2' ? 'AuthFailure' : 'UnrecognizedClientException',
        `This small cloud has no region ${signature.region}; its world has ${[...this.parts.regions.keys()].join(', ')}`,
        service.style === 'ec2' ? 401 : 400,
      )
    if (this.parts.regions.get(signature.region)?.isEnabled === false) throw notEnabled(service)
    const call: Call = {
      service: service.name,
      action: actionName,
      region: signature.region,
      principal,
      requestId,
    }
    const context = { 'aws:RequestedRegion': call.region }
    this.checkPermission(service, call, { action: `${service.name}:${actionName}`, context })
    slow.push(...this.parts.faults.strike('slow', occasionOf(entry)))
    await this.wait(slow.filter(({ stage }) => stage === 'before'))
    this.checkFaults(entry)
    if (parameters instanceof ApiError) throw parameters
    const input = readInput(action.input, parameters, service.style) as never
    for (const wish of service.wishes?.(input, call) ?? []) this.checkPermission(service, call, wish)
    this.checkPace(call, input)
    action.check?.(input, call)
    if ((input as { DryRun?: boolean }).DryRun === true) {
      entry.isDryRun = true
      throw new ApiError('DryRunOperation', 'Request would have succeeded, but DryRun flag is set.', 412)
    }
    return action.run(input, call)
  }

  private identify(incoming: Incoming, service: Service): { signature: Signature; principal: Principal } {
    try {
      const request = { ...incoming, payloadHash: sha256(incoming.body) }
      const signature = readSignature(request)
      if (signature === undefined) throw new IdentityProblem('missing')
      const { secretAccessKey, principal } = this.parts.identities.secretOf(
        signature.accessKeyId,
        signature.sessionToken,
      )
      checkSignature(request, signature, { secretAccessKey, nowMs: this.parts.wallMs() })
      return { signature, principal }
    } catch (error) {
      throw error instanceof IdentityProblem ? identityError(error.fault, service.style) : error
    }
  }

  private unknownService(name: string): ApiError {
    const known = [...this.parts.services.keys(), 's3'].join(', ')
    return new ApiError('InvalidAction', `This small cloud has no service ${name}; it has ${known}.`)
  }

  private checkPermission(service: Service, { principal }: Call, wish: AuthorizationRequest): void {
    const { action: name, resource } = wish
    // Every caller may query its own identity.
    if (name === 'sts:GetCallerIdentity') return
    if (this.parts.identities.judge(principal, wish) === 'allowed') return
    const where = resource === undefined ? '' : ` on resource: ${resource}`
    const words = `${principal.arn} is not authorized to perform: ${name}${where}`
    if (service.style === 'ec2')
      throw new ApiError(
        'UnauthorizedOperation',
        `You are not authorized to perform this operation. User: ${words}`,
        403,
      )
    if (service.style === 'query') throw new ApiError('AccessDenied', `User: ${words}`, 403)
    throw new ApiError('AccessDeniedException', `User: ${words}`, 400)
  }

  private async wait(slow: readonly FaultOf<'slow'>[]): Promise<void> {
    for (const { by } of slow) await new Promise<void>((resolve) => this.parts.clock.after(by, resolve))
  }

  private checkFaults(entry: Omit<JournalEntry, 'number'>): void {
    const fault = this.parts.faults.first('error', occasionOf(entry))
    if (fault !== undefined)
      throw new ApiError(
        fault.code,
        fault.message ?? usualMessage(fault.code),
        fault.status ?? usualStatus(fault.code),
      )
  }

  private checkPace(call: Call, input: Readonly<Record<string, unknown>>): void {
    const { throttle } = this.parts
    if (call.service === 'ssm' && !throttle.take('ssm', call.region))
      throw new ApiError('ThrottlingException', 'Rate exceeded')
    if (call.service === 'ec2' && !throttle.take(throttle.bucketOf(call.action, input), call.region))
      throw limitExceeded()
  }
}

/** A Region that the account has not enabled rejects all its keys. */
function notEnabled({ style }: Service): ApiError {
  if (style === 'ec2')
    return new ApiError('AuthFailure', 'AWS was not able to validate the provided access credentials', 401)
  const words = 'The security token included in the request is invalid.'
  return style === 'query'
    ? new ApiError('InvalidClientTokenId', words, 403)
    : new ApiError('UnrecognizedClientException', words, 400)
}

export function limitExceeded(): ApiError {
  return new ApiError('RequestLimitExceeded', 'Request limit exceeded.', 503)
}

function occasionOf({ service, action, region, caller, parameters }: Omit<JournalEntry, 'number'>): Occasion {
  return { service, action, region, parameters, caller }
}

function unknownAction({ style, name }: Service, actionName: string): ApiError {
  if (style === 'json')
    return new ApiError('UnknownOperationException', `This small cloud has no ${name}:${actionName}`)
  return new ApiError('InvalidAction', `The action ${actionName} is not valid for this web service.`)
}

function lostAnswer(
  words: Parameters<typeof writeFault>[0],
  { instead }: FaultOf<'lost-answer'>,
  answer: Answer,
): Answer {
  if (instead === 'internal-error') return writeFault(words, internalError())
  if (instead === 'unavailable')
    return writeFault(
      words,
      new ApiError('Unavailable', 'The server is overloaded and can not handle the request.', 503),
    )
  return answer
}

function internalError(): ApiError {
  return new ApiError('InternalError', 'An internal error has occurred', 500)
}

/** A bug of the cloud becomes an internal error on the wire, and its stack trace is logged. */
function asApiError(error: unknown, { style }: Service): ApiError {
  if (error instanceof ApiError) return error
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
  return new ApiError(
    style === 'json' ? 'InternalServerError' : 'InternalError',
    `The small cloud has failed: ${text}`,
    500,
  )
}
