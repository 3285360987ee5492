import type { Failure } from '../core/failure'
import { sendNameOf } from '../core/queues'
import { ignoreBadDocument, parserOf, putDocumentIfAbsent, readDocument } from './json'
import { layout } from './layout'
import { StoreError, type ObjectStore } from './store'

/** `sends/<seq>.json`: one send of an order. Put if absent before the request is sent, and never changed. */
export interface SendMark {
  kind: 'send'
  /** Starts at 1. */
  seq: number
  /** Unique name of this send. The machine's tag or hostname shows it, and a machine that does not know its id claims with it. */
  name: string
  /** Time by the clock of the sending worker. */
  atMs: number
}

/** Takes the place of the next mark when the attempt is settled: no further send begins. */
interface Seal {
  kind: 'sealed'
  seq: number
  atMs: number
}

/** The outcome of a send. */
export type SendEffect =
  /** The provider refused it, or certainly did nothing: the order may be sent again. */
  | { kind: 'no-effect'; failure: Failure }
  | { kind: 'launched'; machine: string }
  /** Its request was given up, and may have made a machine. */
  | { kind: 'unconfirmed' }

/** `sends/<seq>-outcome.json`: put once by the sending worker, after which it makes no request of that send. */
type SendOutcome = SendEffect & { atMs: number }

interface Sent {
  nextSeq: number
  isSealed: boolean
  last?: { mark: SendMark; outcome: SendOutcome | undefined }
}

/**
 * The sends of one attempt's order to a provider that does not recognise repeated orders. At most one of them may have an effect: the next
 * one begins only when the record shows that the previous one had none (docs/decisions/0040-sends-are-marked-first.md).
 */
export class Sends {
  constructor(
    private readonly store: ObjectStore,
    private readonly at: { jobId: string; attempt: number; attemptId: string },
    private readonly now: () => number,
  ) {}

  /** Returns the mark of a send that only the caller may make; undefined if another send is open, or the attempt is settled. */
  async begin(): Promise<SendMark | undefined> {
    const { nextSeq: seq, isSealed, last } = await this.read()
    if (isSealed || (last !== undefined && last.outcome?.kind !== 'no-effect')) return undefined
    const mark: SendMark = {
      kind: 'send',
      seq,
      name: sendNameOf(this.at.attemptId, seq),
      atMs: this.now(),
    }
    return (await this.claim(mark)) ? mark : undefined
  }

  async conclude({ seq }: SendMark, effect: SendEffect): Promise<void> {
    const key = layout.sendOutcome(this.at.jobId, this.at.attempt, seq)
    await putDocumentIfAbsent(this.store, key, { ...effect, atMs: this.now() } satisfies SendOutcome)
  }

  /**
   * Returns the latest time at which the last request may have reached the provider; undefined if none can have had an effect. A send
   * without an outcome is in progress, or its worker has died; it is over `limitMs` after its mark.
   */
  async sentUntilMs(limitMs: number): Promise<number | undefined> {
    const { last } = await this.read()
    if (last === undefined || last.outcome?.kind === 'no-effect') return undefined
    return last.outcome?.atMs ?? last.mark.atMs + limitMs
  }

  /** Prevents any further send. Repeatable. */
  async seal(): Promise<void> {
    for (;;) {
      const { nextSeq: seq, isSealed } = await this.read()
      if (isSealed || (await this.claim({ kind: 'sealed', seq, atMs: this.now() }))) return
    }
  }

  private claim(slot: SendMark | Seal): Promise<boolean> {
    return putDocumentIfAbsent(this.store, layout.send(this.at.jobId, this.at.attempt, slot.seq), slot)
  }

  private async read(): Promise<Sent> {
    const { jobId, attempt } = this.at
    const names = new Set<string>()
    for await (const { key } of this.store.list(layout.sends(jobId, attempt))) names.add(key)
    let lastSeq = 0
    while (names.has(layout.send(jobId, attempt, lastSeq + 1))) lastSeq++
    const nextSeq = lastSeq + 1
    if (lastSeq === 0) return { nextSeq, isSealed: false }
    const newest = await this.slot(lastSeq)
    const isSealed = newest.kind === 'sealed'
    if (isSealed && lastSeq === 1) return { nextSeq, isSealed }
    // No mark follows a seal.
    const mark = isSealed ? await this.slot(lastSeq - 1) : newest
    const outcomeKey = layout.sendOutcome(jobId, attempt, mark.seq)
    const outcome = names.has(outcomeKey) ? await this.readOutcome(outcomeKey) : undefined
    return { nextSeq, isSealed, last: { mark: mark as SendMark, outcome } }
  }

  /** An unreadable outcome is an unknown one. */
  private readOutcome(key: string): Promise<SendOutcome | undefined> {
    return readDocument(this.store, key, parseOutcome).catch(ignoreBadDocument)
  }

  private async slot(seq: number): Promise<SendMark | Seal> {
    const key = layout.send(this.at.jobId, this.at.attempt, seq)
    const slot = await readDocument(this.store, key, parseSlot)
    if (slot !== undefined && slot.seq === seq) return slot
    throw new StoreError(`The document ${key} disappeared, or is another one's.`, { isTransient: true })
  }
}

const parseSlot = parserOf<SendMark | Seal>(
  'the mark of a send',
  ({ kind, seq, atMs }) =>
    (kind === 'send' || kind === 'sealed') && typeof seq === 'number' && typeof atMs === 'number',
)
const parseOutcome = parserOf<SendOutcome>(
  'the outcome of a send',
  ({ kind, atMs }) =>
    typeof atMs === 'number' && (kind === 'no-effect' || kind === 'launched' || kind === 'unconfirmed'),
)
