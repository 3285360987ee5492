import { SECOND_MS } from '../../../core/time'
import type { Behaviour } from './behaviour'
import { trained, type State } from './checkpoints'

export type WorkloadEvent = {
  kind: 'died' | 'hung' | 'silent' | 'failed' | 'checkpoint' | 'finished'
  step: number
}

/** What happens first where several things happen at one step: it dies before it has saved. */
const RANKS: WorkloadEvent['kind'][] = ['died', 'hung', 'silent', 'failed', 'checkpoint', 'finished']

/** A training that runs by the clock: its state at an instant follows from when it began. */
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

  /** When the next event happens. */
  get nextAtMs(): number {
    return this.#atMs(this.#next().step)
  }

  /** Works until an instant, or until something happens before it: then once more to go on. */
  advance(untilMs: number): WorkloadEvent | undefined {
    const event = this.#next()
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

  #next(): WorkloadEvent {
    const { stepsTotal, checkpointEverySteps, diesAtStep, hangsAtStep, silentAtStep, fails } = this.behaviour
    const { step, rank } = this.#last
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
      finished: Math.max(stepsTotal, this.#begun.step),
    }
    const events = RANKS.flatMap((kind, at) => {
      const due = steps[kind]
      const isAhead = due !== undefined && (due > step || (due === step && at > rank))
      return isAhead && due <= stepsTotal ? [{ kind, step: due }] : []
    })
    return events.reduce((first, event) => (event.step < first.step ? event : first))
  }
}
