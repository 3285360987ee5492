import { createBackendOver } from '../../../backends/modal'
import { createApi, type ModalApi } from '../../../backends/modal/api'
import type { ModalConfig } from '../../../backends/modal/config'
import type { JobRequest } from '../../../backends/modal/documents'
import type { Cloud, JournalEntry, WorldText } from '#small-cloud'
import { CONFIG } from '../../backends/modal/harness'
import { faultsOfCalls, OF_MACHINES, RESTOCKED_MS, UNMET_BEYOND_EC2, type Draws, type Where } from '../faults'
import { heldApi, type Addresses, type BackendParts, type CloudProvider, type Instance } from '../provider'

const at = (ms: number): [number, number] => [ms, ms]

/** The dear one is there for when the cheap one is not. */
const GPUS = ['T4', 'L4']

const CALM: WorldText = { durations: { pending: at(50), boot: at(20) } }

const call = (action: string): Where => ({ service: 'modal', action })
const [LAUNCH, CANCEL] = [call('submit'), call('cancel')]
const [LOOK, PRICES] = [call('read'), call('offers')]

const FAULTS: Draws = {
  ...faultsOfCalls({
    changes: [LAUNCH, CANCEL],
    reads: [LOOK, PRICES, call('health')],
    // `gateway` is an answer of Modal's own proxy, in plain text.
    errorsOf: () => [
      { code: 'rate-limited', status: 429 },
      { code: 'gateway', status: 429 },
      { code: 'gateway', status: 500 },
      { code: 'gateway', status: 503 },
      { code: 'new-code', status: 502 },
    ],
  }),
  'no-capacity': () => ({
    fault: 'no-capacity',
    until: RESTOCKED_MS,
    where: { service: 'modal', type: GPUS[0]! },
  }),
  'launch-fails': (dice) => ({
    fault: 'launch-fails',
    times: dice.between(1, 2),
    after: dice.between(0, 400),
    reason: dice.oneOf(['Image pull failed', 'Runner failed']),
  }),
  queued: (dice) => ({ fault: 'queued', for: dice.between(200, 4_000), times: dice.between(1, 2) }),
  interruption: (dice) => ({
    fault: 'interruption',
    after: dice.between(0, 2_000),
    times: dice.between(1, 3),
  }),
  ...OF_MACHINES,
  ...UNMET_BEYOND_EC2,
  rebalance: 'Modal recommends none',
  unhealthy: 'Modal reports none',
  'stuck-shutting-down': 'Modal ends a Sandbox at once',
}

export const MODAL: CloudProvider = {
  name: 'modal',
  calm: CALM,
  // Only the rate of new Sandboxes is limited, which the gateway waits for: that is a fault of its own.
  tight: {},
  stockOf: () => ({}),
  pricesOf: () => ({}),
  open,
  settings: { CRUCIBLE_MODAL_GPUS: GPUS.join(',') },
  spec: {},
  timing: { queueMs: 1_500 },
  lagMs: 0,
  faults: FAULTS,
  scarce: { fault: 'no-capacity', where: { service: 'modal', type: 'T4' } },
  unreachable: { fault: 'no-boot', times: 1 },
  mute: ['no-boot'],
  calls: { launch: LAUNCH, look: LOOK, prices: PRICES },
  asks: 'job' satisfies keyof ModalApi,
  down: { code: 'gateway', status: 503 },
  attemptOf: ({ key, owner }) => (key?.endsWith(`-${owner}`) ? key.slice(0, -`-${owner}`.length) : key),
  leaking: ['queued', 'running'],
  ending: [],
  // `T4x1` is ours, `T4:1` is Modal's.
  typeOf: (recorded) => recorded.replace(/x(\d+)$/, ':$1'),
  orderIn: ({ parameters }) => {
    const { key, ...rest } = parameters as JobRequest & { key: string }
    return { attemptId: key, order: { ...rest, env: {}, command: [], send_by_ms: 0 } }
  },
  billing: {
    atLeastMs: 0,
    stepMs: 1,
    // An L4 with the cores and the memory that go with it.
    dearestMicroUsd: 1_470_000,
    // From a little more than a minute of work to four.
    budgets: [28_000, 100_000],
  },
  isOurEnd,
  toldEndMs,
  isIll: () => false,
  losesSends: false,
  losesMachines: false,
  remains: async () => [],
}

/** Modal's words are the same for its own ends and for ours: ours have a call. What hung before it was no longer well. */
function isOurEnd(instance: Instance, cloud: Cloud): boolean {
  const { isImpaired, bill } = instance
  const { untilMs = Infinity } = bill
  return !isImpaired && callsAbout(instance, cloud, 'cancel').some(({ atMs }) => atMs <= untilMs)
}

/** Modal's client does not tell when a Sandbox ended: the gateway dates its end by the first question after it. */
function toldEndMs(instance: Instance, cloud: Cloud): number {
  const { untilMs = Infinity } = instance.bill
  const asked = (['read', 'cancel'] as const).flatMap((action) => callsAbout(instance, cloud, action))
  const after = asked.map(({ atMs }) => atMs).filter((atMs) => atMs >= untilMs)
  return after.length === 0 ? untilMs : Math.min(...after)
}

/** Those that reached the gateway. */
function callsAbout({ tags }: Instance, { journal }: Cloud, action: string): JournalEntry[] {
  return journal
    .calls({ service: 'modal', action })
    .filter(
      ({ outcome, parameters }) => outcome === 'ok' && (parameters as { key: string }).key === tags['key'],
    )
}

function open({ providers }: Addresses, { handOver, around }: BackendParts) {
  const { endpoint, key, secret } = providers['modal']!
  const config: ModalConfig = {
    ...CONFIG,
    gpus: GPUS,
    url: endpoint!,
    token: { key: key!, secret: secret! },
  }
  return createBackendOver((options) => heldApi(createApi(options), around), config, {
    clock: Date.now,
    handOver,
  })
}
