import { ApplicationFailure, Context } from '@temporalio/activity'
import { carrying } from '../../core/failure'
import type { PlanInput, PlanOutcome } from '../../core/activities'
import type { Plan } from '../../core/job/plan'
import { SECOND_MS } from '../../core/time/time'
import { lineMessage, type Asker, type LinePlace } from '../../core/job/waiting'
import type { Admission, Answered, WaitingLine } from './waiting-line'

/** A job may wait for weeks: it asks often at first, then rarely. */
const LOOK_AGAIN_MAX_MS = 30 * SECOND_MS

export interface PlanWithPlaces {
  plan: Plan
  outcome: PlanOutcome
  /** The number of places that a backend counts for the job; missing if none counts. */
  freePlaces?: number | undefined
}

interface Question<T extends PlanWithPlaces> {
  isWaiting: boolean
  ask: (asker: Asker | undefined) => Promise<T>
}

/** Plans once no older job with the same request is ahead; until then it does not ask the provider, and `asked` is missing. */
export async function planInTurn<T extends PlanWithPlaces>(
  line: WaitingLine | undefined,
  input: PlanInput,
  { isWaiting, ask }: Question<T>,
): Promise<{ asked?: T; outcome: PlanOutcome }> {
  const admission: Admission = (await line?.admit(input, { isWaiting })) ?? { kind: 'ask' }
  if (admission.kind === 'wait') return { outcome: inLine(admission.place, admission.retryInMs) }
  const { at } = admission
  try {
    const asked = await ask(line?.askerOf(input, at))
    const { outcome, freePlaces } = asked
    const came = classifyOutcome(asked)
    await line?.asked(input, at, { came, freePlaces })
    if (line === undefined || at === undefined || came !== 'wait' || outcome.kind !== 'wait')
      return { asked, outcome }
    const { place } = at
    if (place.position === 1) return { asked, outcome: { ...outcome, position: 1 } }
    return { asked, outcome: inLine(place, line.retryInMs(input, place.position, 1)) }
  } catch (error) {
    await line?.asked(input, at, { came: 'wait' })
    throw error
  }
}

function inLine(place: LinePlace, retryInMs: number): PlanOutcome {
  return { kind: 'wait', reason: lineMessage(place), retryInMs, silentBackends: [], position: place.position }
}

/** Obstacles of this job alone, such as its budget, must not block others in its queue. */
function classifyOutcome({ plan, outcome }: PlanWithPlaces): Answered['came'] {
  if (outcome.kind === 'place') return 'place'
  const isScarce = plan.rejections.some(
    ({ why, costMicroUsd }) => why === 'unavailable' && costMicroUsd === undefined,
  )
  const isForCapacity = isScarce || plan.silentBackends.length > 0
  return outcome.kind === 'wait' && isForCapacity ? 'wait' : 'aside'
}

/** Asks until a place is free while the job's turn is near; then fails, and Temporal asks again after a pause. */
export async function untilPlaced(
  { line, now }: { line?: WaitingLine; now: () => number },
  input: PlanInput,
  { signal, plan }: { signal: AbortSignal; plan: (waitedMs: number) => Promise<PlanOutcome> },
): Promise<Exclude<PlanOutcome, Waiting>> {
  const { attempt, scheduledTimestampMs } = Context.current().info
  const sinceMs = now()
  let outcome: PlanOutcome
  do {
    outcome = await plan(Math.max(0, now() - scheduledTimestampMs))
    if (outcome.kind !== 'wait') return outcome
  } while (await line?.linger(input, { position: outcome.position, sinceMs, signal }))
  throw ApplicationFailure.create({
    ...carrying({
      class: 'capacity',
      message: outcome.reason,
      retryAfterMs: pauseMs(line, input, { outcome, attempt }),
    }),
    // Waiting is not an error, so neither logs nor metrics count it as one.
    category: 'BENIGN',
  })
}

type Waiting = Extract<PlanOutcome, { kind: 'wait' }>

/** Time until a waiting job asks again. */
function pauseMs(
  line: WaitingLine | undefined,
  input: PlanInput,
  { outcome: { retryInMs, position }, attempt }: { outcome: Waiting; attempt: number },
): number {
  // A job behind others knows when to ask again; the first one asks less often over time.
  if (position !== undefined && position > 1) return retryInMs
  return line?.retryInMs(input, 1, attempt) ?? Math.min(retryInMs * attempt, LOOK_AGAIN_MAX_MS)
}
