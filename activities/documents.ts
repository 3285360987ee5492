import type {
  Beat,
  Billing,
  Claim,
  Drain,
  EndedMachine,
  IssuedRunnerOrder,
  Lease,
  Limits,
  RunnerOrder,
  RunnerResult,
} from '../core/documents'
import { isInstant } from '../core/figures'
import type { MachineHandle } from '../core/handle'
import { attemptIdOf } from '../core/queues'
import { parseBeat, parseClaim, parseDrain, parseLease, parseLimits, parseResult } from '../intake/documents'
import {
  ignoreBadDocument,
  isRecord,
  parserOf,
  putDocument,
  putDocumentIfAbsent,
  readDocument,
} from '../storage/json'
import { layout } from '../storage/layout'
import { isMachineRecord, readBilling, readMachine, type AttemptKey } from '../storage/machines'
import type { ObjectStore } from '../storage/store'

/** The documents of one attempt that the control plane writes or reads. */
export class AttemptDocuments {
  constructor(
    private readonly store: ObjectStore,
    private readonly at: AttemptKey,
    private readonly now: () => number,
  ) {}

  /** False if there is one already. */
  async putOrder(order: RunnerOrder): Promise<boolean> {
    const issued: IssuedRunnerOrder = { ...order, issuedAtMs: this.now() }
    return putDocumentIfAbsent(this.store, layout.order(this.at.jobId, this.at.attempt), issued)
  }

  /** Returns the order; throws a `StoreError` for a damaged one. */
  async readOrder(): Promise<IssuedRunnerOrder | undefined> {
    const key = layout.order(this.at.jobId, this.at.attempt)
    return readDocument(this.store, key, (text) => this.checkOwn(parseOrder(text)))
  }

  /** When the order was put; undefined before. */
  async orderedAtMs(): Promise<number | undefined> {
    const order = await this.readOrder().catch(ignoreBadDocument)
    const key = layout.order(this.at.jobId, this.at.attempt)
    // The store's time of a damaged one is the best that is known.
    return order?.issuedAtMs ?? (await this.store.head(key))?.modifiedAtMs
  }

  async putMachine(handle: MachineHandle): Promise<void> {
    await putDocumentIfAbsent(this.store, layout.machine(this.at.jobId, this.at.attempt), handle)
  }

  async readMachine(): Promise<MachineHandle | undefined> {
    return readMachine(this.store, this.at)
  }

  /** Overwritten only to replace "queued" by the beginning of billing. */
  async putBilling(billing: Billing): Promise<void> {
    const key = layout.billing(this.at.jobId, this.at.attempt)
    if (billing.fromAtMs === null) await putDocumentIfAbsent(this.store, key, billing)
    else await putDocument(this.store, key, billing)
  }

  /** Since when this machine is billed; undefined if that is not on record, or if the record is of a duplicate. */
  async readBilling(machine: string): Promise<Billing | undefined> {
    const billing = await readBilling(this.store, this.at)
    return billing?.machine === machine ? billing : undefined
  }

  /** Returns when the runner last wrote its beat, even an unreadable one. */
  async beatWrittenAtMs(): Promise<number | undefined> {
    return (await this.store.head(layout.beat(this.at.jobId, this.at.attempt)))?.modifiedAtMs
  }

  /** The time from the last beat to the record of the machine's end, which is made if it is missing, by the store's clock. */
  async sinceBeatMs(handle: MachineHandle, endedAtMs: number): Promise<number | undefined> {
    await this.putEnded(handle, endedAtMs)
    const [beatAtMs, ended] = await Promise.all([
      this.beatWrittenAtMs(),
      this.store.head(this.endedKey(handle)),
    ])
    return beatAtMs === undefined || ended === undefined
      ? undefined
      : Math.max(0, ended.modifiedAtMs - beatAtMs)
  }

  /** The time from the order to the claim of the attempt, which a runner makes at its start, by the store's clock. */
  async startMs(): Promise<number | undefined> {
    const { jobId, attempt } = this.at
    const [order, claim] = await Promise.all([
      this.store.head(layout.order(jobId, attempt)),
      this.store.head(this.claimKey),
    ])
    return order && claim && claim.modifiedAtMs - order.modifiedAtMs
  }

  /** Which machine works on the attempt; undefined if none has claimed it, or the claim is unreadable. */
  async readClaim(): Promise<Claim | undefined> {
    return readDocument(this.store, this.claimKey, parseClaim).catch(ignoreBadDocument)
  }

  /** Claims the attempt for a machine, unless another one has claimed it. */
  async putClaim(machine: string): Promise<void> {
    await putDocumentIfAbsent(this.store, this.claimKey, { machine } satisfies Claim)
  }

  /** Whether a machine has claimed the attempt, readably or not. */
  async isClaimed(): Promise<boolean> {
    return (await this.store.head(this.claimKey)) !== undefined
  }

  /** Records that a machine is about to be ended, so that it is billed even if its end is not recorded. */
  async putEnding(handle: MachineHandle): Promise<void> {
    await putDocumentIfAbsent(this.store, this.endedKey(handle), {
      handle,
      endedAtMs: null,
    } satisfies EndedMachine)
  }

  /** Records the end of a machine's bill, and returns the first recorded one. */
  async putEnded(handle: MachineHandle, endedAtMs: number): Promise<number> {
    const key = this.endedKey(handle)
    const ended: EndedMachine = { handle, endedAtMs }
    if (await putDocumentIfAbsent(this.store, key, ended)) return endedAtMs
    const first = await readDocument(this.store, key, parseEnded).catch(ignoreBadDocument)
    if (first?.endedAtMs != null) return first.endedAtMs
    await putDocument(this.store, key, ended)
    return endedAtMs
  }

