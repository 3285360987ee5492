/** Every call that reached the cloud, for those who test what speaks to it. */
export interface JournalEntry {
  /** From 1. */
  number: number
  atMs: number
  service: string
  action: string
  region: string
  /** Who called, as an ARN; missing when that was not accepted. */
  caller?: string
  /** Whether the action changes anything. */
  isMutating: boolean
  isDryRun: boolean
  clientToken?: string
  /** The request's parameters as they were read off the wire. */
  parameters: unknown
  /** Which sending of one call this was, where the client says so; from 1. */
  sending?: number
  /** The same for all sendings of one call of an SDK. */
  invocation?: string
  /** `ok`, or the code of the error. */
  outcome: string
  /** The call had its effect and the answer was lost on purpose. */
  isAnswerLost: boolean
  requestId: string
}

/** Older entries make room beyond this many. */
const ENTRIES_MAX = 50_000

export interface JournalQuery {
  service?: string
  action?: string
  isMutating?: boolean
}

export class Journal {
  private entries: JournalEntry[] = []
  private count = 0
  private readonly listeners = new Set<(entry: JournalEntry) => void>()

  add(entry: Omit<JournalEntry, 'number'>): void {
    const numbered = { number: ++this.count, ...entry }
    this.entries.push(numbered)
    if (this.entries.length > ENTRIES_MAX) this.entries = this.entries.slice(ENTRIES_MAX / 2)
    for (const listener of this.listeners) listener(numbered)
  }

  /** The calls that fit, oldest first. */
  calls({ service, action, isMutating }: JournalQuery = {}): JournalEntry[] {
    return this.entries.filter(
      (entry) =>
        (service ?? entry.service) === entry.service &&
        (action ?? entry.action) === entry.action &&
        (isMutating ?? entry.isMutating) === entry.isMutating,
    )
  }

  /** Tells of every call from now on. Returns what ends it. */
  listen(listener: (entry: JournalEntry) => void): () => void {
    this.listeners.add(listener)
    return () => void this.listeners.delete(listener)
  }
}
