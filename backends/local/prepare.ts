import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
import { CODES, messageOf } from '../../core/errors'
import type { Offer } from '../../core/offer'
import type { Order } from '../../core/job/plan'
import { machineNameOf } from '../../core/queues'
import { SECOND_MS } from '../../core/time/time'
import { BackendError } from '../errors'
import { unlessAborted } from './calls'
import { whyNoContainers } from './containers'
import { invalid, localError } from './errors'
import type { Host } from './host'
import { chooseUid, folderOf, USERS_REMEDY, type JobUser } from './job-users'
import type { MachineRecord } from './records'
import { chooseKind, lackOf, needsOf, takenOn, whyFull, type Taken } from './slots'

/** The offer of this host that matches an order; throws `invalid` for an order that this host can never fulfil. */
export async function assertPossible(host: Host, order: Order, signal: AbortSignal): Promise<Offer> {
  const offer = order.offers.find(
    (one) => one.capacityType === order.capacityType && one.place === host.place,
  )
  if (offer === undefined) {
    throw invalid(`none of the order's offers is from this host, ${host.place}`, 'Plan the job again.')
  }
  if (order.capacityType === 'reserved' || (order.capacityType === 'spot' && !host.config.hasSpot)) {
    throw invalid(
      `this host offers no ${order.capacityType} machines`,
      'Set CRUCIBLE_LOCAL_SPOT=yes, or plan the job again.',
    )
  }
  const whyNot =
    order.runner.image === null ? undefined : await whyNoContainers(host.config.environment, signal)
  if (whyNot !== undefined) throw new BackendError(whyNot)
  await host.python(signal)
  const users = await host.jobUsers(signal)
  if (users.kind === 'refused' && order.runner.image === null) {
    throw invalid(`jobs cannot run as separate users: ${users.why}`, USERS_REMEDY)
  }
  return offer
}

/** Writes the runner program to a path; throws if its digest differs from the order. */
export async function fetchRunner(
  { deps }: Host,
  { order, path, signal }: { order: Order; path: string; signal: AbortSignal },
): Promise<void> {
  try {
    await unlessAborted(signal, deps.fetchRunner(order.runnerSha256, path))
  } catch (error) {
    const { failure } = localError(error)
    if (failure.class !== 'unclassified') throw error
    const message = `the runner program cannot be downloaded: ${messageOf(error)}`
    throw new BackendError({ ...failure, class: 'transient', message }, { cause: error })
  }
  const hash = createHash('sha256')
  await pipeline(createReadStream(path), hash)
  const digest = hash.digest('hex')
  if (digest !== order.runnerSha256) {
    throw invalid(
      `the runner program in the store has the digest ${digest} instead of ${order.runnerSha256}`,
      'Remove it from `runners/` in the object store; the next worker to start uploads it again.',
    )
  }
}

/** Slots are counted exactly each time, so a job that lost a race for one can soon ask again. */
const FREE_AGAIN_MS = SECOND_MS

/** Returns the recorded needs of an order; throws `capacity` if they are not free now. */
export async function recordFor(
  host: Host,
  { order, offer, runner, signal }: { order: Order; offer: Offer; runner: string; signal: AbortSignal },
): Promise<MachineRecord> {
  const { attemptId, jobId, deployment, attempt, storeUrl, runnerSha256, capacityType } = order
  const request = order.resources
  const needs = needsOf(request)
  const [{ gpus }, inUse] = await Promise.all([host.gpus(signal), takenOn(host)])
  // An order is never younger than a waiting job.
  const taken = host.holds.seenBy({ jobId, sinceMs: 0 }, inUse, gpus)
  const kind = chooseKind(gpus, request, taken)
  const why = whyFull(host, needs, { taken, kind })
  if (why !== undefined) {
    host.holds.noteShortage(
      { jobId, sinceMs: 0 },
      { request, lacks: lackOf(host, needs, { taken, kind }), isOrder: true },
    )
    const message = `this host is full: ${why}`
    throw new BackendError({
      class: 'capacity',
      code: CODES.placeTaken,
      message,
      retryAfterMs: FREE_AGAIN_MS,
    })
  }
  const program = await readFile(runner)
  const hasJobRoot = program.includes('crucible_runner/process/job_root.py')
  // Jobs from before an upgrade keep the runner of that time, which would refuse to start. Names in an archive are not packed.
  const mayHaveUser = order.runner.image === null && program.includes('crucible_runner/process/user.py')
  const isNamed = program.includes('crucible_runner/process/machine_name.py')
  const directory = hasJobRoot ? jobId : attemptId
  const user = mayHaveUser ? await userFor(host, { directory, attemptId, taken, signal }) : undefined
  const { type, place, priceMicroUsdPerHour } = offer
  return {
    owner: { deployment, jobId, attemptId },
    realised: { capacityType, type, place, priceMicroUsdPerHour },
    launchedAtMs: host.deps.clock(),
    slots: needs.slots,
    gpus: kind?.free.slice(0, needs.gpus).map((gpu) => gpu.index) ?? [],
    image: order.runner.image,
    attempt,
    storeUrl,
    runnerSha256,
    folder: user?.folder ?? (hasJobRoot ? folderOf(host.paths.jobs, host.paths.root, jobId) : undefined),
    user,
    name: isNamed ? machineNameOf(order) : undefined,
  }
}

/** Returns the user of a machine. A container has its own isolation, and is started by root. */
async function userFor(
  host: Host,
  {
    directory,
    attemptId,
    taken,
    signal,
  }: { directory: string; attemptId: string; taken: Taken; signal: AbortSignal },
): Promise<JobUser | undefined> {
  const users = await host.jobUsers(signal)
  if (users.kind !== 'on') return undefined
  const uid = await chooseUid(users.range, host.paths.machine(attemptId), taken.uids)
  return { uid, folder: folderOf(users.folder, host.paths.root, directory) }
}
