import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { accessSync, constants, statSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { hostPath } from './config'

/** The user that a machine runs as. */
export interface MachineUser {
  uid: number
  gid: number
}

const PROBE_TIMEOUT_MS = 20_000
const NOBODY = 65_534
/** Users of isolated machines: numbers that no account of a host has. */
const UIDS = { first: 1_800_000_000, count: 100_000_000 }

const run = promisify(execFile)
let user: Promise<MachineUser> | undefined

/** The user of machines that share one: the current one, or an unprivileged one when the current one is root. */
export function machineUser(): Promise<MachineUser> {
  return (user ??= findUser())
}

/**
 * The user of an isolated machine with this directory. Root gives each machine its own: the root of a machine may unmount its own folders,
 * and then sees those of the host. The shared user if this host does not have such numbers.
 */
export async function ownUser(directory: string): Promise<MachineUser> {
  const shared = await machineUser()
  if (process.getuid!() !== 0) return shared
  const uid = UIDS.first + (createHash('sha256').update(directory).digest().readUInt32BE() % UIDS.count)
  const own = { uid, gid: uid }
  return (await probe('true', [], own)) === undefined ? shared : own
}

async function findUser(): Promise<MachineUser> {
  const own = { uid: process.getuid!(), gid: process.getgid!() }
  if (own.uid !== 0) return own
  const number = async (option: string): Promise<number> => {
    const { stdout } = await run('id', [option, 'nobody'], { env: { PATH: hostPath() } })
    return Number(stdout.trim())
  }
  try {
    return { uid: await number('-u'), gid: await number('-g') }
  } catch {
    return { uid: NOBODY, gid: NOBODY }
  }
}

/** Returns `spawn` options that run the child as the machine's user. For the same user nothing is set, which needs no privilege. */
export function asUser({ uid, gid }: MachineUser): { uid?: number; gid?: number } {
  return uid === process.getuid!() ? {} : { uid, gid }
}

/** Whether a path is one of the folders, or in one. */
export function isBelow(path: string, folders: readonly string[]): boolean {
  return folders.some((folder) => path === folder || path.startsWith(`${folder}/`))
}

/** Returns the executable files of this name on this host's PATH, in PATH order, except those in folders that a machine does not see. */
export function findPrograms(name: string, hidden: readonly string[] = []): string[] {
  const folders = [...new Set(hostPath().split(':'))]
  return folders
    .filter((folder) => folder.startsWith('/'))
    .map((folder) => join(folder, name))
    .filter((path) => !isBelow(path, hidden) && isProgram(path))
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    return false
  }
}

/** Runs a program as a machine's user, the shared one by default. Returns its output when it exits with 0. */
export async function probe(file: string, args: string[], as?: MachineUser): Promise<string | undefined> {
  try {
    const options = { ...asUser(as ?? (await machineUser())), cwd: '/', env: { PATH: hostPath() } }
    const { stdout } = await run(file, args, { ...options, timeout: PROBE_TIMEOUT_MS, killSignal: 'SIGKILL' })
    return stdout
  } catch {
    return undefined
  }
}
