import { condition } from '@temporalio/workflow'
import { defined } from '../core/defined'
import type { JobInput, JobSource } from '../core/messages'
import type { OverrunDecision, RunPlacement } from '../core/retrain-run'
import type { ModelRef } from '../core/retraining'
import { HOUR_MS } from '../core/time'
import { forever } from './forever'
import { decide, extending, retraining } from './retrain-activities'
import { runPart, type PartEnd, type PartWish } from './retrain-jobs'
import type { RetrainRun } from './retrain-run'
import { failureFrom } from '../core/failure'

/** Providers extend a reservation until an hour before its end at the latest. */
const OVERRUN_LOOK_MS = 3 * HOUR_MS
/** Each continues the one before; more would be a training that never ends. */
const TRAININGS_MAX = 5

export interface Trained {
  model: ModelRef
  source: JobSource
}

/** How the training ends: with a model, with why it has no model, or before it began because its capacity is gone. */
export type TrainingEnd =
  { kind: 'trained'; trained: Trained } | { kind: 'failed'; message: string } | { kind: 'lost' }

/** Trains in the placement; continues elsewhere if its reservation is over first and the file says where. */
export async function train(run: RetrainRun, prepared: JobInput | PartEnd): Promise<TrainingEnd> {
  let placement = run.placement!
  let source: JobSource | undefined
  if ('isSucceeded' in prepared) return { kind: 'failed', message: prepared.message }
  for (let tries = 0; tries < TRAININGS_MAX; tries++) {
    if (tries > 0) run.trainings += 1
    const watch = new EndWatch(run, placement)
    const wish: PartWish = { part: 'training', placement, number: run.trainings, ...defined({ source }) }
    const end = await runPart(run, wish, {
      ...(tries === 0 ? { prepared } : {}),
      until: (isOver) => watch.until(isOver),
    })
    const found = await forever(() => retraining.modelOf({ ...run.task(), jobId: end.jobId }), run)
    if (end.isSucceeded) {
      if (found !== null) return { kind: 'trained', trained: found }
      return { kind: 'failed', message: 'The training left no complete checkpoint, so there is no model.' }
    }
    const isGone = run.stop === undefined && isWithoutPlace(placement, end)
    if (isGone && end.result?.attempts === 0) return { kind: 'lost' }
    const next = watch.next ?? (isGone ? await watch.lost() : undefined)
    if (run.stop !== undefined || next?.kind !== 'continue') {
      const why = next?.kind === 'stop' ? next.message : end.message
      const kept = found === null ? '' : ` Its checkpoint of step ${found.model.step} is kept.`
      return { kind: 'failed', message: `${why}${kept}` }
    }
    await run.warn(next.message)
    placement = { kind: 'open', backends: next.backends }
    source = found?.source
  }
  const message = `The training was continued ${TRAININGS_MAX - 1} times and is not done.`
  return { kind: 'failed', message }
}

/** The provider took the reservation away, and its news may come later than the job's end. */
function isWithoutPlace(placement: RunPlacement, { result }: PartEnd): boolean {
  return placement.kind === 'reserved' && result?.reason === 'no-placement'
}

type Leaving = Extract<OverrunDecision, { kind: 'continue' | 'stop' }>

/** Watches the end of the reservation that a training runs in. */
class EndWatch {
  /** What was decided when it became too short; undefined while it is long enough. */
  next: Leaving | undefined
  private isExtended = false

  constructor(
    private readonly run: RetrainRun,
    private readonly placement: RunPlacement,
  ) {}

  /** The end as the provider says now: news of the reservation move it. */
  private get endAtMs(): number | undefined {
    const { placement } = this
    if (placement.kind !== 'reserved') return undefined
    return placement.reservation.usableUntilMs ?? placement.reservation.endsAtMs
  }

  /** Returns when the training must leave, or is over. */
  async until(isOver: () => boolean): Promise<void> {
    const { run, placement } = this
    if (placement.kind !== 'reserved') return condition(isOver)
    for (;;) {
      const { endAtMs } = this
      const hasMoved = (): boolean => !run.isCapacityLost && this.endAtMs !== endAtMs
      const isNews = (): boolean => isOver() || run.isCapacityLost || this.endAtMs !== endAtMs
      const lookInMs = endAtMs === undefined ? undefined : Math.max(0, endAtMs - OVERRUN_LOOK_MS - Date.now())
      if (lookInMs === undefined) await condition(isNews)
      else if (lookInMs > 0)
        await condition(isNews, lookInMs, { summary: 'until the end of the reservation is near' })
      if (isOver()) return
      if (hasMoved()) continue
      const decision = await this.decide(this.leftMs)
      if (decision.kind === 'extend') {
        this.isExtended = true
        await this.extend(decision)
        continue
      }
      this.next = decision
      const { leftMs } = this
      if (leftMs > 0) await condition(isNews, leftMs, { summary: 'until the reservation is over' })
      if (isOver() || !hasMoved()) return
      // An extension was paid, or the provider has moved the end.
      this.next = undefined
    }
  }

  /** What is to be done now that the reservation is gone without a word. */
  async lost(): Promise<Leaving | undefined> {
    const decision = await this.decide(0)
    return decision.kind === 'extend' ? undefined : decision
  }

  private get leftMs(): number {
    const { endAtMs, run } = this
    return run.isCapacityLost || endAtMs === undefined ? 0 : Math.max(0, endAtMs - Date.now())
  }

  /** An extension is tried once: a second one would be another decision of a person. */
  private async decide(leftMs: number): Promise<OverrunDecision> {
    const { run, placement } = this
    if (placement.kind !== 'reserved') throw new Error('only a reservation has an end')
    const { overrun } = run.input.spec
    const task = run.task()
    const rules = this.isExtended ? { ...overrun, extend: undefined } : overrun
    const input = { ...task.input, spec: { ...task.input.spec, overrun: rules } } as typeof task.input
    return decide(run, 'decideOverrun', { ...task, input, reservation: placement.reservation, leftMs })
  }

  private async extend({
    durationMs,
    upfrontMaxMicroUsd,
    message,
  }: Extract<OverrunDecision, { kind: 'extend' }>): Promise<void> {
    const { run, placement } = this
    if (placement.kind !== 'reserved' || run.notice === undefined) return
    try {
      const { id: reservationId } = run.notice
      const { reservation } = placement
      const wish = { durationMs, upfrontMaxMicroUsd, ...defined({ seenEndsAtMs: reservation.endsAtMs }) }
      await extending.extendCapacity({ ...run.task(), reservationId, ...wish })
      await run.warn(message)
    } catch (error) {
      await run.warn(`The reservation was not extended: ${failureFrom(error).message}`)
    }
  }
}
