import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { limitedTo } from '../../backends/calls'
import type { Environment } from '../../client/config'
import { CrucibleError, toCrucibleError } from '../../client/errors'
import { Context } from '../../client/context'
import type { MachineHandle } from '../../core/handle'
import type { BackendName } from '../../core/offer'
import { SECOND_MS } from '../../core/time/time'
import { readWorkerConfig } from '../../service/config'
import { deploymentOf } from '../../service/deployment'
import { makeBackend } from '../../service/make-backend'
import { startDevCloud, type DevCloudOptions, type WorldText } from '../dev/cloud'

/** Providers with a limit of a run. */
export type LimitedProvider = 'modal'

/** The machines of the demo, and the provider that the demo plays. */
export interface Scenery {
  /** Settings that select this provider. */
  environment: Environment
  /** Interrupts a spot machine, with a notice or, for null, without one. */
  interrupt: (machine: MachineHandle, noticeMs: number | null, signal: AbortSignal) => Promise<void>
  /** Takes away a provider's free machines from now on; missing if no story needs that. */
  fill?: (provider: LimitedProvider) => void
  /** Resolves with the cause when one of its servers is permanently down. */
  ended: Promise<string | undefined>
  /** Ends every machine. Called when no process launches machines. */
  close(): Promise<void>
}

const CALL_LIMIT_MS = 30 * SECOND_MS

/** A type whose disk and address, which cost the same on demand and on spot, are a small part of the price. */
const TYPE = 'c7i.2xlarge'

/**
 * Two zones. The cheaper one has a single spot machine: after its interruption the zone has no capacity left, and the job moves to the
 * other zone. On-demand prices come from the small cloud's price list.
 */
const WORLD: WorldText = {
  regions: { 'us-east-1': { zones: ['us-east-1a', 'us-east-1b'], groups: ['crucible-machine'] } },
  prices: [
    { type: TYPE, zone: 'us-east-1a', usdPerHour: 0.0821 },
    { type: TYPE, zone: 'us-east-1b', usdPerHour: 0.0897 },
  ],
  stock: [
    { zone: 'us-east-1a', capacity: 'spot', count: 0 },
    { zone: 'us-east-1a', type: TYPE, capacity: 'spot', count: 1 },
  ],
  durations: { slotReturn: '1h' },
}

/** A small cloud for a story: its world, and the settings of the deployment. */
interface CloudPlan {
  world: WorldText
  backends: readonly BackendName[]
  settings: Environment
}

const TWO_ZONES: CloudPlan = {
  world: WORLD,
  backends: ['ec2'],
  settings: { CRUCIBLE_EC2_TYPES: TYPE },
}

/** A type with a GPU; one machine is left on spot. */
const GPU_TYPE = 'g6.xlarge'

/**
 * World of three providers with one kind of machine each, the cheapest for the work first: a spot machine of EC2; Modal, with the shortest
 * run limit at which a job is placed there; and Lambda.
 */
const EVERYWHERE: CloudPlan = {
  world: {
    regions: { 'us-east-1': { zones: ['us-east-1a'], groups: ['crucible-machine'] } },
    prices: [{ type: GPU_TYPE, zone: 'us-east-1a', usdPerHour: 0.3126 }],
    stock: [
      { zone: 'us-east-1a', capacity: 'spot', count: 0 },
      { zone: 'us-east-1a', type: GPU_TYPE, capacity: 'spot', count: 1 },
    ],
    durations: { slotReturn: '1h' },
  },
  backends: ['ec2', 'modal', 'lambda'],
  settings: {
    CRUCIBLE_EC2_TYPES: GPU_TYPE,
    CRUCIBLE_MODAL_GPUS: 'B200',
    CRUCIBLE_MODAL_RUN_MAX: '110s',
    CRUCIBLE_LAMBDA_TYPES: 'gpu_1x_a100_sxm4',
    CRUCIBLE_DRAIN: '8s',
    CRUCIBLE_POWER_OFF: '2s',
    CRUCIBLE_QUEUE_WITHIN: '5s',
  },
}

/** Machines of a small cloud, of EC2 or `isEverywhere`, and a store in S3. */
export async function smallCloud(
  home: string,
  server: DevCloudOptions['server'],
  isEverywhere: boolean,
): Promise<Scenery> {
  const machines = join(home, 'machines')
  await mkdir(machines, { recursive: true })
  const { world, backends, settings } = isEverywhere ? EVERYWHERE : TWO_ZONES
  const { cloud, environment, stop } = await startDevCloud({
    world,
    backends,
    server,
    storeDirectory: join(home, 'store'),
    machines: { directory: machines },
  })
  return {
    environment: { ...environment, ...settings },
    interrupt: async ({ id }, noticeMs) =>
      cloud.interrupt(id, noticeMs === null ? { isSilent: true } : { noticeMs }),
    fill: (service) => void cloud.addFault({ fault: 'no-capacity', where: { service } }),
    ended: cloud.ended,
    close: stop,
  }
}

/** The error for a small cloud that cannot start, with the way to a demo without it. */
export async function orWithout<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return work.catch((error: unknown) => {
    signal.throwIfAborted()
    const { kind, message } = toCrucibleError(error)
    throw new CrucibleError(kind, message, {
      hint: 'To use processes of this host instead of the small cloud: `crucible demo --local`.',
      cause: error,
    })
  })
}

/** Machines of this host at made-up prices, as a cloud might charge for a small one. */
const LOCAL: Environment = {
  CRUCIBLE_LOCAL_SPOT: 'yes',
  CRUCIBLE_LOCAL_PRICE: '0.40',
  CRUCIBLE_LOCAL_SPOT_PRICE: '0.12',
  // Two jobs run, with one CPU each.
  CRUCIBLE_LOCAL_SLOTS: '2',
}

/** Processes of this host, and a folder as the store. */
export async function thisHost(settings: Environment, signal: AbortSignal): Promise<Scenery> {
  const environment = { ...settings, ...LOCAL }
  const config = readWorkerConfig(environment)
  const { store } = new Context({ ...config, owner: '', environment }, Date.now)
  await store.make?.()
  const deployment = await deploymentOf(store)
  const backend = await makeBackend(config, 'local', { store, deployment })
  const limited = (): AbortSignal => AbortSignal.timeout(CALL_LIMIT_MS)
  // Checked first: a machine without Python cannot show anything.
  const problems = await backend.check({ signal: limitedTo(CALL_LIMIT_MS, signal) })
  const problem = problems.find(({ severity }) => severity === 'error')
  if (problem !== undefined) {
    throw new CrucibleError('failed', `The demo cannot run here: ${problem.message}.`, {
      hint: problem.remedy,
    })
  }
  return {
    environment: LOCAL,
    interrupt: async (machine, noticeMs, caller) =>
      backend.interrupt?.(machine, { noticeMs }, { signal: caller }),
    ended: new Promise(() => {}),
    close: async () => {
      for (const { handle } of await backend.list(deployment, { signal: limited() }))
        await backend.terminate(handle, { signal: limited() })
    },
  }
}
