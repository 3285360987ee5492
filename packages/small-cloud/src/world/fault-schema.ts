/** Fault rules of a world: what, where, how often, when. */
import { z } from 'zod'
import { duration } from './durations'

const service = z.enum([
  'ec2',
  'ssm',
  'sts',
  'iam',
  'ecr',
  'freetier',
  'pricing',
  'servicequotas',
  's3',
  'lambda',
  'modal',
])

/** The calls that a rule applies to; every given field must match. `*` matches any text. */
const calls = z.strictObject({
  service: service.optional(),
  action: z.string().optional(),
  /** The caller's ARN; for a machine `arn:aws:sts::111122223333:assumed-role/crucible-machine/i-...`. */
  caller: z.string().optional(),
  region: z.string().optional(),
  /** A pattern for the call's parameters as JSON: `*job-7*` is every call that names it. */
  parameters: z.string().optional(),
})

const pools = z.strictObject({
  /** The provider: `ec2`, `lambda` or `modal`. */
  service: service.optional(),
  region: z.string().optional(),
  zone: z.string().optional(),
  type: z.string().optional(),
  /** `reserved`: launches into, or instances in, a reservation. */
  capacity: z.enum(['spot', 'on-demand', 'reserved']).optional(),
})

const machines = pools.extend({
  instance: z.string().optional(),
  /** Tags that the instance must have. */
  tags: z.record(z.string(), z.string()).optional(),
})

/** The registries and the machines that a rule applies to. */
const registries = machines.extend({ registry: z.string().optional(), image: z.string().optional() })

/** The fleets that a rule applies to: a fleet has no zone and no type before it is filled. */
const fleets = pools.pick({ region: true, capacity: true })

const common = {
  /** Maximum number of times; unlimited when missing. */
  times: z.int().positive().optional(),
  /** Number of occasions to skip first. */
  skip: z.int().min(0).default(0),
  /** The probability on each occasion. */
  chance: z.number().min(0).max(1).default(1),
  /** The beginning, since the start of the world. */
  from: duration.default(0),
  /** The end; unlimited when missing. */
  until: duration.optional(),
}

const ofCalls = { where: calls.default({}), ...common }
const ofPools = { where: pools.default({}), ...common }
const ofFleets = { where: fleets.default({}), ...common }
const ofRegistries = { where: registries.default({}), ...common }
const ofMachines = { where: machines.default({}), ...common }

const status = z.int().min(400).max(599)

