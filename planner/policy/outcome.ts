import type { PlanInput, PlanOutcome } from '../../core/activities'
import type { Failure } from '../../core/failure'
import type { Plan, PlanFacts } from '../../core/job/plan'
import { SECOND_MS } from '../../core/time/time'
import { isDeadlineDue } from '../plan/admission'
import { summaryOf, whyNone } from '../plan/explain'
import { makeOrder } from '../plan/order'
import { makePlan, outlook } from '../plan/plan'
import { requestFor, type PlanRequest } from '../plan/request'

/** First pause of a job that finds no free machine. */
const LOOK_AGAIN_FIRST_MS = 2 * SECOND_MS

/** The ranking for a job, and what follows from it. Pure: the same input and facts always give the same plan and the same order. */
export function planFor(input: PlanInput, facts: PlanFacts): { plan: Plan; outcome: PlanOutcome } {
  const request = requestFor(input, facts)
  const plan = makePlan(request)
  return { plan, outcome: outcomeOf(plan, request, input) }
}

function outcomeOf(plan: Plan, request: PlanRequest, input: PlanInput): PlanOutcome {
  const [best] = plan.placements
  if (best !== undefined) {
    const order = makeOrder(plan, input, request.answers)
    return {
      kind: 'place',
      order,
      words: { summary: summaryOf(best), reasons: [...best.reasons, ...best.risks] },
    }
  }
  const message = `No offer fits this job: ${whyNoOffer(request) ?? whyNone(plan)}.`
  const named = outcomeOfNamed(request)
  if (named !== undefined && outlook(plan) !== 'wait') return named
  switch (outlook(plan)) {
    case 'wait':
      return {
        kind: 'wait',
        reason: message,
        retryInMs: LOOK_AGAIN_FIRST_MS,
        silentBackends: plan.silentBackends,
      }
    case 'quota':
      return {
        kind: 'never',
        reason: 'quota',
        failure: { class: 'quota', message, hint: 'Request a higher quota, or allow another backend.' },
      }
    case 'never':
      // The deadline can come between two looks, shortly before its timer ends the wait.
      return {
        kind: 'never',
        reason: isDeadlineDue(request) ? 'deadline-reached' : 'no-placement',
        failure: { class: 'invalid', message },
      }
  }
}

/** A job waits for the reservation that it names as long as that may exist. */
function outcomeOfNamed({ spec, named }: PlanRequest): PlanOutcome | undefined {
  if (named === undefined) return undefined
  const { state, message: news = '' } = named
  switch (state) {
    case 'open': {
      const reason = `The reservation ${spec.reservation} has no places yet. ${news}`.trimEnd()
      return { kind: 'wait', reason, retryInMs: LOOK_AGAIN_FIRST_MS, silentBackends: [] }
    }
    case 'over': {
      const message = `The reservation ${spec.reservation}, which the job names, is over. ${news}`.trimEnd()
      return { kind: 'never', reason: 'reservation-ended', failure: failureOfNamed(message) }
    }
    case 'unknown': {
      const message = `The job names the reservation ${spec.reservation}, and no backend that it may use has one of that name.`
      return { kind: 'never', reason: 'no-placement', failure: failureOfNamed(message) }
    }
  }
}

function failureOfNamed(message: string): Failure {
  const hint = 'Name another one (`crucible reservations list`), or leave out `reservation` to run anywhere.'
  return { class: 'invalid', message, hint }
}

/** The backends that were asked, if none had an offer to reject. */
function whyNoOffer({ spec, target, answers, silentBackends }: PlanRequest): string | undefined {
  if (silentBackends.length > 0 || answers.some(({ offers }) => offers.length > 0)) return undefined
  if (answers.length > 0) return `no offer from ${answers.map(({ backend }) => backend).join(', ')}`
  const wanted = (target === undefined ? spec.backends : [target]).map(({ backend }) => backend)
  return `this deployment has no backend ${[...new Set(wanted)].join(' or ')}`.trimEnd()
}
