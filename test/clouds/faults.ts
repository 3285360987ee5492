import { faultSchema, type FaultKind as AnyFaultKind } from '#small-cloud/world/fault-schema'
import type { FaultText } from '#small-cloud'
import type { Dice } from '../kit/dice'

/**
 * Faults that these worlds do not meet: the scripted machines pull no images (those of test/recovery do), a dangling spot request is
 * only found by garbage collection, jobs must not run on a store without conditional writes, and EC2 neither queues launches nor reports
 * unhealthy machines.
 */
const UNMET = [
  ...(['registry-down', 'registry-slow', 'request-dangles', 'ignored-condition'] as const),
  ...(['unhealthy', 'queued'] as const),
] as const
export type FaultKind = Exclude<AnyFaultKind, (typeof UNMET)[number]>

/** Every kind of fault that a world can hold and such a machine can meet. */
export const FAULT_KINDS: FaultKind[] = faultSchema.options
  .map(({ shape }) => shape.fault.value)
  .filter((kind): kind is FaultKind => !UNMET.some((unmet) => unmet === kind))

/** A fault as it is written in a world, for one kind. */
type TextOf<K extends FaultKind> = Extract<FaultText, { fault: K }>

/** The calls that a job's life is made of. */
export const CHANGES = [
  ['ec2', 'CreateFleet'],
  ['ec2', 'CreateLaunchTemplate'],
  ['ec2', 'TerminateInstances'],
  ['ssm', 'SendCommand'],
] as const
const READS = [
  ['ec2', 'DescribeInstances'],
  ['ec2', 'DescribeInstanceTypes'],
  ['ec2', 'DescribeSubnets'],
  ['ec2', 'DescribeSpotPriceHistory'],
  ['ec2', 'DescribeImages'],
  ['ssm', 'GetParameter'],
  ['ssm', 'DescribeInstanceInformation'],
  ['ssm', 'ListCommandInvocations'],
  ['ssm', 'GetCommandInvocation'],
  ['pricing', 'GetProducts'],
  ['servicequotas', 'GetServiceQuota'],
] as const

/** Of the object store, where it is a bucket. */
const OF_THE_STORE = [
  ['s3', 'PutObject'],
  ['s3', 'GetObject'],
  ['s3', 'HeadObject'],
  ['s3', 'ListObjectsV2'],
] as const

type Call = (typeof CHANGES | typeof READS | typeof OF_THE_STORE)[number]

const whereOf = ([service, action]: Call) => ({ service, action })

/** What services answer when they are unwell, by the service's way of putting it. */
const ERRORS: Record<'ec2' | 'json', { code: string; status: number }[]> = {
  ec2: [
    { code: 'RequestLimitExceeded', status: 503 },
    { code: 'InternalError', status: 500 },
    { code: 'Unavailable', status: 503 },
    { code: 'NobodyKnowsThis', status: 500 },
  ],
  json: [
    { code: 'ThrottlingException', status: 400 },
    { code: 'InternalServerError', status: 500 },
  ],
}

function errorOn(dice: Dice, call: Call): TextOf<'error'> {
  const error = dice.oneOf(ERRORS[call[0] === 'ec2' ? 'ec2' : 'json'])
  // Reads are sent three times before anybody hears of it; what changes something once, and then after a growing pause.
  const most = CHANGES.some((change) => change === call) ? 4 : 9
  return { fault: 'error', ...error, times: dice.between(1, most), where: whereOf(call) }
}

