import { readFile, rmdir } from 'node:fs/promises'
import { basename, join, normalize } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { BackendError } from '../errors'
import { endContainers } from './containers'
import { hasCode } from './errors'
import type { Host } from './host'
import { marksOf, nameOf, readMachine, type MachineRecord } from './records'

/** A killed process is gone in milliseconds, or hangs in the kernel until its disk answers: 25 rounds are about 4 s. */
const ROUNDS_MAX = 25
const PAUSE_MAX_MS = 200
/** File in the machine's directory with the control group of the runner (`Paths.group` of the runner). */
const GROUP_RECORD = 'cgroup'

/**
 * Kills everything that a machine ever started, and returns when no process is left. Throws `transient` with the process ids if
 * some remain.
 */
export async function endProcesses(host: Host, machine: MachineRecord): Promise<void> {
  const id = machine.owner.attemptId
  const first = (await readMachine(host.paths, id))?.process
  const marks = marksOf(host.paths, machine)
  const living = async (): Promise<number[]> =>
    (await host.processes().ofMachine(marks, first)).map((process) => process.pid)
  if (machine.image !== null) await endContainers(host.config.environment, marks)
  let pids = await living()
  for (let round = 0; pids.length > 0 && round < ROUNDS_MAX; round++) {
    // Stopped processes start no others: the second scan sees processes born during the first, then all are killed.
    signalAll(pids, 'SIGSTOP')
    signalAll([...pids, ...(await living())], 'SIGKILL')
    await pause(Math.min(5 * 2 ** round, PAUSE_MAX_MS))
    pids = await living()
  }
  if (pids.length === 0) return removeGroup(host, machine)
  throw new BackendError({
    class: 'transient',
    message: `machine ${id} does not end: still running after SIGKILL: ${pids.join(', ')}`,
    hint: 'Processes that hang in the kernel end when their disk or device answers; end those of another user as that user.',
  })
}

/** The runner's guard removes its control group unless it was killed. An empty one costs nothing, so a failure is ignored. */
async function removeGroup(host: Host, machine: MachineRecord): Promise<void> {
  const directory = host.paths.machine(machine.owner.attemptId)
  const record = await readFile(join(directory, GROUP_RECORD), 'utf8').catch(() => '')
  const group = normalize(record)
  // The job may have changed the file.
  if (!group.startsWith('/sys/fs/cgroup/') || basename(group) !== `crucible-${nameOf(machine)}`) return
  // The kernel counts a killed process as a member for some milliseconds after it has left /proc.
  for (let round = 0; round < ROUNDS_MAX; round++) {
    const error: unknown = await rmdir(group).catch((cause: unknown) => cause)
    if (!hasCode(error, 'EBUSY')) return
    await pause(Math.min(5 * 2 ** round, PAUSE_MAX_MS))
  }
}

function signalAll(pids: number[], signal: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      process.kill(pid, signal)
    } catch (error) {
      // The process has already ended, or belongs to another user; the next scan shows which.
      if (!hasCode(error, 'ESRCH', 'EPERM')) throw error
    }
  }
}
