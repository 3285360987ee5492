import { DescribeSpotInstanceRequestsCommand, DescribeVolumesCommand, EC2Client } from '@aws-sdk/client-ec2'
import { createBackendOver } from '../../../backends/ec2'
import type { Ec2Config } from '../../../backends/ec2/config'
import { BILLED_AT_LEAST_MS } from '../../../backends/ec2/market/prices'
import { createSdkApi } from '../../../backends/ec2/sdk/index'
import type { Cloud, JournalEntry, WorldText } from '#small-cloud'
import { BESIDE, CONFIG, DEFAULT_IMAGE } from '../../backends/ec2/harness'
import { patient } from '../../support/patience'
import {
  faultsOfCalls,
  NOT_HERE,
  OF_MACHINES,
  RESTOCKED_MS,
  UNMET_WITHOUT_PURCHASES,
  type Draws,
  type Where,
} from '../faults'
import { companyOf } from '../company'
import { PATIENCE_MS, type Addresses, type BackendParts, type CloudProvider } from '../provider'

const ZONES = ['us-east-1a', 'us-east-1b']
const TYPES = ['g5.xlarge', 'g5.2xlarge']

const at = (ms: number): [number, number] => [ms, ms]

/** A cloud of two zones whose bill runs by the second. */
const CALM: WorldText = {
  regions: { 'us-east-1': { zones: ZONES, groups: ['crucible-machine'] } },
  roles: {
    'crucible-machine': {
      managed: ['AmazonSSMManagedInstanceCore'],
      hasProfile: true,
      trusts: ['ec2.amazonaws.com'],
    },
  },
  durations: {
    pending: at(50),
    boot: at(20),
    register: at(50),
    delivery: at(20),
    shuttingDown: at(50),
    osShutdown: at(400),
    statusChecks: at(10),
    connectionLost: at(300),
    billedAtLeast: at(60_000),
  },
  throttling: 'off',
}

/** Names of machines are wanted that have one GPU: the dear type is there for when the cheap one is not. */
const CLOUD_CONFIG: Ec2Config = {
  ...CONFIG,
  image: DEFAULT_IMAGE,
  types: TYPES,
  registerWithinMs: 8_000,
  staleForMs: 1_500,
}

const LAUNCH: Where = { service: 'ec2', action: 'CreateFleet' }
const LOOK: Where = { service: 'ec2', action: 'DescribeInstances' }
const PRICES: Where = { service: 'ec2', action: 'DescribeInstanceTypes' }
/** The calls that a job's life is made of. */
export const CHANGES: readonly Where[] = [
  LAUNCH,
  { service: 'ec2', action: 'CreateLaunchTemplate' },
  { service: 'ec2', action: 'TerminateInstances' },
  { service: 'ssm', action: 'SendCommand' },
]
const READS: readonly Where[] = [
  LOOK,
  PRICES,
  { service: 'ec2', action: 'DescribeSubnets' },
  { service: 'ec2', action: 'DescribeSpotPriceHistory' },
  { service: 'ec2', action: 'DescribeImages' },
  { service: 'ssm', action: 'GetParameter' },
  { service: 'ssm', action: 'DescribeInstanceInformation' },
  { service: 'ssm', action: 'ListCommandInvocations' },
  { service: 'ssm', action: 'GetCommandInvocation' },
  { service: 'pricing', action: 'GetProducts' },
  { service: 'servicequotas', action: 'GetServiceQuota' },
]

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

const FAULTS: Draws = {
  ...faultsOfCalls({
    changes: CHANGES,
    reads: READS,
    errorsOf: ({ service }) => ERRORS[service === 'ec2' ? 'ec2' : 'json'],
  }),
  'no-capacity': (dice) => ({
    fault: 'no-capacity',
    until: RESTOCKED_MS,
    where: dice.oneOf([{ capacity: 'spot' }, { zone: 'us-east-1a' }, { type: 'g5.xlarge' }] as const),
  }),
  'partial-fleet': () => ({ fault: 'partial-fleet', most: 0, where: { capacity: 'spot' } }),
  'fleet-silent': (dice) => ({
    fault: 'fleet-silent',
    times: dice.between(1, 2),
    isShown: dice.chance(0.5),
  }),
  'fleet-error': (dice) => ({
    fault: 'fleet-error',
    times: dice.between(1, 4),
    code: dice.oneOf(['RequestLimitExceeded', 'InternalError', 'UnfulfillableCapacity'] as const),
  }),
  'launch-fails': (dice) => ({
    fault: 'launch-fails',
    times: dice.between(1, 2),
    after: dice.between(0, 400),
    reason: dice.oneOf([
      'Server.InternalError',
      'Server.InsufficientInstanceCapacity',
      'Client.InternalError',
    ]),
  }),
  interruption: (dice) => ({
    fault: 'interruption',
    after: dice.between(0, 2_000),
    times: dice.between(1, 3),
    ...(dice.chance(0.3) ? { isSilent: true } : { notice: dice.between(100, 2_500) }),
    rebalanceBefore: dice.chance(0.3) ? dice.between(50, 500) : undefined,
  }),
  rebalance: (dice) => ({ fault: 'rebalance', after: dice.between(0, 2_000) }),
  ...OF_MACHINES,
  'no-agent': () => ({ fault: 'no-agent', times: 1 }),
  'agent-lost': (dice) => ({ fault: 'agent-lost', after: dice.between(0, 1_000), times: dice.between(1, 2) }),
  'stuck-shutting-down': (dice) => ({ fault: 'stuck-shutting-down', for: dice.between(1_000, 4_000) }),
  'command-doubled': () => ({ fault: 'command-doubled' }),
  'command-lost': () => ({ fault: 'command-lost', times: 1 }),
  'command-late': (dice) => ({
    fault: 'command-late',
    by: dice.between(500, 4_000),
    times: dice.between(1, 2),
  }),
  'command-truncated': (dice) => ({
    fault: 'command-truncated',
    chars: dice.between(0, 300),
    times: dice.between(1, 2),
  }),
  'registry-down': NOT_HERE.images,
  'registry-slow': NOT_HERE.images,
  'ignored-condition': NOT_HERE.conditions,
  'request-dangles': 'only garbage collection finds it',
  ...UNMET_WITHOUT_PURCHASES,
  unhealthy: 'EC2 reports it in another way, which is `hang`',
  queued: 'EC2 queues no launch',
}

