import { faultSchema, type FaultKind } from '#small-cloud/world/fault-schema'
import type { FaultText } from '#small-cloud'
import type { Dice } from '../kit/dice'

/** A call of a service. */
export interface Where {
  service: NonNullable<NonNullable<TextOf<'error'>['where']>['service']>
  action: string
}

/** A fault as it is written in a world, for one kind. */
type TextOf<K extends FaultKind> = Extract<FaultText, { fault: K }>

/**
 * One rule of each kind, as bad as a job must be able to bear; for a kind that a provider's jobs do not meet here, why. A new kind needs its
 * line at every provider.
 */
export type Draws = { readonly [K in FaultKind]: ((dice: Dice) => TextOf<K>) | string }

/** Every kind of fault that a provider's jobs can meet. */
export function kindsOf(draws: Draws): FaultKind[] {
  return faultSchema.options
    .map(({ shape }) => shape.fault.value)
    .filter((kind) => typeof draws[kind] === 'function')
}

export function drawFault(dice: Dice, draws: Draws, kind: FaultKind): FaultText {
  const draw = draws[kind] as ((dice: Dice) => FaultText) | string
  if (typeof draw === 'string') throw new Error(`no job here meets the fault ${kind}: ${draw}`)
  return draw(dice)
}

/** The calls that a job makes in its life, by what they do. */
export interface Calls {
  changes: readonly Where[]
  reads: readonly Where[]
  /** What a service answers when it is unwell. */
  errorsOf: (call: Where) => readonly { code: string; status: number }[]
}

/** The faults that any call can meet. */
export function faultsOfCalls({
  changes,
  reads,
  errorsOf,
}: Calls): Pick<Draws, 'error' | 'lost-answer' | 'slow'> {
  return {
    error: (dice) => {
      const call = dice.oneOf([...changes, ...reads])
      const error = dice.oneOf(errorsOf(call))
      // Reads are sent three times before anybody hears of it; what changes something once, and then after a growing pause.
      const most = changes.includes(call) ? 4 : 9
      return { fault: 'error', ...error, times: dice.between(1, most), where: call }
    },
    'lost-answer': (dice) => ({
      fault: 'lost-answer',
      times: dice.between(1, 2),
      where: dice.oneOf(changes),
      instead: dice.oneOf(['reset', 'internal-error', 'unavailable', 'silence'] as const),
    }),
    slow: (dice) => ({
      fault: 'slow',
      by: dice.between(100, 2_500),
      times: dice.between(1, 3),
      where: dice.oneOf([...changes, ...reads]),
    }),
  }
}

/** Of the object store, where it is a bucket. */
const OF_THE_STORE = (['PutObject', 'GetObject', 'HeadObject', 'ListObjectsV2'] as const).map(
  (action): Where => ({ service: 's3', action }),
)

/** One rule about the calls of the store. */
export function drawStoreFault(dice: Dice): FaultText {
  const where = dice.oneOf(OF_THE_STORE)
  const common = { where, times: dice.between(1, 6), skip: dice.between(0, 60) }
  return dice.oneOf<FaultText>([
    { fault: 'error', code: 'SlowDown', status: 503, ...common },
    { fault: 'error', code: 'InternalError', status: 500, ...common },
    { fault: 'lost-answer', instead: 'reset', ...common },
    { fault: 'lost-answer', instead: 'internal-error', ...common },
    { fault: 'slow', by: dice.between(100, 1_500), ...common },
  ])
}

/** Stock comes back: a budget may pay for the cheap machines only, and a job waits for them for as long as it takes. */
export const RESTOCKED_MS = 60_000

/** What befalls a machine of any provider. */
export const OF_MACHINES: Pick<Draws, 'crash' | 'hang' | 'no-boot'> = {
  crash: (dice) => ({ fault: 'crash', after: dice.between(0, 2_000), times: dice.between(1, 2) }),
  hang: (dice) => ({ fault: 'hang', after: dice.between(200, 2_000), times: 1 }),
  'no-boot': () => ({ fault: 'no-boot', times: 1 }),
}

/** Reasons that several providers share. */
export const NOT_HERE = {
  images: 'the scripted machines pull no images, those of test/recovery do',
  conditions: 'jobs must not run on a store without conditional writes',
  fleets: 'it buys machines one by one',
  agents: 'its machines have no agent, and get no commands',
  purchases: 'the jobs buy no reserved capacity',
} as const

/** Kinds that only buyers of reserved capacity meet. */
export const UNMET_WITHOUT_PURCHASES = {
  'stale-list': NOT_HERE.purchases,
  'offering-sold': NOT_HERE.purchases,
  'payment-fails': NOT_HERE.purchases,
  'payment-late': NOT_HERE.purchases,
  'reservation-pending': NOT_HERE.purchases,
  'reservation-unsupported': NOT_HERE.purchases,
  'reservation-late': NOT_HERE.purchases,
} as const

/** Kinds that jobs do not meet at providers whose machines are bought one by one and get no commands. */
export const UNMET_BEYOND_EC2 = {
  ...UNMET_WITHOUT_PURCHASES,
  'partial-fleet': NOT_HERE.fleets,
  'fleet-silent': NOT_HERE.fleets,
  'fleet-error': NOT_HERE.fleets,
  'no-agent': NOT_HERE.agents,
  'agent-lost': NOT_HERE.agents,
  'command-doubled': NOT_HERE.agents,
  'command-lost': NOT_HERE.agents,
  'command-late': NOT_HERE.agents,
  'command-truncated': NOT_HERE.agents,
  'registry-down': NOT_HERE.images,
  'registry-slow': NOT_HERE.images,
  'ignored-condition': NOT_HERE.conditions,
  'request-dangles': 'it has no requests in addition to machines',
} as const
