import { createBackendOver } from '../../../backends/lambda'
import { createApi, type LaunchRequest } from '../../../backends/lambda/api'
import type { LambdaConfig } from '../../../backends/lambda/config'
import { BILLED_IN_STEPS_OF_MS } from '../../../backends/lambda/machines'
import type { Cloud, WorldText } from '#small-cloud'
import { CONFIG } from '../../backends/lambda/harness'
import { faultsOfCalls, OF_MACHINES, RESTOCKED_MS, UNMET_BEYOND_EC2, type Draws, type Where } from '../faults'
import { heldApi, type Addresses, type BackendParts, type CloudProvider, type Instance } from '../provider'

const at = (ms: number): [number, number] => [ms, ms]

/** One GPU each, the first choice of a job first. Two are in one Region, the dear one is there for when they are not. */
const TYPES = ['gpu_1x_a6000', 'gpu_1x_rtx6000', 'gpu_1x_a10']

const CALM: WorldText = {
  durations: { pending: at(50), boot: at(20), shuttingDown: at(50), osShutdown: at(400) },
  lambda: { throttling: 'off' },
}

const CLOUD_CONFIG: LambdaConfig = { ...CONFIG, types: TYPES, staleForMs: 1_500 }

const call = (action: string): Where => ({ service: 'lambda', action })
const [LAUNCH, TERMINATE] = [call('launch'), call('terminate')]
const [LOOK, PRICES] = [call('instances'), call('instance-types')]

const FAULTS: Draws = {
  ...faultsOfCalls({
    changes: [LAUNCH, TERMINATE],
    // One instance is asked for by its id when the list has it no more.
    reads: [LOOK, PRICES, call('instance')],
    errorsOf: () => [
      { code: 'global/rate-limit-exceeded', status: 429 },
      { code: 'global/conflict', status: 409 },
      { code: 'global/internal-error', status: 500 },
      { code: 'global/unknown', status: 500 },
      { code: 'provider/internal-unavailable', status: 503 },
      { code: 'provider/new-code', status: 502 },
    ],
  }),
  'no-capacity': (dice) => ({
    fault: 'no-capacity',
    until: RESTOCKED_MS,
    where: { service: 'lambda', ...dice.oneOf([{ region: 'us-south-1' }, { type: TYPES[0] }] as const) },
  }),
  'launch-fails': (dice) => ({
    fault: 'launch-fails',
    times: dice.between(1, 2),
    after: dice.between(0, 400),
  }),
  interruption: (dice) => ({
    fault: 'interruption',
    after: dice.between(0, 2_000),
    times: dice.between(1, 3),
  }),
  unhealthy: (dice) => ({
    fault: 'unhealthy',
    after: dice.chance(0.4) ? 0 : dice.between(1, 2_000),
    times: dice.between(1, 2),
    isAlive: dice.chance(0.3),
  }),
  ...OF_MACHINES,
  'stuck-shutting-down': (dice) => ({ fault: 'stuck-shutting-down', for: dice.between(1_000, 4_000) }),
  ...UNMET_BEYOND_EC2,
  rebalance: 'Lambda recommends none',
  queued: 'Lambda queues no launch',
}

export const LAMBDA: CloudProvider = {
  name: 'lambda',
  calm: CALM,
  tight: {
    lambda: { throttling: { requests: { size: 6, perSecond: 5 }, launches: { size: 1, perSecond: 0.5 } } },
  },
  stockOf: (dice) => {
    if (dice.chance(0.5)) return {}
    const [first, second] = TYPES
    return {
      lambda: {
        stock: [
          {
            type: first,
            changes: [
              [0, dice.between(0, 2)],
              [RESTOCKED_MS, STOCK],
            ],
          },
          {
            type: second,
            changes: [
              [0, dice.between(0, 2)],
              [dice.between(500, 3_000), 0],
              [RESTOCKED_MS, STOCK],
            ],
          },
        ],
      },
    }
  },
  // Lambda changes prices from one day to another.
  pricesOf: (dice) =>
    dice.chance(0.6) ? {} : { lambda: { prices: { [TYPES[0]!]: dice.between(40, DEAREST_CENTS) } } },
  open,
  settings: {
    CRUCIBLE_LAMBDA_TYPES: TYPES.join(','),
    CRUCIBLE_LAMBDA_STALE_FOR: '1.5s',
    // The calm cloud has no limits.
    CRUCIBLE_LAMBDA_REQUESTS: '1000',
    CRUCIBLE_LAMBDA_LAUNCHES: '1000',
  },
  spec: { accepts: ['billed-until-terminated'] },
  timing: {},
  // An instance that the lists have no more counts as gone after a pause.
  lagMs: CLOUD_CONFIG.staleForMs,
  faults: FAULTS,
  scarce: { fault: 'no-capacity', where: { service: 'lambda', region: 'us-south-1' } },
  unreachable: { fault: 'no-boot', times: 1 },
  mute: ['no-boot'],
  calls: { launch: LAUNCH, look: LOOK, prices: PRICES },
  asks: LOOK.action,
  down: { code: 'provider/internal-unavailable', status: 503 },
  attemptOf: (tags) => tags['crucible:attempt'],
  leaking: ['booting', 'active', 'unhealthy'],
  ending: ['terminating'],
  typeOf: (recorded) => recorded,
  orderIn: ({ parameters }) => {
    const { tags, ...rest } = parameters as LaunchRequest
    const kept = tags.filter(({ key }) => key !== 'crucible:send' && key !== 'crucible:at')
    return {
      attemptId: tags.find(({ key }) => key === 'crucible:attempt')?.value,
      order: { ...rest, tags: kept, hostname: '', user_data: '' },
    }
  },
  billing: {
    atLeastMs: BILLED_IN_STEPS_OF_MS,
    stepMs: BILLED_IN_STEPS_OF_MS,
    dearestMicroUsd: 1_290_000,
    // From two minutes of the cheapest to five of the dearest.
    budgets: [25_000, 110_000],
  },
  // Nothing but a call presses the power button.
  isOurEnd: () => true,
  toldEndMs,
  isIll: ({ reason }) => reason === 'unhealthy',
  losesSends: true,
  losesMachines: true,
  remains: async () => [],
}

/** What there is once it is back. */
const STOCK = 2

/** Of the dear type, so that it stays the last choice. */
const DEAREST_CENTS = 129

/** Lambda does not tell when a machine ended: it is no longer in lists, and is asked for by its id. */
function toldEndMs({ id, bill: { untilMs = Infinity } }: Instance, { journal }: Cloud): number {
  const told = journal
    .calls({ service: 'lambda', action: 'instance' })
    .filter(({ outcome }) => outcome === 'ok' || outcome === 'global/object-does-not-exist')
    .find(({ atMs, parameters }) => atMs >= untilMs && (parameters as { id: string }).id === id)
  return told?.atMs ?? untilMs
}

function open(
  { providers }: Addresses,
  { deployment, config: { staleForMs }, handOver, around }: BackendParts,
) {
  const { endpoint, apiKey } = providers['lambda']!
  const config: LambdaConfig = {
    ...CLOUD_CONFIG,
    endpoint: endpoint!,
    apiKey: apiKey!,
    ...(staleForMs === undefined ? {} : { staleForMs }),
  }
  return createBackendOver((options) => heldApi(createApi(options), around), config, {
    clock: Date.now,
    deployment,
    handOver,
  })
}
