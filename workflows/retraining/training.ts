import { condition } from '@temporalio/workflow'
import type { JobInput, JobSource } from '../../core/messages'
import type { OverrunDecision, RunPlacement } from '../../core/retraining/run'
import type { ModelRef } from '../../core/retraining/retraining'
import type { OwnedReservation } from '../../core/reservation/reservation'
import { formatInstant } from '../../core/time/time'
import { forever } from '../forever'
import { decide, retraining } from './activities'
import { giveBack } from './release'
import { runPart, type PartEnd, type PartRequest } from './jobs'
import type { RetrainRun } from './run'

export interface Trained {
  model: ModelRef
  source: JobSource
}

/** How the training ends: with a model, with the reason why it has none, or before it began because its capacity is gone. */
export type TrainingEnd =
  { kind: 'trained'; trained: Trained } | { kind: 'failed'; message: string } | { kind: 'lost' }

/** Trains in the placement; continues elsewhere, once, if its reservation ends first and the file names backends. */
export async function train(run: RetrainRun, prepared: JobInput | PartEnd): Promise<TrainingEnd> {
  let placement = run.placement!
  let source: JobSource | undefined
  if ('isSucceeded' in prepared) return { kind: 'failed', message: prepared.message }
  for (let tries = 0; ; tries++) {
    if (tries > 0) run.trainings += 1
    const watch = new EndWatch(run, placement)
    const wish: PartRequest = { part: 'training', placement, number: run.trainings, source }
    const end = await runPart(run, wish, {
      prepared: tries === 0 ? prepared : undefined,
      until: (isOver) => watch.until(isOver),
    })
    const found = await forever(() => retraining.modelOf({ ...run.task(), jobId: end.jobId }), run)
    if (end.isSucceeded) {
      if (found !== null) return { kind: 'trained', trained: found }
      return { kind: 'failed', message: 'The training left no complete checkpoint, so there is no model.' }
    }
    const isGone = run.stop === undefined && isWithoutPlace(placement, end)
    if (isGone && end.result?.attempts === 0) return { kind: 'lost' }
    const hasEnded = run.stop === undefined && (watch.hasLeft || isGone)
    const next =
      hasEnded && placement.kind === 'reserved' ? await decideOverrun(run, placement.reservation) : undefined
    if (next?.kind !== 'continue') {
      const why = next?.message ?? end.message
      const kept = found === null ? '' : ` Its checkpoint of step ${found.model.step} is kept.`
      return { kind: 'failed', message: `${why}${kept}` }
    }
    run.warn(next.message)
    await giveBack(run)
    placement = { kind: 'open', backends: next.backends }
    source = found?.source
  }
}

function decideOverrun(run: RetrainRun, reservation: OwnedReservation): Promise<OverrunDecision> {
  return decide(run, 'decideOverrun', { ...run.task(), reservation })
}

/** Whether the provider took the reservation away. Its event may arrive later than the job's end. */
function isWithoutPlace(placement: RunPlacement, { result }: PartEnd): boolean {
  return placement.kind === 'reserved' && result?.reason === 'no-placement'
}

/** Watches the end of the reservation that a training runs in. */
class EndWatch {
  /** Whether the training had to leave, because its reservation is over. */
  hasLeft = false

  constructor(
    private readonly run: RetrainRun,
    private readonly placement: RunPlacement,
  ) {}

  /** The last moment at which the reservation can be used; undefined without an end. */
  private get endAtMs(): number | undefined {
    const { placement } = this
    if (placement.kind !== 'reserved') return undefined
    return placement.reservation.usableUntilMs ?? placement.reservation.endsAtMs
  }

  /** Resolves when the training must leave, or is over. The end moves with an extension, or by the provider. */
  async until(isOver: () => boolean): Promise<void> {
    const { run, placement } = this
    if (placement.kind !== 'reserved') return condition(isOver)
    for (;;) {
      const { endAtMs } = this
      const hasMoved = (): boolean => this.endAtMs !== endAtMs
      const isNews = (): boolean => isOver() || run.isCapacityLost || hasMoved()
      const leftMs = endAtMs === undefined ? undefined : Math.max(0, endAtMs - Date.now())
      if (leftMs === undefined) await condition(isNews)
      else if (leftMs > 0) await condition(isNews, leftMs, { summary: 'until the reservation is over' })
      if (isOver()) return
      if (run.isCapacityLost || !hasMoved()) break
      run.warn(movedTo(placement.reservation))
    }
    this.hasLeft = true
  }
}

function movedTo({ id, endsAtMs }: OwnedReservation): string {
  return endsAtMs === undefined
    ? `The reservation ${id} no longer has an end.`
    : `The reservation ${id} now ends ${formatInstant(endsAtMs)}.`
}
