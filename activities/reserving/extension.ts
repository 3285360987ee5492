import { defined, without } from '../../core/defined'
import type { JobSpec } from '../../core/job/job'
import { offerKey } from '../../core/offer'
import type { PlanReport } from '../../core/job/plan'
import type { PurchaseRule } from '../../core/reservation/reserving'
import type { DecideExtensionTask, Elsewhere, ExtensionDecision } from '../../core/reservation/activities'
import { judgeExtension, overrunsOf } from '../../planner/reserving/extend'
import { readRecords } from '../../storage/record'
import { putReservationEntry } from '../../storage/reservations'
import type { ObjectStore } from '../../storage/store'

export interface ExtensionDeps {
  store: ObjectStore
  now: () => number
  /** Plans where a job could run now. */
  preview: (spec: JobSpec) => Promise<PlanReport>
}

/** Compares an extension with the best other place of each job that would not be done in time. */
export async function decideExtension(
  { store, now, preview }: ExtensionDeps,
  { reservationId, recordSeq, reservation, rule, extendedMicroUsd, look }: DecideExtensionTask,
): Promise<ExtensionDecision> {
  const { jobs, quotes, nowMs } = look
  const elsewhere: Record<string, Elsewhere> = {}
  for (const { job, overMs } of overrunsOf(reservation, jobs, nowMs)) {
    const spec = movable(await specOf(store, job.jobId), rule)
    // The rest begins elsewhere at the end of the reservation, from the checkpoint that is saved before.
    const rest = spec && { ...spec, durationMs: overMs, ...defined({ durationOn: job.accelerator }) }
    elsewhere[job.jobId] = rest === undefined ? null : cheapest(await preview(rest), reservation.id)
  }
  const facts = { reservation, rule, extendedMicroUsd, jobs, quotes, elsewhere, nowMs }
  const decision = judgeExtension(facts)
  const entry = await putReservationEntry(store, reservationId, {
    seq: recordSeq,
    atMs: now(),
    kind: 'judged-extension',
    summary: decision.message,
    data: { facts, decision },
  })
  return (entry.data as { decision: ExtensionDecision }).decision
}

async function specOf(store: ObjectStore, jobId: string): Promise<JobSpec | undefined> {
  const records = await readRecords(store, jobId)
  const resolved = records.find(({ kind }) => kind === 'resolved')
  return resolved?.kind === 'resolved' ? resolved.data.spec : undefined
}

/** Returns the job as it would continue; undefined if it would not. */
function movable(spec: JobSpec | undefined, { extendFor }: PurchaseRule): JobSpec | undefined {
  if (spec === undefined || extendFor === undefined) return spec
  const { backends, regions } = extendFor
  if (backends.length === 0) return undefined
  const free = without(spec, ['reservation', 'regions'])
  return { ...free, backends: [...backends], regions: regions && [...regions] }
}

function cheapest({ placements }: PlanReport, reservation: string): Elsewhere {
  const [best] = placements
    .filter(({ offer }) => offer.reservationId !== reservation)
    .sort((a, b) => a.costMicroUsd - b.costMicroUsd)
  return best === undefined ? null : { offer: offerKey(best.offer), costMicroUsd: best.costMicroUsd }
}
