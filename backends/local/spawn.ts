import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { MACHINE_VARIABLE } from '../../core/queues'
import type { Host, LocalDeps } from './host'
import { FILES, jobFolder, nameOf, writeJson, type MachineRecord } from './records'

/**
 * Starts the runner in a separate session, with nothing inherited: it outlives this process, receives none of its signals and sees only the
 * environment that the configuration passes on.
 */
export async function startRunner(host: Host, machine: MachineRecord, python: string): Promise<void> {
  const directory = host.paths.machine(machine.owner.attemptId)
  const console = await open(join(directory, FILES.console), 'a')
  try {
    const child = spawn(python, runnerArguments(directory, machine, host.deps), {
      cwd: directory,
      env: environmentOf(host, machine),
      detached: true,
      stdio: ['ignore', console.fd, console.fd],
    })
    await once(child, 'spawn')
    child.unref()
    const pid = child.pid!
    // A process that has already ended has no start time, so no other process can match it.
    const started = (await host.processes().identify(pid))?.started ?? ''
    await writeJson(join(directory, FILES.process), { pid, started })
  } finally {
    await console.close()
  }
}

function runnerArguments(directory: string, machine: MachineRecord, deps: LocalDeps): string[] {
  const { owner, attempt, storeUrl, realised, user } = machine
  const folder = jobFolder(machine)
  const at = (name: string): string => join(directory, name)
  return [
    // Isolated: neither packages of this host or user nor variables of Python change the runner.
    '-IS',
    at(FILES.runner),
    'run',
    '--store',
    storeUrl,
    '--job',
    owner.jobId,
    '--attempt',
    String(attempt),
    '--root',
    directory,
    ...(deps.secretKeyOf === undefined ? [] : ['--secret-key-file', at(FILES.secretKey)]),
    ...(deps.grantFile === undefined ? [] : ['--grant-file', at(FILES.grant)]),
    ...(folder === undefined ? [] : ['--job-root', folder]),
    ...(user === undefined ? [] : ['--user', String(user.uid)]),
    ...(realised.capacityType === 'spot' ? ['--notice-file', at(FILES.notice), '--notice-kill'] : []),
  ]
}

/** The driver numbers GPUs along the PCI bus, CUDA by speed by default. A job without GPUs sees none. */
function environmentOf(host: Host, machine: MachineRecord): Record<string, string> {
  const visible = { CUDA_DEVICE_ORDER: 'PCI_BUS_ID', CUDA_VISIBLE_DEVICES: machine.gpus.join(',') }
  return { ...host.config.environment, ...visible, [MACHINE_VARIABLE]: nameOf(machine) }
}
