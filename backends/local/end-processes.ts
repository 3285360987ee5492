import { setTimeout as pause } from 'node:timers/promises'
import { BackendError } from '../errors'
import { endContainers } from './containers'
import { hasCode } from './errors'
import type { Host } from './host'
import { readMachine, type MachineRecord } from './records'

/** A killed process is gone in milliseconds, or hangs in the kernel for as long as its disk does: 25 rounds are about 4 s. */
const ROUNDS_MAX = 25
const PAUSE_MAX_MS = 200

/**
 * Ends everything that a machine ever started, at once, and returns when nothing of it runs. Throws `transient`, naming
 * the processes, when some of them do not go.
 */
export async function endProcesses(host: Host, machine: MachineRecord): Promise<void> {
  const id = machine.owner.attemptId
  const first = (await readMachine(host.paths, id))?.process
  const living = async (): Promise<number[]> =>
    (await host.processes().ofMachine(id, first)).map((process) => process.pid)
  if (machine.image !== null) await endContainers(host.config.environment, id)
  let pids = await living()
  for (let round = 0; pids.length > 0 && round < ROUNDS_MAX; round++) {
    // Stopped processes start no others: whoever was born during the first look is seen by the second, then all are killed.
    signalAll(pids, 'SIGSTOP')
    signalAll([...pids, ...(await living())], 'SIGKILL')
    await pause(Math.min(5 * 2 ** round, PAUSE_MAX_MS))
    pids = await living()
  }
  if (pids.length === 0) return
  throw new BackendError({
    class: 'transient',
    message: `machine ${id} does not end: still running after SIGKILL: ${pids.join(', ')}`,
    hint: 'Processes that hang in the kernel go when their disk or device answers; those of another user must be ended by that user.',
  })
}

function signalAll(pids: number[], signal: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      process.kill(pid, signal)
    } catch (error) {
      // Already gone, or not ours to end: the next look tells which.
      if (!hasCode(error, 'ESRCH', 'EPERM')) throw error
    }
  }
}
