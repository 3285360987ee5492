import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { machineProcesses, type Machine } from '../runner/world'

/** Ends all processes of a machine, as a loss of power does. */
export async function killAll(machine: Machine): Promise<void> {
  for (const { pid } of machineProcesses(machine.id)) process.kill(pid, 'SIGKILL')
  await machine.exited
}

/** The Python programs of a folder, as the files of a bundle. */
export function programsIn(folder: string): Record<string, string> {
  const names = readdirSync(folder).filter((name) => name.endsWith('.py'))
  return Object.fromEntries(names.map((name) => [name, readFileSync(join(folder, name), 'utf8')]))
}