export const faultSchema = z.discriminatedUnion('fault', [
  /** The call is refused and has no effect. */
  z.strictObject({
    fault: z.literal('error'),
    code: z.string(),
    message: z.string().optional(),
    status: status.optional(),
    ...ofCalls,
  }),
  /** The call has its effect and the answer is lost: the connection is cut, or an error comes instead. */
  z.strictObject({
    fault: z.literal('lost-answer'),
    instead: z.enum(['reset', 'internal-error', 'unavailable', 'silence']).default('reset'),
    ...ofCalls,
  }),
  /** The object store ignores `If-None-Match` and `If-Match`, as some servers do. */
  z.strictObject({ fault: z.literal('ignored-condition'), ...ofCalls }),
  /** The answer is delayed: `before` the call takes effect, or `after` it. */
  z.strictObject({
    fault: z.literal('slow'),
    by: duration,
    stage: z.enum(['before', 'after']).default('before'),
    ...ofCalls,
  }),
  /** A list of capacity reservations, blocks or extensions does not show what was created within this time. */
  z.strictObject({ fault: z.literal('stale-list'), for: duration, ...ofCalls }),
  /** Another customer buys the Capacity Block, or the extension, just before the purchase; it is for sale again after `for`, if given. */
  z.strictObject({ fault: z.literal('offering-sold'), for: duration.optional(), ...ofPools }),
  /** The upfront payment of a Capacity Block or of an extension fails, or takes longer. */
  z.strictObject({ fault: z.literal('payment-fails'), ...ofPools }),
  z.strictObject({ fault: z.literal('payment-late'), by: duration, ...ofPools }),
  /** A new on-demand reservation is pending `for` a while; then it is active, or has failed if it `fails`. */
  z.strictObject({
    fault: z.literal('reservation-pending'),
    for: duration,
    fails: z.boolean().default(false),
    ...ofPools,
  }),
  /** EC2 refuses a future-dated reservation after its assessment. */
  z.strictObject({ fault: z.literal('reservation-unsupported'), ...ofPools }),
  /** EC2 delivers a future-dated reservation late, `by` a duration. */
  z.strictObject({ fault: z.literal('reservation-late'), by: duration, ...ofPools }),
  /** A pool reports no capacity, whatever its stock. */
  z.strictObject({ fault: z.literal('no-capacity'), ...ofPools }),
  /** A fleet gets at most this many machines. */
  z.strictObject({ fault: z.literal('partial-fleet'), most: z.int().min(0), ...ofFleets }),
  /** A fleet is created, and its answer has neither instances nor errors; `DescribeFleets` shows them unless `isShown` is false. */
  z.strictObject({ fault: z.literal('fleet-silent'), isShown: z.boolean().default(true), ...ofFleets }),
  /** A pool of a fleet refuses with this code: the fleet answers 200, with the code among its errors. */
  z.strictObject({
    fault: z.literal('fleet-error'),
    code: z.string(),
    message: z.string().optional(),
    ...ofPools,
  }),
  /** A provider that queues launches lets one wait this long, in addition to missing capacity. */
  z.strictObject({ fault: z.literal('queued'), for: duration, ...ofMachines }),
  /** A launch is accepted and fails afterwards, from pending to terminated. */
  z.strictObject({
    fault: z.literal('launch-fails'),
    reason: z.string().default('Server.InternalError'),
    after: duration.default(0),
    ...ofMachines,
  }),
  /** A machine is taken back `after` its start: in EC2 a spot machine, with a notice (`durations.notice` when missing) or `silently`; in Lambda any, without notice. */
  z.strictObject({
    fault: z.literal('interruption'),
    after: duration,
    notice: duration.optional(),
    isSilent: z.boolean().default(false),
    /** A rebalance recommendation this long before the notice. */
    rebalanceBefore: duration.optional(),
    ...ofMachines,
  }),
  /** A rebalance recommendation without a following interruption. */
  z.strictObject({ fault: z.literal('rebalance'), after: duration, ...ofMachines }),
  /** The hardware fails: the machine is gone and the instance ends with `Server.InternalError`. */
  z.strictObject({ fault: z.literal('crash'), after: duration, ...ofMachines }),
  /** The machine hangs: all its processes stop, and EC2 still reports it as running, with an impaired status. */
  z.strictObject({ fault: z.literal('hang'), after: duration, ...ofMachines }),
  /** The provider reports the machine as unhealthy `after` it came up: its processes are dead, unless it `isAlive`. Lambda only. */
  z.strictObject({
    fault: z.literal('unhealthy'),
    after: duration.default(0),
    isAlive: z.boolean().default(false),
    ...ofMachines,
  }),
  /** The SSM agent never registers. */
  z.strictObject({ fault: z.literal('no-agent'), ...ofMachines }),
  /** The SSM agent is lost `after` its registration; the machine keeps running. */
  z.strictObject({ fault: z.literal('agent-lost'), after: duration, ...ofMachines }),
  /** The instance never boots: EC2 reports it as running, but it is silent. */
  z.strictObject({ fault: z.literal('no-boot'), ...ofMachines }),
  /** A registry is unreachable, or returns a server error. */
  z.strictObject({
    fault: z.literal('registry-down'),
    instead: z.enum(['unreachable', 'error']).default('unreachable'),
    ...ofRegistries,
  }),
  /** A registry's answer is delayed. */
  z.strictObject({ fault: z.literal('registry-slow'), by: duration, ...ofRegistries }),
  /** `shutting-down` lasts this long. */
  z.strictObject({ fault: z.literal('stuck-shutting-down'), for: duration, ...ofMachines }),
  /** The spot request of a machine stays active after the machine's end. */
  z.strictObject({ fault: z.literal('request-dangles'), ...ofMachines }),
  /** An SSM command reaches the machine twice, never, late, or with truncated output. */
  z.strictObject({ fault: z.literal('command-doubled'), ...ofMachines }),
  z.strictObject({ fault: z.literal('command-lost'), ...ofMachines }),
  z.strictObject({ fault: z.literal('command-late'), by: duration, ...ofMachines }),
  z.strictObject({ fault: z.literal('command-truncated'), chars: z.int().min(0), ...ofMachines }),
])

/** A rule in the format of a world file or of the control API. */
export type FaultText = z.input<typeof faultSchema>
export type FaultRule = z.output<typeof faultSchema>
export type FaultKind = FaultRule['fault']
export type FaultOf<K extends FaultKind> = Extract<FaultRule, { fault: K }>
