import { createHmac, timingSafeEqual } from 'node:crypto'
import { CodedError } from '../core/errors'
import { deploymentOf, refused, SCHEDULED_AT } from '../core/stamps'

/** A value in Temporal's wire format; the SDK's type has the same shape. */
export interface SealedPayload {
  metadata?: Record<string, Uint8Array> | null
  data?: Uint8Array | null
}

/** The origin of payloads; the SDK's `SerializationContext` has the same shape. */
export type SealContext =
  | { type: 'workflow'; namespace: string; workflowId: string }
  | { type: 'activity'; namespace: string; workflowId?: string; activityId?: string; isLocal: boolean }

/** A payload from another deployment, or from a sender without the key. */
export class SealError extends CodedError<'seal'> {
  constructor(message: string) {
    super('seal', message)
  }
}

export interface PayloadSealOptions {
  /** The deployment's key. Without one (`undefined`) nothing is signed or checked. */
  key: (to: 'send' | 'read') => Promise<Buffer | undefined>
  /**
   * The handling of an unsigned payload: `mark` replaces it by a note, which makes workflow code refuse it without failing the workflow
   * task; `throw` throws a `SealError`.
   */
  onRefused: 'mark' | 'throw'
}

const SEAL = 'crucible-seal'

/**
 * A payload codec that signs outgoing payloads and checks incoming ones. Data and encoding stay unchanged, so that the Temporal UI can show
 * them; the signature is an additional piece of metadata. It covers all payloads of one message together with their origin: the namespace,
 * the workflow, and the activity.
 */
export class PayloadSeal {
  constructor(private readonly options: PayloadSealOptions) {}

  async encode<P extends SealedPayload>(payloads: P[], context?: SealContext): Promise<P[]> {
    if (payloads.length === 0) return payloads
    const key = await this.options.key('send')
    if (key === undefined) return payloads
    const seal = macOf(key, payloads, context)
    return payloads.map((payload) => ({ ...payload, metadata: { ...payload.metadata, [SEAL]: seal } }))
  }

  async decode<P extends SealedPayload>(payloads: P[], context?: SealContext): Promise<P[]> {
    if (payloads.length === 0) return payloads
    const key = await this.options.key('read')
    const bare = payloads.map(withoutSeal)
    if (key === undefined) return bare
    const problem = problemOf(key, { payloads, bare, context })
    if (problem === undefined) return bare
    if (this.options.onRefused === 'throw') throw new SealError(problem)
    return bare.map((payload) => ({ ...payload, ...noteOf(problem, deploymentOf(valueOf(payload))) }))
  }
}

function problemOf(
  key: Buffer,
  {
    payloads,
    bare,
    context,
  }: { payloads: SealedPayload[]; bare: SealedPayload[]; context?: SealContext | undefined },
): string | undefined {
  const seals = payloads.map(({ metadata }) => metadata?.[SEAL])
  if (seals.every((seal) => seal === undefined)) return 'it is not signed'
  const expected = macOf(key, bare, context)
  const isOurs = seals.every((seal) => seal?.length === expected.length && timingSafeEqual(seal, expected))
  return isOurs ? undefined : "it is not signed with this deployment's key"
}

function macOf(key: Buffer, payloads: readonly SealedPayload[], context?: SealContext): Buffer {
  const mac = createHmac('sha256', createHmac('sha256', key).update('payloads').digest())
  const add = (value: Uint8Array): void => {
    // The workflow sandbox passes an empty value as a plain array.
    const bytes = Buffer.from(value)
    const length = Buffer.alloc(8)
    length.writeBigUInt64BE(BigInt(bytes.length))
    mac.update(length).update(bytes)
  }
  add(Buffer.from(JSON.stringify(partsOf(context))))
  for (const { metadata, data } of payloads) {
    const fields = Object.entries(metadata ?? {}).sort(([a], [b]) => (a < b ? -1 : 1))
    add(Buffer.from(String(fields.length)))
    for (const [name, value] of fields) {
      add(Buffer.from(name))
      add(value)
    }
    add(data ?? new Uint8Array())
  }
  return mac.digest()
}

function partsOf(context?: SealContext): unknown[] {
  if (context === undefined) return ['none']
  const { type, namespace, workflowId } = context
  // For an activity outside any workflow, the worker has an empty workflow id and the client has none.
  const workflow = workflowId?.replace(SCHEDULED_AT, '') || null
  if (type === 'workflow') return [type, namespace, workflow]
  return [type, namespace, workflow, context.activityId || null, context.isLocal]
}

function withoutSeal<P extends SealedPayload>(payload: P): P {
  if (payload.metadata?.[SEAL] === undefined) return payload
  const metadata = { ...payload.metadata }
  delete metadata[SEAL]
  return { ...payload, metadata }
}

function noteOf(reason: string, claimed: string | undefined): Required<SealedPayload> {
  return {
    metadata: { encoding: Buffer.from('json/plain') },
    data: Buffer.from(JSON.stringify(refused(reason, claimed))),
  }
}

function valueOf({ data }: SealedPayload): unknown {
  try {
    return JSON.parse(Buffer.from(data ?? []).toString('utf8')) as unknown
  } catch {
    return undefined
  }
}
