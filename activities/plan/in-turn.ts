import type { PlanInput, PlanOutcome } from '../../core/activities'
import type { Plan } from '../../core/plan'
import { SECOND_MS } from '../../core/time'
import { lineInWords, type Asker, type LinePlace } from '../../core/waiting'
import type { Admission, Answered, WaitingLine } from './waiting-line'

/** A job may wait for weeks: it asks often at first, then rarely. */
const LOOK_AGAIN_MAX_MS = 30 * SECOND_MS

export interface Asked {
  plan: Plan
  outcome: PlanOutcome
  /** The number of places that a backend counts for the job; missing if none counts. */
  freePlaces?: number | undefined
}

interface Question {
  isWaiting: boolean
  ask: (asker: Asker | undefined) => Promise<Asked>
}

/** Plans once no older job with the same request is ahead; until then it returns no plan and does not ask the provider. */
export async function planInTurn(
  line: WaitingLine | undefined,
  input: PlanInput,
  { isWaiting, ask }: Question,
): Promise<{ plan?: Plan; outcome: PlanOutcome }> {
  const admission: Admission = (await line?.admit(input, { isWaiting })) ?? { kind: 'ask' }
  if (admission.kind === 'wait') return { outcome: inLine(admission.place, admission.retryInMs) }
  const { at } = admission
  try {
    const { plan, outcome, freePlaces } = await ask(line?.askerOf(input, at))
    await line?.asked(input, at, { came: classifyOutcome({ plan, outcome }), freePlaces })
    if (line === undefined || at === undefined || outcome.kind !== 'wait' || at.place.position === 1)
      return { plan, outcome }
    return { plan, outcome: inLine(at.place, line.retryInMs(input, at.place.position, 1)) }
  } catch (error) {
    await line?.asked(input, at, { came: 'wait' })
    throw error
  }
}

function inLine(place: LinePlace, retryInMs: number): PlanOutcome {
  const reason = `Queue: ${lineInWords(place)}. Older jobs with equal requests go first.`
  return { kind: 'wait', reason, retryInMs, silentBackends: [], position: place.position }
}

/** Obstacles of this job alone, such as its budget, must not block others in its queue. */
function classifyOutcome({ plan, outcome }: Asked): Answered['came'] {
  if (outcome.kind === 'place') return 'place'
  const isScarce = plan.rejections.some(
    ({ why, costMicroUsd }) => why === 'unavailable' && costMicroUsd === undefined,
  )
  const isForCapacity = isScarce || plan.silentBackends.length > 0
  return outcome.kind === 'wait' && isForCapacity ? 'wait' : 'aside'
}

type Waiting = Extract<PlanOutcome, { kind: 'wait' }>

/** Time until a waiting job asks again. */
export function pauseMs(
  line: WaitingLine | undefined,
  input: PlanInput,
  { outcome: { retryInMs, position }, attempt }: { outcome: Waiting; attempt: number },
): number {
  // A job behind others was told when to ask again; the first one asks less often over time.
  if (position !== undefined) return retryInMs
  return line?.retryInMs(input, 1, attempt) ?? Math.min(retryInMs * attempt, LOOK_AGAIN_MAX_MS)
}
