import { SECOND_MS } from '../../../core/time/time'
import type { Behaviour } from './behaviour'
import { trained, type State } from './checkpoints'

export type WorkloadEvent = {
  kind: 'died' | 'hung' | 'silent' | 'failed' | 'checkpoint' | 'finished'
  step: number
}

/** What happens first where several things happen at one step: it dies before it has saved. */
const RANKS: WorkloadEvent['kind'][] = ['died', 'hung', 'silent', 'failed', 'checkpoint', 'finished']

/** A training that runs by the clock: its state at an instant follows from its start time. */
export class ScriptedWorkload {
  state: State
  readonly #begun: { step: number; atMs: number }
  #last: { step: number; rank: number }

  constructor(
    readonly behaviour: Behaviour,
    from: State,
    atMs: number,
  ) {
    this.state = from
    this.#begun = { step: from.step, atMs }
    // What happened at the step that it was restored from happened to the attempt before, unless there is nothing left to do.
    this.#last = { step: from.step, rank: RANKS.indexOf('checkpoint') }
  }

  /** The step that it began with, and when. */
  get first(): { firstStep: number; firstStepAtMs: number } {
    return { firstStep: this.#begun.step, firstStepAtMs: this.#begun.atMs }
  }

  /** When the next event happens. */
  get nextAtMs(): number {
    const event = this.#next()
    return event === undefined ? Infinity : this.#atMs(event.step)
  }

  /** Works until an instant, or until something happens before it: then once more to go on. Nothing follows its end. */
  advance(untilMs: number): WorkloadEvent | undefined {
    const event = this.#next()
    if (event === undefined) return undefined
    const isDue = this.#atMs(event.step) <= untilMs
    const doneMs = Math.max(0, untilMs - this.#begun.atMs)
    const step = isDue
      ? event.step
      : this.#begun.step + Math.floor((doneMs * this.behaviour.stepsPerSecond) / SECOND_MS)
    this.state = trained(this.state, step)
    if (!isDue) return undefined
    this.#last = { step: event.step, rank: RANKS.indexOf(event.kind) }
    return event
  }

  #atMs(step: number): number {
    return (
      this.#begun.atMs + Math.ceil(((step - this.#begun.step) * SECOND_MS) / this.behaviour.stepsPerSecond)
    )
  }

  #next(): WorkloadEvent | undefined {
    const { stepsTotal, checkpointEverySteps, diesAtStep, hangsAtStep, silentAtStep, fails } = this.behaviour
    const { step, rank } = this.#last
    // One that was restored beyond its own end has only to end.
    const endStep = Math.max(stepsTotal, this.#begun.step)
    const hasSaved = rank >= RANKS.indexOf('checkpoint')
    const saveAt =
      (Math.floor(step / checkpointEverySteps) + (hasSaved || step % checkpointEverySteps > 0 ? 1 : 0)) *
      checkpointEverySteps
    const steps: Record<WorkloadEvent['kind'], number | undefined> = {
      died: diesAtStep,
      hung: hangsAtStep,
      silent: silentAtStep,
      failed: fails?.atStep,
      checkpoint: checkpointEverySteps > 0 ? saveAt : undefined,
      finished: endStep,
    }
    const events = RANKS.flatMap((kind, at) => {
      const due = steps[kind]
      const isAhead = due !== undefined && (due > step || (due === step && at > rank))
      return isAhead && due <= endStep ? [{ kind, step: due }] : []
    })
    return events.sort((one, other) => one.step - other.step)[0]
  }
}