/** One rule of each kind, as bad as a job must be able to bear. A new kind needs its line here. */
const DRAW: { [K in FaultKind]: (dice: Dice) => TextOf<K> } = {
  error: (dice) => errorOn(dice, dice.oneOf([...CHANGES, ...READS])),
  'lost-answer': (dice) => ({
    ...{ fault: 'lost-answer', times: dice.between(1, 2), where: whereOf(dice.oneOf(CHANGES)) },
    instead: dice.oneOf(['reset', 'internal-error', 'unavailable', 'silence'] as const),
  }),
  slow: (dice) => ({
    ...{ fault: 'slow', by: dice.between(100, 2_500), times: dice.between(1, 3) },
    where: whereOf(dice.oneOf([...CHANGES, ...READS])),
  }),
  'no-capacity': (dice) => ({
    fault: 'no-capacity',
    where: dice.oneOf([{ capacity: 'spot' }, { zone: 'us-east-1a' }, { type: 'g5.xlarge' }] as const),
  }),
  'partial-fleet': () => ({ fault: 'partial-fleet', most: 0, where: { capacity: 'spot' } }),
  'fleet-silent': (dice) => ({
    ...{ fault: 'fleet-silent', times: dice.between(1, 2), isShown: dice.chance(0.5) },
  }),
  'fleet-error': (dice) => ({
    ...{ fault: 'fleet-error', times: dice.between(1, 4) },
    code: dice.oneOf(['RequestLimitExceeded', 'InternalError', 'UnfulfillableCapacity'] as const),
  }),
  'launch-fails': (dice) => ({
    ...{ fault: 'launch-fails', times: dice.between(1, 2), after: dice.between(0, 400) },
    reason: dice.oneOf([
      'Server.InternalError',
      'Server.InsufficientInstanceCapacity',
      'Client.InternalError',
    ]),
  }),
  interruption: (dice) => ({
    ...{ fault: 'interruption', after: dice.between(0, 2_000), times: dice.between(1, 3) },
    ...(dice.chance(0.3) ? { isSilent: true } : { notice: dice.between(100, 2_500) }),
    ...(dice.chance(0.3) ? { rebalanceBefore: dice.between(50, 500) } : {}),
  }),
  rebalance: (dice) => ({ fault: 'rebalance', after: dice.between(0, 2_000) }),
  crash: (dice) => ({ fault: 'crash', after: dice.between(0, 2_000), times: dice.between(1, 2) }),
  hang: (dice) => ({ fault: 'hang', after: dice.between(200, 2_000), times: 1 }),
  'no-agent': () => ({ fault: 'no-agent', times: 1 }),
  'agent-lost': (dice) => ({ fault: 'agent-lost', after: dice.between(0, 1_000), times: dice.between(1, 2) }),
  'no-boot': () => ({ fault: 'no-boot', times: 1 }),
  'stuck-shutting-down': (dice) => ({ fault: 'stuck-shutting-down', for: dice.between(1_000, 4_000) }),
  'command-doubled': () => ({ fault: 'command-doubled' }),
  'command-lost': () => ({ fault: 'command-lost', times: 1 }),
  'command-late': (dice) => ({
    fault: 'command-late',
    by: dice.between(500, 4_000),
    times: dice.between(1, 2),
  }),
  'command-truncated': (dice) => ({
    ...{ fault: 'command-truncated', chars: dice.between(0, 300), times: dice.between(1, 2) },
  }),
}

export function drawFault(dice: Dice, kind: FaultKind): FaultText {
  const draw: ((dice: Dice) => FaultText) | undefined = DRAW[kind]
  if (draw === undefined) throw new Error(`the effect of the fault ${kind} on a job is not defined`)
  return draw(dice)
}

/** One rule about the calls of the store. */
export function drawStoreFault(dice: Dice): FaultText {
  const where = whereOf(dice.oneOf(OF_THE_STORE))
  const common = { where, times: dice.between(1, 6), skip: dice.between(0, 60) }
  return dice.oneOf<FaultText>([
    { fault: 'error', code: 'SlowDown', status: 503, ...common },
    { fault: 'error', code: 'InternalError', status: 500, ...common },
    { fault: 'lost-answer', instead: 'reset', ...common },
    { fault: 'lost-answer', instead: 'internal-error', ...common },
    { fault: 'slow', by: dice.between(100, 1_500), ...common },
  ])
}
