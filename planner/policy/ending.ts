import type { ResultReason, RunnerResult } from '../../core/documents'
import { failureOfEnd, type Failure } from '../../core/failure'
import { asSentence } from '../../core/one-line'
import { refusalIn, refusalOf } from '../../core/store-refusal'
import type { AttemptEnd } from '../../core/job/ledger'
import type { Observation } from '../../core/observation'
import { MINUTE_MS } from '../../core/time/time'

/** Returns how an attempt ended, according to its runner. */
export function endFromResult(result: RunnerResult): AttemptEnd {
  if (result.outcome === 'succeeded') return { kind: 'succeeded' }
  switch (result.reason) {
    case 'cancelled':
    case 'migrated':
    case 'deadline':
    case 'budget':
    case 'superseded':
    case 'expired':
    case 'lease':
      return { kind: 'stopped', by: result.reason }
    case 'late':
    case 'interrupted':
    case 'completed':
    case 'workload':
    case 'setup':
    case 'bundle':
    case 'input':
    case 'no-input':
    case 'store-refused':
    case 'image':
    case 'engine':
    case 'image-login':
    case 'registry':
    case 'secrets':
    case 'disk-full':
    case 'runner':
      return { kind: 'failed', isLaunched: true, failure: failureOfResult(result, result.reason) }
  }
}

const LOGIN_HINT =
  'Correct the name under image, or set image_login to a user and a token with read access; for Amazon ECR, give the role of the machine the policy AmazonEC2ContainerRegistryReadOnly.'
const NO_INPUT_HINT = 'Correct it under inputs, or make it available there, then submit the job again.'
const INPUT_HINT = 'Check that its server answers, and that the machines can reach it.'
const ENGINE_HINT = 'Repair the container engine (Docker or Podman) on the machine, or allow other machines.'
const REGISTRY_HINT = 'Check that it answers, and that the machines can reach it.'
/** Pause after a registry failure: a machine has already waited for the registry, and the next one costs money again. */
const REGISTRY_PAUSE_MS = 5 * MINUTE_MS

type Failing = Exclude<
  ResultReason,
  'cancelled' | 'migrated' | 'deadline' | 'budget' | 'superseded' | 'expired' | 'lease'
>

function failureOfResult({ message }: RunnerResult, reason: Failing): Failure {
  switch (reason) {
    case 'interrupted':
      return { class: 'interrupted', message }
    case 'late':
      return { class: 'capacity', message }
    case 'workload':
    case 'setup':
      return { class: 'workload', message, code: reason }
    case 'disk-full':
      return { class: 'workload', message, code: reason, hint: 'Increase resources.disk.' }
    case 'image':
      return { class: 'invalid', message, code: reason, hint: 'Correct the name and the tag under image.' }
    case 'engine':
      return { class: 'unreachable', message, code: reason, hint: ENGINE_HINT }
    case 'image-login':
      return { class: 'auth', message, code: reason, hint: LOGIN_HINT }
    case 'registry':
      return {
        class: 'transient',
        message,
        code: reason,
        hint: REGISTRY_HINT,
        retryAfterMs: REGISTRY_PAUSE_MS,
      }
    case 'bundle':
    case 'secrets':
      return { class: 'invalid', message, code: reason }
    case 'no-input':
      return { class: 'invalid', message: asSentence(message), code: 'input', hint: NO_INPUT_HINT }
    case 'input':
      return { class: 'transient', message: asSentence(message), code: 'input', hint: INPUT_HINT }
    case 'store-refused':
      return refusalOf(message)
    case 'completed':
    case 'runner':
      return { class: 'unclassified', message, code: reason }
  }
}

/** Facts about a machine in addition to its last observation. */
export interface Lost {
  /** Whether its runner has reported. */
  hasSpoken: boolean
  /** Whether it only left its provider's queue, so that nothing was billed. */
  wasOnlyQueued?: boolean
  /** Whether its time was up, by its reservation or the provider's run limit. */
  isTimeUp?: boolean
}

/**
 * Returns how an attempt ended whose machine is gone and left no result. Providers may report the same for a machine that never started as
 * for broken hardware, but a machine whose runner has reported had started.
 */
export function endFromLoss(
  observation: Observation,
  { hasSpoken, wasOnlyQueued = false, isTimeUp = false }: Lost,
): AttemptEnd {
  const detail = observation.detail === undefined ? '' : ` (${observation.detail})`
  const failed = (failure: Failure): AttemptEnd => ({ kind: 'failed', isLaunched: true, failure })
  if (wasOnlyQueued) return endOfQueue(`The provider dropped the machine from its queue${detail}.`)
  if (isTimeUp) return { kind: 'stopped', by: 'expired' }
  const cause = observation.cause ?? 'unknown'
  if (cause === 'failed-to-start' && hasSpoken)
    return failed({ class: 'interrupted', message: `The machine failed${detail}.` })
  switch (cause) {
    case 'interrupted':
      return failed({ class: 'interrupted', message: `The machine was interrupted${detail}.` })
    case 'failed-to-start':
      return failed({
        ...(observation.failure === undefined ? { class: 'capacity' } : failureOfEnd(observation.failure)),
        message: `The machine never started${detail}.`,
      })
    case 'ended':
    case 'unknown':
      return failed({ class: 'interrupted', message: `The machine ended without a result${detail}.` })
  }
}

/**
 * Returns how an attempt ended whose machine has no runner, and reported that in these words. A machine elsewhere may start one; a second
 * failure in a row is for a person.
 */
export function endOfStart(words: string): AttemptEnd {
  const refusal = refusalIn(words)
  if (refusal !== undefined) return { kind: 'failed', isLaunched: true, failure: refusalOf(refusal) }
  const message = `The machine started no runner: ${words.replace(/\.$/, '')}.`
  return {
    kind: 'failed',
    isLaunched: true,
    failure: { class: 'unreachable', message, code: 'start-failed' },
  }
}

/** A machine that never left its provider's queue is missing capacity: no machine was launched, and nothing was interrupted. */
export function endOfQueue(message: string): AttemptEnd {
  return { kind: 'failed', isLaunched: false, failure: { class: 'capacity', message } }
}
