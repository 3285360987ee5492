import { setTimeout as sleep } from 'node:timers/promises'
import type { LogLine } from '../../core/documents'
import { isFinal } from '../../core/job/job'
import { SECOND_MS } from '../../core/time/time'
import { parseLogLine } from '../../intake/documents'
import { layout } from '../../storage/layout'
import { readLines } from '../../storage/logs'
import { hasRecord, surveyRecords } from '../../storage/record'
import type { ObjectStore } from '../../storage/store'
import type { Context } from '../context'
import { toCrucibleError } from '../errors'
import { StoreOutage } from '../store-outage'
import { readView, noSuchJob } from './read-view'

/** A line of a job's log, with its attempt. Numbers count from 1 in each attempt. @public */
export interface JobLogLine extends LogLine {
  attempt: number
}

/** @public */
export interface LogOptions {
  /** Whether to continue until the job is over. */
  isFollowing?: boolean
  /** Reads only the log of this attempt. */
  attempt?: number
  /** Reads only this number of the last existing lines. */
  tail?: number
  signal?: AbortSignal
}

/** Polling costs nothing if the store is a local folder. */
const LOOK_EVERY_MS = { here: 250, elsewhere: 2 * SECOND_MS } as const
/** A job whose workflow was terminated by hand never records its end: ask Temporal now and then. */
const ASK_TEMPORAL_EVERY_MS = 15 * SECOND_MS

/**
 * Yields a job's log across its attempts, each line once and in order; a line with `s: 'gap'` marks lost lines. With follow, it waits for
 * more, even while the store does not answer, and ends when the job is over and its last line was read.
 */
export async function* readLogs(
  context: Context,
  jobId: string,
  options: LogOptions = {},
): AsyncGenerator<JobLogLine> {
  const { tail } = options
  const reader = new LogReader(context, jobId, options)
  await reader.open()
  if (tail === undefined) {
    yield* reader.read(options.isFollowing ?? false)
    return
  }
  const last: JobLogLine[] = []
  for await (const line of reader.read(false)) {
    last.push(line)
    if (last.length > tail) last.shift()
  }
  yield* last
  if (options.isFollowing === true) yield* reader.read(true)
}

/** A reader's position in a job's log, and how far the log can still grow. */
class LogReader {
  private attempt: number
  private line = 0
  private recordSeq = -1
  private isJobOver = false
  /** Attempts that write no more. */
  private readonly settled = new Set<number>()
  private askedTemporalAtMs: number

  constructor(
    private readonly context: Context,
    private readonly jobId: string,
    private readonly options: LogOptions,
  ) {
    this.attempt = options.attempt ?? 1
    this.askedTemporalAtMs = context.now()
  }

  /** Opens the log. Throws `not-found` if the job does not exist. */
  async open(): Promise<void> {
    await this.readRecord()
    const { store } = this.context
    if (this.recordSeq < 0 && !(await hasRecord(store, this.jobId)))
      throw await noSuchJob(this.context, this.jobId)
  }

  async *read(isFollowing: boolean): AsyncGenerator<JobLogLine> {
    const { signal } = this.options
    const outage = new StoreOutage(this.context)
    while (signal?.aborted !== true) {
      try {
        // Determined before the lines are read, so that no line written before the end is missed.
        if (isFollowing) await outage.during(this.readRecord())
        const isOver = await this.isAttemptOver()
        yield* this.readNewLines(isOver)
        if (isOver && (await this.goOn())) continue
        const isEnd = !isFollowing || (isOver && this.isEnd())
        if (!isEnd) await this.askTemporal()
        outage.end()
        if (isEnd) return
      } catch (error) {
        const { kind, message } = toCrucibleError(error)
        if (!isFollowing || kind !== 'unavailable') throw error
        outage.begin(message)
      }
      await this.pause()
    }
  }

  private async *readNewLines(isOver: boolean): AsyncGenerator<JobLogLine> {
    const { jobId, attempt } = this
    const range = { jobId, attempt, afterLine: this.line, isOver }
    for await (const line of readLines(this.context.store, range, parseLogLine)) {
      this.line = line.n
      yield { attempt, ...line }
    }
  }

  private async readRecord(): Promise<void> {
    const { entries } = await surveyRecords(this.context.store, this.jobId, { afterSeq: this.recordSeq })
    for (const { seq, kind, attempt } of entries) {
      this.recordSeq = Math.max(this.recordSeq, seq)
      // An attempt without a worker is decided without a settlement.
      if ((kind === 'settled' || kind === 'decided') && attempt !== undefined) this.settled.add(attempt)
      if (kind === 'finished') this.isJobOver = true
    }
  }

  private async isAttemptOver(): Promise<boolean> {
    const { jobId, attempt } = this
    if (this.isJobOver || this.settled.has(attempt)) return true
    return (await this.context.store.head(layout.result(jobId, attempt))) !== undefined
  }

  /** Moves to the next attempt, if one exists and is requested. */
  private async goOn(): Promise<boolean> {
    if (this.options.attempt !== undefined) return false
    const later = (await attemptsOf(this.context.store, this.jobId)).find((attempt) => attempt > this.attempt)
    if (later === undefined) return false
    this.attempt = later
    this.line = 0
    return true
  }

  private isEnd(): boolean {
    return this.isJobOver || this.options.attempt !== undefined
  }

  private async askTemporal(): Promise<void> {
    const nowMs = this.context.now()
    if (nowMs - this.askedTemporalAtMs < ASK_TEMPORAL_EVERY_MS) return
    // Reported by the server: a record without an end cannot be final. An emptied store is noticed here too, until it is back.
    if (isFinal((await readView(this.context, this.jobId)).state)) this.isJobOver = true
    this.askedTemporalAtMs = nowMs
  }

  private async pause(): Promise<void> {
    const isHere = this.context.store.url.startsWith('file:')
    const waitMs = isHere ? LOOK_EVERY_MS.here : LOOK_EVERY_MS.elsewhere
    await sleep(
      waitMs,
      undefined,
      this.options.signal === undefined ? {} : { signal: this.options.signal },
    ).catch(() => undefined)
  }
}

/** The numbers of a job's attempts, in order. */
export async function attemptsOf(store: ObjectStore, jobId: string): Promise<number[]> {
  const folders = await store.listFolders(layout.attempts(jobId))
  return folders.map(Number).sort((a, b) => a - b)
}
