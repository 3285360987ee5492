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

/** Trains in the placement; continues elsewhere if its reservation is over first and the file says where. */
export async function train(run: RetrainRun, prepared: JobInput | PartEnd): Promise<Trained | string> {
  let placement = run.placement!
  let source: JobSource | undefined
  if ('isSucceeded' in prepared) return prepared.message
  for (let number = 1; number <= TRAININGS_MAX; number++) {
    const watch = new EndWatch(run, placement)
    const wish: PartWish = { part: 'training', placement, number, ...defined({ source }) }
    const end = await runPart(run, wish, {
      ...(number === 1 ? { prepared } : {}),
      until: (isOver) => watch.until(isOver),
    })
    const found = await forever(() => retraining.modelOf({ ...run.task(), jobId: end.jobId }), run)
    if (end.isSucceeded) return found ?? 'The training left no complete checkpoint, so there is no model.'
    const { next } = watch
    if (run.stop !== undefined || next?.kind !== 'continue') {
      const why = next?.kind === 'stop' ? next.message : end.message
      return found === null ? why : `${why} Its checkpoint of step ${found.model.step} is kept.`
    }
    await run.warn(next.message)
    placement = { kind: 'open', backends: next.backends }
    source = found?.source
  }
  return `The training was continued ${TRAININGS_MAX - 1} times and is not done.`
}

/** Watches the end of the reservation that a training runs in. */
class EndWatch {
  /** What was decided when it became too short; undefined while it is long enough. */
  next: Extract<OverrunDecision, { kind: 'continue' | 'stop' }> | undefined
  private isExtended = false

  constructor(
    private readonly run: RetrainRun,
    private readonly placement: RunPlacement,
  ) {}

  /** Returns when the training must leave, or is over. */
  async until(isOver: () => boolean): Promise<void> {
    const { run, placement } = this
    if (placement.kind !== 'reserved') return condition(isOver)
    for (;;) {
      const isLost = (): boolean => isOver() || run.isCapacityLost
      const endAtMs = placement.reservation.usableUntilMs ?? placement.reservation.endsAtMs
      const lookInMs = endAtMs === undefined ? undefined : Math.max(0, endAtMs - OVERRUN_LOOK_MS - Date.now())
      if (lookInMs === undefined) await condition(isLost)
      else if (lookInMs > 0)
        await condition(isLost, lookInMs, { summary: 'until the end of the reservation is near' })
      if (isOver()) return
      const decision = await this.decide(endAtMs)
      if (decision.kind === 'extend') {
        this.isExtended = true
        await this.extend(decision)
        continue
      }
      this.next = decision
      const leftMs = run.isCapacityLost || endAtMs === undefined ? 0 : Math.max(0, endAtMs - Date.now())
      if (leftMs > 0) await condition(isLost, leftMs, { summary: 'until the reservation is over' })
      return
    }
  }

  /** An extension is tried once: a second one would be another decision of a person. */
  private async decide(endAtMs: number | undefined): Promise<OverrunDecision> {
    const { run, placement } = this
    if (placement.kind !== 'reserved') throw new Error('only a reservation has an end')
    const { overrun } = run.input.spec
    const task = run.task()
    const rules = this.isExtended ? { ...overrun, extend: undefined } : overrun
    const input = { ...task.input, spec: { ...task.input.spec, overrun: rules } } as typeof task.input
    const leftMs = run.isCapacityLost || endAtMs === undefined ? 0 : Math.max(0, endAtMs - Date.now())
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
      for (const name of ['usableUntilMs', 'endsAtMs'] as const)
        if (reservation[name] !== undefined) reservation[name] += durationMs
      await run.warn(message)
    } catch (error) {
      await run.warn(`The reservation was not extended: ${failureFrom(error).message}`)
    }
  }
}
