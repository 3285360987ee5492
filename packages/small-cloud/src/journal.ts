/** Records every call to the cloud, for tests of clients. */
export interface JournalEntry {
  /** Starts at 1. */
  number: number
  atMs: number
  service: string
  action: string
  region: string
  /** The caller's ARN; missing when authentication failed. */
  caller?: string
  /** Whether the action changes a resource. */
  isMutating: boolean
  isDryRun: boolean
  clientToken?: string
  /** The parameters as read from the request. */
  parameters: unknown
  /** The attempt number of the call, if the client reports it; starts at 1. */
  sending?: number
  /** Id that all attempts of one SDK call share. */
  invocation?: string
  /** `ok`, or the code of the error. */
  outcome: string
  /** The call took effect and the answer was lost on purpose. */
  isAnswerLost: boolean
  requestId: string
}

/** Maximum number of entries; the oldest are dropped. */
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

  /** Returns the matching calls, oldest first. */
  calls({ service, action, isMutating }: JournalQuery = {}): JournalEntry[] {
    return this.entries.filter(
      (entry) =>
        (service ?? entry.service) === entry.service &&
        (action ?? entry.action) === entry.action &&
        (isMutating ?? entry.isMutating) === entry.isMutating,
    )
  }

  /** Calls the listener for every call from now on. Returns a function that stops this. */
  listen(listener: (entry: JournalEntry) => void): () => void {
    this.listeners.add(listener)
    return () => void this.listeners.delete(listener)
  }
}
