import type { ResourceRequest } from '../../core/resources'
import { MINUTE_MS, SECOND_MS } from '../../core/time'
import type { Asker } from '../../core/waiting'
import type { Gpu } from './gpus'
import { chooseKind, needsOf, type Taken } from './slots'

/** An order that has not arrived after this long does not come any more. */
const HOLD_MS = 30 * SECOND_MS
/** A job that waits asks again at least this often. */
const ASKS_AGAIN_WITHIN_MS = 15 * SECOND_MS
/** For this long jobs with smaller wishes may go ahead of one that needs more than is free at once. */
const PASSED_BY_MS = 2 * MINUTE_MS

type Lack = 'slots' | 'gpus'

interface Hold {
  slots: number
  gpus: number[]
  untilMs: number
}

/** A job that found too little free. */
interface Shortage {
  sinceMs: number
  request: ResourceRequest
  lacks: Lack
  /** From when on nobody may go ahead of it. */
  firstFromMs: number
  askedAtMs: number
}

/**
 * What is free, and yet not for everybody: places held for jobs whose order is on its way, and places that are kept free for an older
 * job that needs several at once. In memory of the one process that launches here: without it, at worst, a launch finds its place
 * taken and is sent again.
 */
export class Holds {
  private readonly held = new Map<string, Hold>()
  private readonly short = new Map<string, Shortage>()

  constructor(private readonly now: () => number) {}

  /** What is taken as this job sees it; `undefined` for one who only looks. */
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

  /** Of the older jobs in line, those that have neither a machine here nor a place that is held for them. */
  withoutPlace(asker: Asker | undefined, { jobIds }: Taken): number {
    return asker?.ahead.filter((jobId) => !this.held.has(jobId) && !jobIds.has(jobId)).length ?? 0
  }

  hold({ jobId }: Asker, place: Pick<Hold, 'slots' | 'gpus'>): void {
    this.short.delete(jobId)
    this.held.set(jobId, { ...place, untilMs: this.now() + HOLD_MS })
  }

  /** The job found too little of something free, and asks again. One whose order is here already is passed by nobody. */
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

  /** The job has its machine, or wants none here. */
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
