import { randomUUID } from 'node:crypto'
import { mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { LaunchOutcome } from '../../core/activities'
import type { Order } from '../../core/job/plan'
import type { CallContext } from '../backend'
import { BackendError } from '../errors'
import { throwIfAborted } from './calls'
import { compileRunner } from './compile-runner'
import { endProcesses } from './end-processes'
import { messageOf } from '../../core/errors'
import { hasCode, invalid, localError } from './errors'
import type { Host } from './host'
import { scan, type MachineView } from './scan'
import { assertPossible, fetchRunner, recordFor } from './prepare'
import { PYTHON_REMEDY } from './python'
import { assertOwned, FILES, handleOf, isMachineId, writeJson, type MachineRecord } from './records'
import { removeDirectory, sweep } from './remove'
import { SLOTS } from './slots'
import { startRunner } from './spawn'

/**
 * Creates a machine in a temporary directory with all its files, record included, and names it by one rename, which fails if the
 * name is taken. Only then its runner starts. A launch that dies halfway therefore leaves nothing, or a complete machine that the
 * same order, sent again, starts.
 */
export async function launch(host: Host, order: Order, ctx: CallContext): Promise<LaunchOutcome> {
  try {
    return await host.exclusive(order.attemptId, ctx.signal, () => launchAlone(host, order, ctx.signal))
  } catch (error) {
    const { failure } = localError(error)
    // Temporal sends the order again for these; all others guarantee that no process was started.
    if (failure.class === 'transient' || failure.class === 'throttled') throw error
    return { kind: 'refused', failure }
  }
}

async function launchAlone(host: Host, order: Order, signal: AbortSignal): Promise<LaunchOutcome> {
  const id = order.attemptId
  if (!isMachineId(id))
    throw invalid(`"${id}" is not a valid machine name`, 'Use at most 63 characters of a-z, 0-9 and dashes.')
  await host.makeFolders()
  const view = (await scan(host, [id]))[0] ?? (await make(host, order, signal))
  assertOwned(view.machine, order.deployment)
  if (view.state === 'unstarted') await start(host, view.machine, await host.python(signal))
  return { kind: 'launched', handle: handleOf(view.machine) }
}

async function make(host: Host, order: Order, signal: AbortSignal): Promise<MachineView> {
  const offer = await assertPossible(host, order, signal)
  // Leftovers must not block a new machine: the next sweep tries again.
  await sweep(host).catch(() => undefined)
  const staged = join(host.paths.staging, `${order.attemptId}.${randomUUID()}`)
  try {
    await mkdir(staged, { mode: 0o700 })
    const runner = join(staged, FILES.runner)
    await fetchRunner(host, { order, path: runner, signal })
    await compileRunner(host, { sha256: order.runnerSha256, path: runner, signal })
    const key = host.deps.secretKeyOf?.(order.attemptId)
    if (key !== undefined) await writeFile(join(staged, FILES.secretKey), key, { mode: 0o600 })
    const grant = await host.deps.grantFile?.(order)
    if (grant !== undefined) await writeFile(join(staged, FILES.grant), grant, { mode: 0o600 })
    await writeFile(join(staged, FILES.machineId), order.attemptId)
    // Two launches must not find the same slot free.
    return await host.exclusive(SLOTS, signal, async () => {
      const machine = await recordFor(host, { order, offer, runner, signal })
      await writeJson(join(staged, FILES.machine), machine)
      throwIfAborted(signal)
      const view = await name(host, staged, machine)
      // From here on, the machine itself occupies the place.
      host.holds.forget(order.jobId)
      return view
    })
  } finally {
    await rm(staged, { recursive: true, force: true })
  }
}

/** Names a staged machine, or returns the machine that another process named first. */
async function name(host: Host, staged: string, machine: MachineRecord): Promise<MachineView> {
  const { attemptId } = machine.owner
  try {
    await rename(staged, host.paths.machine(attemptId))
    return { machine, state: 'unstarted', hasDirectory: true, hasProgramEnded: false }
  } catch (error) {
    if (!hasCode(error, 'EEXIST', 'ENOTEMPTY')) throw error
    const [view] = await scan(host, [attemptId])
    if (view !== undefined) return view
    throw invalid(
      `${host.paths.machine(attemptId)} exists and is not a machine's directory`,
      'Check its contents, then delete it.',
    )
  }
}

/** Starts a machine that has never run. One that cannot start is removed: a refused order leaves nothing behind. */
async function start(host: Host, machine: MachineRecord, python: string): Promise<void> {
  const { attemptId } = machine.owner
  const [failure] = await startRunner(host, machine, python).then(
    () => [],
    (error: unknown) => [error],
  )
  try {
    const [view] = await scan(host, [attemptId])
    // Another process ended the machine between our last scan and the start.
    if (view?.state === 'stopping' || view?.hasDirectory === false) await endProcesses(host, machine)
    // If the machine was started and only writing its process record failed, it is still found without the record.
    if (failure === undefined || (view !== undefined && view.state !== 'unstarted')) return
    await removeDirectory(host, machine)
  } catch (error) {
    const message = `it is unknown whether the runner was started: ${messageOf(error)}`
    throw new BackendError({ class: 'transient', message }, { cause: error })
  }
  throw hasCode(failure, 'ENOENT')
    ? invalid(`the runner cannot start: ${messageOf(failure)}`, PYTHON_REMEDY)
    : localError(failure)
}