  /** The machines of the attempt whose end is on record, or was about to come. */
  async readEnded(): Promise<EndedMachine[]> {
    const { jobId, attempt } = this.at
    const ended: (EndedMachine | undefined)[] = []
    for await (const { key } of this.store.list(layout.endedMachines(jobId, attempt)))
      ended.push(await readDocument(this.store, key, (text) => this.ofOwn(text)).catch(ignoreBadDocument))
    return ended.filter((one) => one !== undefined)
  }

  private ofOwn(text: string): EndedMachine {
    const ended = parseEnded(text)
    this.checkOwn(ended.handle)
    return ended
  }

  private endedKey({ id }: MachineHandle): string {
    return layout.endedMachine(this.at.jobId, this.at.attempt, id)
  }

  private get claimKey(): string {
    return layout.claim(this.at.jobId, this.at.attempt)
  }

  /**
   * The first request to stop is `drain.json`; each later one, with a shorter window, is numbered. Returns whether this call
   * wrote it: the first one of a number wins.
   */
  async putDrain(drain: Omit<Drain, 'requestedAtMs'>): Promise<boolean> {
    const { jobId, attempt } = this.at
    const { seq = 1 } = drain
    const document: Drain = { ...drain, requestedAtMs: this.now() }
    const key = seq === 1 ? layout.drain(jobId, attempt) : layout.shorterDrain(jobId, attempt, seq)
    return putDocumentIfAbsent(this.store, key, document)
  }

  /** Writes a request to stop under the next free number, unless the newest one allows no more time. */
  async shortenDrain(drain: Pick<Drain, 'reason' | 'windowMs'>): Promise<void> {
    for (;;) {
      const { seq, windowMs } = await this.newestDrain()
      if (windowMs <= drain.windowMs) return
      if (await this.putDrain({ ...drain, seq: seq > 0 ? seq + 1 : undefined })) return
    }
  }

  /** Whether a request to stop exists, readable or not. */
  async isToldToStop(): Promise<boolean> {
    return (await this.store.head(layout.drain(this.at.jobId, this.at.attempt))) !== undefined
  }

  /** Returns the newest request to stop. Its number is 0 without any; its window is unlimited if it is unreadable. */
  async newestDrain(): Promise<{ seq: number; windowMs: number }> {
    const { jobId, attempt } = this.at
    const first = { seq: 1, key: layout.drain(jobId, attempt) }
    let newest = (await this.store.head(first.key)) === undefined ? undefined : first
    for await (const { key } of this.store.list(layout.shorterDrains(jobId, attempt))) {
      const seq = Number(/(?<!\d)(\d+)\.json$/.exec(key)?.[1] ?? 0)
      if (seq > (newest?.seq ?? 0)) newest = { seq, key }
    }
    if (newest === undefined) return { seq: 0, windowMs: Infinity }
    const drain = await readDocument(this.store, newest.key, parseDrain).catch(ignoreBadDocument)
    return { seq: newest.seq, windowMs: drain?.windowMs ?? Infinity }
  }

  /** Returns the first request to stop, if it is readable. */
  async readDrain(): Promise<Drain | undefined> {
    const key = layout.drain(this.at.jobId, this.at.attempt)
    return readDocument(this.store, key, parseDrain).catch(ignoreBadDocument)
  }

  async putLimits(limits: Limits): Promise<void> {
    await putDocumentIfAbsent(this.store, layout.limits(this.at.jobId, this.at.attempt, limits.seq), limits)
  }

  /** The newest limits written after the order. */
  async readLimits(): Promise<Limits | undefined> {
    const keys: string[] = []
    for await (const { key } of this.store.list(`${layout.attempt(this.at.jobId, this.at.attempt)}limits/`))
      keys.push(key)
    const newest = keys.sort().at(-1)
    return newest === undefined ? undefined : readDocument(this.store, newest, parseLimits)
  }

  /** Returns the runner's result; throws a `StoreError` if it is invalid. */
  async readResult(): Promise<RunnerResult | undefined> {
    return readDocument(this.store, layout.result(this.at.jobId, this.at.attempt), (text) =>
      this.checkOwn(parseResult(text)),
    )
  }

  async readBeat(): Promise<Beat | undefined> {
    return readDocument(this.store, layout.beat(this.at.jobId, this.at.attempt), (text) =>
      this.checkOwn(parseBeat(text)),
    )
  }

  /** Another attempt's document says nothing about this one. */
  private checkOwn<T extends { attemptId: string }>(document: T): T {
    const { jobId, attempt } = this.at
    if (document.attemptId === attemptIdOf(jobId, attempt)) return document
    throw new Error(`it belongs to ${document.attemptId}`)
  }

  /** The newest lease, missing if unreadable, and when it was written by the store's clock. */
  async readLease(): Promise<{ lease: Lease | undefined; renewedAtMs: number } | undefined> {
    const key = layout.lease(this.at.jobId, this.at.attempt)
    const [lease, head] = await Promise.all([
      readDocument(this.store, key, parseLease).catch(ignoreBadDocument),
      this.store.head(key),
    ])
    return head === undefined ? undefined : { lease, renewedAtMs: head.modifiedAtMs }
  }

  async putLease(lease: Lease): Promise<void> {
    await putDocument(this.store, layout.lease(this.at.jobId, this.at.attempt), lease)
  }
}

const parseEnded = parserOf<EndedMachine>(
  'the record of an ended machine',
  ({ handle, endedAtMs }) =>
    isRecord(handle) && isMachineRecord(handle) && (endedAtMs === null || isInstant(endedAtMs)),
)

const parseOrder = parserOf<IssuedRunnerOrder>(
  'an order',
  ({ issuedAtMs, leaseMs }) => typeof issuedAtMs === 'number' && typeof leaseMs === 'number',
)