/** What the cheap type costs on demand, in thousandths: spot never costs more. */
const MOST_PER_HOUR = 1_006

export const EC2: CloudProvider = {
  name: 'ec2',
  calm: CALM,
  tight: {
    throttling: {
      describe: { size: 10, perSecond: 5 },
      mutate: { size: 2, perSecond: 1 },
      ssm: { size: 4, perSecond: 2 },
    },
  },
  stockOf: (dice) => {
    if (dice.chance(0.5)) return { stock: [] }
    return {
      stock: [
        { capacity: 'spot', zone: 'us-east-1a', count: dice.between(0, 2) },
        {
          capacity: 'spot',
          zone: 'us-east-1b',
          changes: [
            [0, dice.between(0, 2)],
            [dice.between(500, 3_000), 0],
          ],
        },
      ],
    }
  },
  // Spot prices that change while the job lives, each zone's for itself.
  pricesOf: (dice) => {
    if (dice.chance(0.6)) return { prices: [] }
    const usd = (): number => dice.between(300, MOST_PER_HOUR) / 1_000
    return {
      prices: ZONES.map((zone) => ({
        zone,
        type: 'g5.xlarge',
        capacity: 'spot' as const,
        changes: [
          [0, usd()],
          [dice.between(500, 5_000), usd()],
          [dice.between(5_500, 20_000), usd()],
        ],
      })),
    }
  },
  companyOf: (dice) => companyOf(dice, { type: TYPES[0]!, zones: ZONES }),
  open,
  settings: {
    CRUCIBLE_EC2_TYPES: TYPES.join(','),
    CRUCIBLE_EC2_IMAGE: DEFAULT_IMAGE,
    CRUCIBLE_EC2_STALE_FOR: '1.5s',
  },
  spec: {},
  timing: {},
  lagMs: 0,
  faults: FAULTS,
  scarce: { fault: 'no-capacity', where: { capacity: 'spot' } },
  unreachable: { fault: 'no-agent', times: 1 },
  mute: ['no-agent', 'no-boot'],
  calls: { launch: LAUNCH, look: LOOK, prices: PRICES },
  asks: LOOK.action,
  down: { code: 'Unavailable', status: 503 },
  attemptOf: (tags) => tags['crucible:attempt'],
  leaking: ['pending', 'running'],
  ending: ['shutting-down'],
  typeOf: (recorded) => recorded,
  orderIn: ({ clientToken, parameters }: JournalEntry) => ({
    attemptId: /"crucible:attempt","Value":"([^"]+)"/.exec(JSON.stringify(parameters))?.[1],
    order: [clientToken, parameters],
  }),
  billing: {
    atLeastMs: BILLED_AT_LEAST_MS,
    stepMs: 1,
    dearestMicroUsd: 1_212_000 + BESIDE,
    // A little more than the minute that each machine is charged for at least, at its dearest, to what three of them cost.
    budgets: [17_300, 55_000],
  },
  isOurEnd: ({ reason }) => reason === 'Client.UserInitiatedShutdown',
  toldEndMs: ({ bill: { untilMs = Infinity } }) => untilMs,
  isIll: () => false,
  losesSends: false,
  losesMachines: false,
  remains,
}

function open({ endpoint }: Addresses, { deployment, config: wishes }: BackendParts) {
  const config = { ...CLOUD_CONFIG, ...wishes, endpoint }
  const patience = { readMs: patient(PATIENCE_MS), changeMs: patient(PATIENCE_MS) }
  return createBackendOver(createSdkApi({ region: config.region, endpoint, patience }), config, {
    clock: Date.now,
    deployment,
    secretKeyOf: () => '5'.repeat(64),
    runnerUrl: () => Promise.resolve('data:,'),
  })
}

/** Volumes that nothing uses, and requests for spot machines that lead to none. */
async function remains(cloud: Cloud): Promise<string[]> {
  const { endpoint, region, credentials } = cloud
  const client = new EC2Client({ endpoint, region, credentials })
  try {
    const { Volumes = [] } = await client.send(
      new DescribeVolumesCommand({ Filters: [{ Name: 'status', Values: ['available'] }] }),
    )
    const { SpotInstanceRequests = [] } = await client.send(new DescribeSpotInstanceRequestsCommand({}))
    const living = new Set(cloud.instances().flatMap(({ id, state }) => (isEnded(state) ? [] : [id])))
    const dangling = SpotInstanceRequests.filter(
      ({ State, InstanceId }) => ['open', 'active'].includes(State ?? '') && !living.has(InstanceId ?? ''),
    )
    return [
      ...Volumes.map(({ VolumeId }) => `the volume ${VolumeId} is left`),
      ...dangling.map(
        ({ SpotInstanceRequestId }) => `the request ${SpotInstanceRequestId} leads to no machine`,
      ),
    ]
  } finally {
    client.destroy()
  }
}

function isEnded(state: string): boolean {
  return state === 'terminated' || state === 'shutting-down'
}
