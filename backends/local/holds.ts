import type { ResourceRequest } from '../../core/resources'
import { MINUTE_MS, SECOND_MS } from '../../core/time/time'
import type { Asker } from '../../core/job/waiting'
import type { Gpu } from './gpus'
import { chooseKind, needsOf, type Taken } from './slots'

/** An order that has not arrived after this long is given up. */
const HOLD_MS = 30 * SECOND_MS
/** A waiting job asks again at least this often. */
const ASKS_AGAIN_WITHIN_MS = 15 * SECOND_MS
/** How long jobs with smaller requests may overtake a job that needs more places than are free at once. */
const PASSED_BY_MS = 2 * MINUTE_MS

type Lack = 'slots' | 'gpus'

interface Hold {
  slots: number
  gpus: number[]
  untilMs: number
}

/** A job that found too few free places. */
interface Shortage {
  sinceMs: number
  request: ResourceRequest
  lacks: Lack
  /** Time from which no job may overtake it. */
  firstFromMs: number
  askedAtMs: number
}

/**
 * Free places that are not available to every job: places held for jobs whose order is on its way, and places kept free for an
 * older job that needs several at once. Kept in the memory of the only process that launches here; if lost, the worst case is a
 * launch that finds its place taken and is sent again.
 */
export class Holds {
  private readonly held = new Map<string, Hold>()
  private readonly short = new Map<string, Shortage>()

  /** @param now never steps: it measures how long places are kept */
  constructor(private readonly now: () => number) {}

  /** Places that this job sees as taken; `undefined` for read-only queries. */
  seenBy(job: Pick<Asker, 'jobId' | 'sinceMs'> | undefined, taken: Taken, gpus: Gpu[]): Taken {
    const seen = { ...taken, gpus: new Set(taken.gpus) }
    this.forgetOld()
    for (const [jobId, hold] of this.held) {
      if (jobId === job?.jobId) continue
      seen.slots += hold.slots
      for (const gpu of hold.gpus) seen.gpus.add(gpu)
    }
    if (job === undefined || this.held.has(job.jobId)) return seen
    for (const [jobId, shortage] of this.short) {
      const { request, lacks, sinceMs } = shortage
      if (jobId === job.jobId || sinceMs >= job.sinceMs || this.now() < shortage.firstFromMs) continue
      const needs = needsOf(request)
      if (lacks === 'slots') seen.slots += needs.slots
      const kept = lacks === 'gpus' ? (chooseKind(gpus, request, seen)?.free ?? []) : []
      for (const gpu of kept.slice(0, needs.gpus)) seen.gpus.add(gpu.index)
    }
    return seen
  }

  /** Returns the older jobs in the queue that have neither a machine here nor a held place. */
  withoutPlace(asker: Asker | undefined, { jobIds }: Taken): number {
    return asker?.ahead.filter((jobId) => !this.held.has(jobId) && !jobIds.has(jobId)).length ?? 0
  }

  hold({ jobId }: Asker, place: Pick<Hold, 'slots' | 'gpus'>): void {
    this.short.delete(jobId)
    this.held.set(jobId, { ...place, untilMs: this.now() + HOLD_MS })
  }

  /** Notes that the job found too few free places, and asks again. No job overtakes one whose order has already arrived. */
  noteShortage(
    { jobId, sinceMs }: Pick<Asker, 'jobId' | 'sinceMs'>,
    {
      request,
      lacks,
      isOrder = false,
    }: Pick<Shortage, 'request'> & { lacks: Lack | undefined; isOrder?: boolean },
  ): void {
    const known = this.short.get(jobId)
    this.forget(jobId)
    if (lacks === undefined) return
    const askedAtMs = this.now()
    const firstFromMs = isOrder ? askedAtMs : (known?.firstFromMs ?? askedAtMs + PASSED_BY_MS)
    this.short.set(jobId, { sinceMs, request, lacks, firstFromMs, askedAtMs })
  }

  /** The job has its machine, or no longer wants one here. */
  forget(jobId: string): void {
    this.held.delete(jobId)
    this.short.delete(jobId)
  }

  private forgetOld(): void {
    const nowMs = this.now()
    for (const [jobId, { untilMs }] of this.held) if (untilMs <= nowMs) this.held.delete(jobId)
    for (const [jobId, { askedAtMs }] of this.short)
      if (nowMs - askedAtMs > ASKS_AGAIN_WITHIN_MS) this.short.delete(jobId)
  }
}
