import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Environment } from '../../client/config'
import { CrucibleError, toCrucibleError } from '../../client/errors'
import { Context } from '../../client/context'
import type { MachineHandle } from '../../core/handle'
import { SECOND_MS } from '../../core/time'
import { readWorkerConfig } from '../../workers/config'
import { deploymentOf } from '../../workers/deployment'
import { makeBackend } from '../../workers/make-backend'
import { startDevCloud, type DevCloudOptions, type WorldText } from '../dev/cloud'

/** Whose machines the demo runs on, and plays the provider of. */
export interface Scenery {
  /** Settings that lead to it. */
  environment: Environment
  /** Takes a spot machine back, after a notice or, with null, without one. */
  interrupt: (machine: MachineHandle, noticeMs: number | null, signal: AbortSignal) => Promise<void>
  /** Resolves with what happened when a server of it is down for good. */
  ended: Promise<string | undefined>
  /** Ends every machine. Called when nobody launches any more. */
  close(): Promise<void>
}

const CALL_LIMIT_MS = 30 * SECOND_MS

/** One on which disk and address, which cost the same on demand as on spot, are a small part of the price. */
const TYPE = 'c7i.2xlarge'

/**
 * Two zones. The cheaper one has a single spot machine: once that is taken back somebody else has it, and the way leads to the
 * other. What the machines cost on demand stands in the small cloud's price list.
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

/** EC2 machines of a small cloud, and a store in S3. */
export async function smallCloud(home: string, server: DevCloudOptions['server']): Promise<Scenery> {
  const machines = join(home, 'machines')
  await mkdir(machines, { recursive: true })
  const { cloud, environment, stop } = await startDevCloud({
    world: WORLD,
    storeDirectory: join(home, 'store'),
    machines: { directory: machines },
    server,
  })
  return {
    environment: { ...environment, CRUCIBLE_EC2_TYPES: TYPE },
    interrupt: async ({ id }, noticeMs) =>
      cloud.interrupt(id, noticeMs === null ? { isSilent: true } : { noticeMs }),
    ended: cloud.storeEnded,
    close: stop,
  }
}

/** What cannot be had for the small cloud, with the way to a demo without it. */
export async function orWithout<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return work.catch((error: unknown) => {
    signal.throwIfAborted()
    const { kind, message } = toCrucibleError(error)
    throw new CrucibleError(kind, message, {
      hint: 'Without the small cloud, on machines that are processes of this host: `crucible demo --local`.',
      cause: error,
    })
  })
}

/** Machines of this host at prices that nobody pays, as a cloud might ask for a small one. */
const LOCAL: Environment = {
  CRUCIBLE_LOCAL_SPOT: 'yes',
  CRUCIBLE_LOCAL_PRICE: '0.40',
  CRUCIBLE_LOCAL_SPOT_PRICE: '0.12',
  // Two jobs are shown, of one cpu each.
  CRUCIBLE_LOCAL_SLOTS: '2',
}

/** Processes of this host, and a folder as the store. */
export async function thisHost(settings: Environment, signal: AbortSignal): Promise<Scenery> {
  const environment = { ...settings, ...LOCAL }
  const config = readWorkerConfig(environment)
  const { store } = new Context({ ...config, owner: '', environment }, Date.now)
  const deployment = await deploymentOf(store)
  const backend = await makeBackend(config, 'local', { store, deployment })
  const limited = (): AbortSignal => AbortSignal.timeout(CALL_LIMIT_MS)
  // Before anything is started: a machine without Python cannot show anything.
  const problems = await backend.check({ signal: AbortSignal.any([signal, limited()]) })
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
