import { SECOND_MS } from '../../../core/time/time'
import type { Drain } from '../../../core/documents'
import type { MachineHandle } from '../../../core/handle'
import type { CallContext } from '../../backend'
import { runOnMachine, script } from './commands'
import { transient } from '../errors'
import type { Host } from '../host'
import { isMachineId } from './machines'

/** A command of at most this age counts as the requested one. */
const TOLD_JUST_NOW_MS = 30 * SECOND_MS

/** Puts the drain order onto the machine itself and wakes its runner, by a short command through the agent. */
export async function drain(
  host: Host,
  { handle: { id, attemptId }, drain: order }: { handle: MachineHandle; drain: Drain },
  { signal }: CallContext,
): Promise<void> {
  if (!isMachineId(id)) return
  const { seq = 1 } = order
  const command = {
    machineId: id,
    // A shorter window is another command.
    comment: `crucible drain ${attemptId}${seq === 1 ? '' : ` ${seq}`}`,
    lines: script('drain.py', { attemptId, drain: order }),
    goodForMs: TOLD_JUST_NOW_MS,
  }
  const { exitCode, stderr } = await runOnMachine(host, command, signal)
  if (exitCode !== 0) throw transient(`the runner of ${id} did not get the order to drain: ${stderr.trim()}`)
}
