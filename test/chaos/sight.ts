import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Beat } from '../../core/documents'
import type { RecordEntry, RecordKind } from '../../core/job/record'
import { layout } from '../../storage/layout'
import type { Moment } from './plan'
import { readLinesOf, type Seam } from './seam'

/** A line of the journal that workloads write. */
export interface JournalLine {
  event: 'start' | 'step' | 'saved' | 'end'
  step: number
  pid: number
  attempt: number
  monoMs: number
  wallMs: number
}

const LOOK_EVERY_MS = 15

/** One job as it can be seen from outside: its folder in the store, and the journal of its workload. */
export class Sight {
  private seen: number[] = []

  constructor(
    readonly jobId: string,
    private readonly at: { store: string; journal: string; seam: Seam },
  ) {}

  journal(): JournalLine[] {
    return readLinesOf<JournalLine>(this.at.journal)
  }

  /** Numbers of the attempts that have an order, in order; while the store is away, those that were seen last. */
  attempts(): number[] {
    const found = this.names(layout.attempts(this.jobId)).map(Number)
    if (found.length > 0) this.seen = found.sort((a, b) => a - b)
    return this.seen
  }

  records(kind: RecordKind): RecordEntry[] {
    return this.names(layout.records(this.jobId))
      .map((name) => this.json<RecordEntry>(`${layout.records(this.jobId)}${name}`))
      .filter((entry) => entry?.kind === kind)
      .map((entry) => entry!)
  }

  get isOver(): boolean {
    return this.records('finished').length > 0
  }

  /** Waits for a moment that comes after now; false when the job was over before. */
  async until(moment: Moment, signal: AbortSignal): Promise<boolean> {
    const isNow = this.trigger(moment)
    while (!isNow()) {
      if (this.isOver) return false
      await sleep(LOOK_EVERY_MS, undefined, { signal })
    }
    return true
  }

  private trigger(moment: Moment): () => boolean {
    switch (moment.on) {
      case 'now':
        return () => true
      case 'step':
        return () => {
          const last = this.journal().at(-1)
          return last !== undefined && last.event !== 'end' && last.step >= moment.step && isAlive(last.pid)
        }
      case 'phase':
        return () => this.beat()?.phase === moment.phase
      case 'document':
        return this.oneMore(() => this.withDocument(moment.document))
      case 'record':
        return this.oneMore(() => this.records(moment.kind).length)
      case 'checkpoint':
        return this.oneMore(() => this.newestStep())
      case 'taken':
        return this.oneMore(() => this.at.seam.taken().length)
    }
  }

  private oneMore(count: () => number): () => boolean {
    const before = count()
    return () => count() > before
  }

  private withDocument(document: 'order' | 'machine' | 'claim' | 'result'): number {
    const folders = this.attempts().map((number) => layout.attempt(this.jobId, number))
    return folders.filter((folder) => this.names(folder).includes(`${document}.json`)).length
  }

  beat(): Beat | undefined {
    const last = this.attempts().at(-1)
    return last === undefined ? undefined : this.json<Beat>(layout.beat(this.jobId, last))
  }

  /** Of the newest complete checkpoint: its step and attempt as one growing number. */
  private newestStep(): number {
    const complete = this.names(layout.checkpoints(this.jobId)).filter((id) =>
      this.names(`${layout.checkpoints(this.jobId)}${id}`).includes('manifest.json'),
    )
    return Math.max(0, ...complete.map((id) => Number(id.slice(0, 12))))
  }

  private names(key: string): string[] {
    try {
      return readdirSync(join(this.at.store, key))
    } catch {
      return []
    }
  }

  private json<T>(key: string): T | undefined {
    try {
      return JSON.parse(readFileSync(join(this.at.store, key), 'utf8')) as T
    } catch {
      return undefined
    }
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
