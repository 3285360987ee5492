/** EC2's rules for future-dated reservations. */
import { ApiError } from '../wire/errors'
import { DAY_MS } from './block-rules'
import type { Ec2 } from './ec2'
import type { Commitment } from './reservation-model'

const LEAST_AHEAD_MS = 5 * DAY_MS
const MOST_AHEAD_MS = 120 * DAY_MS
const LEAST_COMMITMENT_MS = 14 * DAY_MS
const LEAST_VCPUS = 32
/** The families C, M, R, I, T and G; the names of Inf and Trn begin with the same letters. */
const FAMILIES = /^(c|m|r|i|im|is|t|g)\d/

export interface FutureFields {
  InstanceType: string
  InstanceCount: number
  InstanceMatchCriteria: 'open' | 'targeted'
  EndDate?: number | undefined
  StartDate?: number | undefined
  /** Seconds. */
  CommitmentDuration?: number | undefined
  DeliveryPreference?: string | undefined
}

/** Returns the start and the commitment of a future-dated reservation; `undefined` for an immediate one. Throws if it breaks a rule. */
export function futureWish(
  ec2: Ec2,
  fields: FutureFields,
): { startsAtMs: number; commitment: Commitment } | undefined {
  const { StartDate: startsAtMs, CommitmentDuration: seconds, DeliveryPreference: delivery } = fields
  const given = [startsAtMs, seconds, delivery].filter((each) => each !== undefined)
  if (given.length === 0) return undefined
  if (startsAtMs === undefined || seconds === undefined || delivery === undefined)
    throw new ApiError(
      'MissingParameter',
      'A future-dated reservation needs StartDate, CommitmentDuration and DeliveryPreference',
    )
  const problem = problemOf(ec2, fields, { startsAtMs, durationMs: seconds * 1000 })
  if (problem !== undefined) throw new ApiError('InvalidParameterValue', problem)
  return { startsAtMs, commitment: { durationMs: seconds * 1000, count: fields.InstanceCount } }
}

function problemOf(
  ec2: Ec2,
  {
    InstanceType: name,
    InstanceCount: count,
    InstanceMatchCriteria: matching,
    EndDate: endsAtMs,
  }: FutureFields,
  { startsAtMs, durationMs }: { startsAtMs: number; durationMs: number },
): string | undefined {
  const aheadMs = startsAtMs - ec2.nowMs
  const vcpus = count * (ec2.parts.world.types.get(name)?.vcpus ?? 0)
  if (aheadMs < LEAST_AHEAD_MS || aheadMs > MOST_AHEAD_MS)
    return 'StartDate must be between 5 and 120 days from now.'
  if (durationMs < LEAST_COMMITMENT_MS) return 'CommitmentDuration must be at least 14 days.'
  if (matching !== 'targeted') return 'InstanceMatchCriteria must be targeted for a future-dated reservation.'
  if (!FAMILIES.test(name)) return `Instance type ${name} does not support future-dated reservations.`
  if (vcpus < LEAST_VCPUS)
    return `InstanceCount must be large enough for ${LEAST_VCPUS} vCPUs; it has ${vcpus}.`
  if (endsAtMs !== undefined && endsAtMs < startsAtMs + durationMs)
    return 'EndDate must not be within the commitment duration.'
  return undefined
}
