import { HOUR_MS, SECOND_MS } from '../../../core/time/time'
import { stoppingMs } from '../../../core/time/timing'
import { failureOfEnd, type FailureClass } from '../../../core/failure'
import type { MachineHandle } from '../../../core/handle'
import type { Order } from '../../../core/job/plan'
import { MACHINE_VARIABLE, machineNameOf } from '../../../core/queues'
import { refusalIn, refusalOf } from '../../../core/store-refusal'
import type { CallContext } from '../../backend'
import { BackendError } from '../../errors'
import { runOnMachine, script, type CommandAnswer } from './commands'
import { diagnose } from '../check/diagnose'
import { invalid, transient } from '../errors'
import type { Host } from '../host'
import { isMachineId, observationOf } from './machines'
import { sealFor } from '../seal'

/** A successful start of at most this age counts as the requested one. */
const STARTED_JUST_NOW_MS = 20 * SECOND_MS
/** Validity of a machine's half of the secret, which stays the same until it is used, and is not requested after that. */
const PREPARED_MS = HOUR_MS

const MIB_PER_GIB = 1024
/** Nine more minutes for 2 TiB, whose machines register after five to fifteen minutes. */
const REGISTER_MS_PER_GIB = 300
/** Machines with less memory, in GiB, register as soon as small ones. */
export const REGISTERS_SOON_GIB = 256

/** Share of the elapsed time after which a machine is asked again, so that it never waits much longer than it already has. */
const ASKED_AGAIN_PART = 1 / 4
const ASKED_AGAIN_MS = { min: SECOND_MS / 4, max: 5 * SECOND_MS }

/** Meanings of the exit codes of `machine/start.py`. */
const MEANINGS: Readonly<Record<number, { class: FailureClass; hint?: string }>> = {
  10: {
    class: 'unreachable',
    hint: 'Set CRUCIBLE_EC2_IMAGE to an image with Python 3.8 or newer as python3.',
  },
  11: { class: 'transient' },
  12: { class: 'transient' },
  13: { class: 'unreachable' },
  14: { class: 'transient' },
  15: { class: 'unreachable', hint: "Check the disk of the machine's image (CRUCIBLE_EC2_IMAGE)." },
  16: { class: 'unreachable', hint: 'Check that the credentials of the worker may read the store.' },
  17: { class: 'unreachable' },
  127: { class: 'unreachable', hint: 'Set CRUCIBLE_EC2_IMAGE to an image with python3 and systemd.' },
}

/**
 * Starts the runner by a short command through the agent, as a separate unit: a job of weeks must not depend on a running command. A
 * repetition changes nothing while the runner runs.
 */
export async function start(
  host: Host,
  { handle, order }: { handle: MachineHandle; order: Order },
  { signal }: CallContext,
): Promise<void> {
  await assertReachable(host, handle, signal)
  // The key is also needed without secrets, because it seals renewed grants for the store.
  const key = host.deps.secretKeyOf?.(order.attemptId)
  const seal = key === undefined ? null : sealFor(await publicNumberOf(host, { handle, order }, signal), key)
  const spec = {
    ...specOf(host, order),
    do: 'start',
    machineId: handle.id,
    seal,
    grant: (await host.deps.grantFile?.(order)) ?? null,
    runnerUrl: await host.deps.runnerUrl(order.runnerSha256),
  }
  const answer = await runOnMachine(
    host,
    {
      machineId: handle.id,
      comment: `crucible start ${order.attemptId}`,
      lines: script('start.py', spec),
      goodForMs: STARTED_JUST_NOW_MS,
    },
    signal,
  )
  assertDone(answer)
}

function specOf({ config }: Host, order: Order): Record<string, unknown> {
  const { attemptId, jobId, attempt, storeUrl, runnerSha256, runner } = order
  return {
    attemptId,
    jobId,
    attempt,
    storeUrl,
    runnerSha256,
    environment: { AWS_REGION: config.region, [MACHINE_VARIABLE]: machineNameOf(order) },
    hasImage: runner.image !== null,
    stopSeconds: Math.ceil(stoppingMs(runner) / SECOND_MS),
  }
}

