import { afterEach } from '@jest/globals'
import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createMachine, type AgentAnswer, type Machine, type MachineSpec } from '../../src/machines/machine'
import { patient } from '../support/patience'

export type Kind = 'namespaces' | 'groups'

/** What this host can keep machines together with; groups everywhere. */
export const KINDS: Kind[] = canMakeNamespaces() ? ['namespaces', 'groups'] : ['groups']
/** What most tests of machines run on: `npm test` takes the first kind, all tests take every kind. */
export const TRIED_KINDS = process.env['CRUCIBLE_TEST_SELECTION'] === '1' ? KINDS.slice(0, 1) : KINDS
export const HAS_NAMESPACES = KINDS.includes('namespaces')

function canMakeNamespaces(): boolean {
  const nobody = process.getuid!() === 0 ? { uid: 65_534, gid: 65_534 } : {}
  const flags = ['--user', '--map-root-user', '--mount', '--pid', '--fork', '--mount-proc']
  const script = 'mount -t tmpfs tmpfs /tmp'
  return spawnSync('unshare', [...flags, 'sh', '-c', script], { ...nobody, cwd: '/' }).status === 0
}

export interface World {
  /** Where machines that are made get their disks. */
  directory: string
  create(spec?: Partial<MachineSpec>): Machine
}

/** A way to make machines that are ended, and their disks removed, when the test has ended. */
export function useMachines(): () => World {
  const machines: Machine[] = []
  const directories: string[] = []
  afterEach(async () => {
    await Promise.all(machines.splice(0).map((machine) => machine.kill()))
    for (const directory of directories.splice(0)) rmSync(directory, { recursive: true, force: true })
  })
  return () => {
    const directory = mkdtempSync(join(tmpdir(), 'crucible-machines-'))
    // Machines of root run as somebody else, who must get there.
    chmodSync(directory, 0o711)
    directories.push(directory)
    return {
      directory,
      create: (spec = {}) => {
        const id = spec.id ?? `i-${randomBytes(8).toString('hex')}`
        const machine = createMachine({
          id,
          directory: join(directory, id),
          userData: '',
          metadata: { 'instance-id': id },
          environment: {},
          bootMs: 0,
          ...spec,
        })
        machines.push(machine)
        return machine
      },
    }
  }
}

let commands = 0

/** Runs a script on a machine as its agent does. */
export function sh(machine: Machine, script: string, timeoutMs = patient(30_000)): Promise<AgentAnswer> {
  return machine.run({ id: `command-${++commands}`, lines: script.split('\n'), timeoutMs })
}

/** A sleep that no other process of this host has in its command line. */
export function uniqueSleep(): { command: string; pids: () => number[] } {
  const command = `sleep 8${randomBytes(3).readUIntBE(0, 3)}`
  return { command, pids: () => pidsOf(command) }
}

/** Processes of this host whose whole command line this is. */
function pidsOf(command: string): number[] {
  const { stdout } = spawnSync('ps', ['-axo', 'pid=,stat=,args='], { encoding: 'utf8' })
  return stdout.split('\n').flatMap((line) => {
    const [, pid, state, args] = /^\s*(\d+)\s+(\S+)\s+(.*)$/.exec(line) ?? []
    return args?.trim() === command && !state!.startsWith('Z') ? [Number(pid)] : []
  })
}
