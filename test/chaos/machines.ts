import { readdirSync, readFileSync } from 'node:fs'

/** A living process as `/proc` tells it. */
export interface Living {
  pid: number
  parent: number
  command: string
  /** The attempt whose machine it belongs to. */
  machine: string | undefined
  environment: string
}

/** Every living process of this computer whose environment may be read. */
export function livingProcesses(): Living[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      const living = readProcess(Number(name))
      return living === undefined ? [] : [living]
    })
}

function readProcess(pid: number): Living | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    if (state === 'Z' || state === 'X') return undefined
    const environment = readFileSync(`/proc/${pid}/environ`, 'utf8')
    const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').join(' ').trim()
    const machine = /(?:^|\0)CRUCIBLE_MACHINE=([^\0]*)/.exec(environment)?.[1]
    return { pid, parent: Number(parent), command, machine, environment }
  } catch {
    // Ended meanwhile, or another user's.
    return undefined
  }
}

/** Processes that were started with a path of the folder, or know it. */
export function processesOf(folder: string): Living[] {
  return livingProcesses().filter(
    ({ pid, command, environment }) =>
      pid !== process.pid && (command.includes(folder) || environment.includes(folder)),
  )
}

/** What runs of one machine. */
export function machineProcesses(attemptId: string): Living[] {
  return livingProcesses().filter(
    ({ machine }) => machine === attemptId || machine?.startsWith(`${attemptId}.`) === true,
  )
}

export interface MachineParts {
  guard?: Living
  runner?: Living
  leash?: Living
}

/** The three processes of the runner, as far as they live (docs/reference/runner-protocol.md). */
export function partsOf(attemptId: string): MachineParts {
  const all = machineProcesses(attemptId)
  const leash = all.find(({ command }) => command.includes('.pyz leash '))
  const runs = all.filter(({ command }) => command.includes('.pyz run '))
  const runner = runs.find(({ parent }) => runs.some(({ pid }) => pid === parent))
  const guard = runs.find(({ pid }) => pid === runner?.parent)
  return {
    guard: guard ? guard : undefined,
    runner: runner ? runner : undefined,
    leash: leash ? leash : undefined,
  }
}

/** Sends a signal; false for a process that is gone. */
export function signal(pid: number, name: NodeJS.Signals): boolean {
  try {
    process.kill(pid, name)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false
    throw error
  }
}

/** Kills all of a machine as a power cut does: no process is left that could see the others go. */
export function killMachine(attemptId: string): number {
  let killed = 0
  for (let all = machineProcesses(attemptId); all.length > 0; all = machineProcesses(attemptId)) {
    for (const { pid } of all) signal(pid, 'SIGSTOP')
    for (const { pid } of all) if (signal(pid, 'SIGKILL')) killed += 1
  }
  return killed
}
