import type { Capabilities } from '../../core/capabilities'
import type { JobSpec } from '../../core/job/job'
import { microUsd } from '../../core/money/money'
import type { Offer } from '../../core/offer'
import type { BackendAnswer, Plan, Rejection } from '../../core/job/plan'
import { DEFAULT_TIMING } from '../../core/time/timing'
import { forecastOf, type Forecasted } from '../../planner/forecast/forecast'
import { makePlan } from '../../planner/plan/plan'
import type { PlanRequest } from '../../planner/plan/request'
import { SPEC as JOB } from '../support/spec'

export const NOW_MS = Date.UTC(2026, 10, 21)
/** Its machine may be lost as often as it likes. */
export const SPEC: JobSpec = { ...JOB, retries: { failures: 0, interruptions: 100 } }

export const CAPABILITIES: Capabilities = {
  capacityTypes: ['spot', 'on-demand'],
  imageRunner: 'runner',
  runnerStart: 'with-launch',
  idempotency: 'token',
  billsUntil: 'exit',
  price: 'static',
}

export function offer(changes: Partial<Offer> = {}): Offer {
  return {
    backend: 'here',
    capacityType: 'on-demand',
    type: 'small',
    place: 'a',
    shape: { cpus: 8, memoryGiB: 32, gpus: 1, accelerator: 'L4', gpuMemoryGiB: 22 },
    priceMicroUsdPerHour: microUsd(1),
    priceSource: { kind: 'live', observedAtMs: NOW_MS },
    availability: 'available',
    ...changes,
  }
}

export function answer(offers: Offer[], capabilities: Partial<Capabilities> = {}): BackendAnswer {
  return { backend: 'here', capabilities: { ...CAPABILITIES, ...capabilities }, offers }
}

export function request(offers: Offer[], changes: Partial<PlanRequest> = {}): PlanRequest {
  return {
    spec: SPEC,
    timing: DEFAULT_TIMING,
    answers: [answer(offers)],
    silentBackends: [],
    avoid: [],
    nowMs: NOW_MS,
    ...changes,
  }
}

export const plan = (offers: Offer[], changes: Partial<PlanRequest> = {}): Plan =>
  makePlan(request(offers, changes))
/** What a job is expected to take and cost on an offer. */
export const expected = (
  one: Offer,
  { isShaky = false, ...changes }: Partial<PlanRequest> & { isShaky?: boolean } = {},
  capabilities: Partial<Capabilities> = {},
): Forecasted => {
  const asked = request([one], changes)
  return forecastOf(one, { ...CAPABILITIES, ...capabilities }, { request: asked, isShaky })
}
export const rejection = (one: Offer, changes: Partial<PlanRequest> = {}): Rejection | undefined =>
  plan([one], changes).rejections[0]