async function publicNumberOf(
  host: Host,
  { handle, order }: { handle: MachineHandle; order: Order },
  signal: AbortSignal,
): Promise<string> {
  const answer = await runOnMachine(
    host,
    {
      machineId: handle.id,
      comment: `crucible prepare ${order.attemptId}`,
      lines: script('start.py', { attemptId: order.attemptId, do: 'prepare' }),
      goodForMs: PREPARED_MS,
      isWhole: isNumber,
    },
    signal,
  )
  assertDone(answer)
  if (!isNumber(answer)) throw transient("the machine's answer contains no key")
  return answer.stdout.trim()
}

function isNumber({ stdout }: CommandAnswer): boolean {
  return /^[0-9a-f]{400,512}$/.test(stdout.trim())
}

function assertDone({ exitCode, stdout, stderr }: CommandAnswer): void {
  if (exitCode === 0) return
  const words = (stderr.trim() === '' ? stdout : stderr).trim().split('\n').at(-1) ?? ''
  const refusal = refusalIn(words)
  if (refusal !== undefined) throw new BackendError(refusalOf(refusal))
  const { class: failureClass, hint } = MEANINGS[exitCode] ?? { class: 'unreachable' as const }
  throw new BackendError({
    class: failureClass,
    message: `the runner was not started: ${words === '' ? `exit code ${exitCode}` : words}`,
    code: `start-${exitCode}`,
    hint,
  })
}

/** The setting, and more for a large machine: its firmware checks all memory before anything boots. */
async function registerWithinMs(
  { config, market }: Host,
  { realised }: MachineHandle,
  signal: AbortSignal,
): Promise<number> {
  // A list of types that fails must not give a machine up.
  const types = await market.types(signal).catch(() => [])
  const type = types.find(({ name }) => name === realised.type)
  const largeGiB = Math.max(0, (type?.memoryMiB ?? 0) / MIB_PER_GIB - REGISTERS_SOON_GIB)
  return config.registerWithinMs + largeGiB * REGISTER_MS_PER_GIB
}

function askAgainInMs(waitedMs: number): number {
  const againInMs = Math.round(waitedMs * ASKED_AGAIN_PART)
  return Math.min(ASKED_AGAIN_MS.max, Math.max(ASKED_AGAIN_MS.min, againInMs))
}

/** Throws `transient` while the machine boots, and another failure if it never will. */
async function assertReachable(host: Host, handle: MachineHandle, signal: AbortSignal): Promise<void> {
  if (!isMachineId(handle.id)) throw invalid(`"${handle.id}" is not a machine of EC2`, 'Plan the job again.')
  const agent = await host.api.commands.agent(handle.id, signal)
  if (agent?.isOnline === true) return
  const [machine] = await host.api.machines.byId([handle.id], signal)
  const seen = machine && observationOf(machine)
  if (seen?.state === 'gone' || seen?.state === 'stopping') {
    const detail = seen.detail === undefined ? '' : `: ${seen.detail}`
    const { cause, failure } = seen
    const isTaken = cause === 'interrupted' || cause === 'ended'
    throw new BackendError({
      ...(failure === undefined ? { class: isTaken ? 'interrupted' : 'unreachable' } : failureOfEnd(failure)),
      message: `the machine ended before its runner was started${detail}`,
    })
  }
  const waitedMs = host.ages.of(handle.id, handle.launchedAtMs)
  // An agent that was online once is silent for another reason; the watch decides.
  const withinMs = await registerWithinMs(host, handle, signal)
  if (agent !== undefined || waitedMs < withinMs)
    throw transient(`the agent of ${handle.id} has not registered yet`, askAgainInMs(waitedMs))
  throw await diagnose(host, { handle, withinMs }, signal)
}
