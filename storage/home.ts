import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'

/** Variables of an environment; passed in, so that only `config.ts` files read the process's own. */
export type Environment = Readonly<Record<string, string | undefined>>

/** The locations of this user's Crucible data. */
export interface Home {
  /** Folder of the home: `CRUCIBLE_HOME`, otherwise `~/.crucible`. */
  directory: string
  /** `CRUCIBLE_STORE`; by default a folder of the home. */
  storeUrl: string
  /** `CRUCIBLE_SECRET_KEY_FILE`; by default a file of the home. */
  secretKeyFile: string
}

export function homeOf(env: Environment): Home {
  const directory = resolve(expand(env.CRUCIBLE_HOME?.trim() || '~/.crucible'))
  return {
    directory,
    storeUrl: env.CRUCIBLE_STORE?.trim() || pathToFileURL(join(directory, 'store')).href,
    secretKeyFile: resolve(expand(env.CRUCIBLE_SECRET_KEY_FILE?.trim() || join(directory, 'secret.key'))),
  }
}

/**
 * Creates a missing home and closes it to other users of this machine, because it contains the Temporal server's database, the store, and
 * the directories of jobs.
 * @param uid of this process; a home of another user is left as it is
 */
export function closeHome({ directory }: Home, uid: number | undefined): void {
  makeFolder(directory)
  const { mode, uid: owner } = statSync(directory)
  if ((mode & 0o077) !== 0 && owner === uid) chmodSync(directory, mode & 0o700)
}

/** Creates folders one by one, because Node's `recursive` never ends in a file system that takes no folders, such as /proc. */
function makeFolder(path: string): void {
  if (existsSync(path)) return
  if (dirname(path) !== path) makeFolder(dirname(path))
  try {
    mkdirSync(path, { mode: 0o700 })
  } catch (error) {
    // Another process made the folder meanwhile.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}

function expand(path: string): string {
  return path === '~' || path.startsWith('~/') ? join(homedir(), path.slice(1)) : path
}

/** The data that a running `crucible dev` publishes for other processes of this user. */
export interface DevNote {
  pid: number
  address: string
  uiUrl: string
  /** Environment variables for client and workers of its deployment; missing without any. */
  environment?: Record<string, string>
  /** Small cloud of the command: its address, the backends whose provider it simulates, and the key of its operator. */
  cloud?: { url: string; simulated: readonly string[]; controlKey: string }
}

function devNotePath({ directory }: Home): string {
  return join(directory, 'dev', 'running.json')
}

/** Returns the note of a running `crucible dev`; the note of a killed one is ignored. */
export function readDevNote(home: Home): DevNote | undefined {
  const note = noteIn(home)
  return note !== undefined && isAlive(note.pid) ? note : undefined
}

/** Names of AWS settings. All of them come from the deployment, because the key of one account is invalid in another. */
const AWS = /^AWS_/

/**
 * Returns an environment extended by that of a running `crucible dev`, if it has one and the environment names neither another server nor
 * another store. Otherwise returns the environment itself.
 */
export function withDevEnvironment(env: Environment): Environment {
  const added = noteFor(env)?.environment
  if (added === undefined) return env
  return { ...added, ...Object.fromEntries(Object.entries(env).filter(([name]) => !AWS.test(name))) }
}

/** The backends whose provider is simulated in the deployment of an environment; none in a real one. */
export function simulatedIn(env: Environment): readonly string[] {
  const note = readDevNote(homeOf(env))
  const store = note?.environment?.CRUCIBLE_STORE
  const isOther = (env.CRUCIBLE_STORE?.trim() || store) !== store || !isServerOf(env, note)
  return isOther ? [] : (note?.cloud?.simulated ?? [])
}

/** The note of a running `crucible dev`, unless the environment names another deployment. */
function noteFor(env: Environment): DevNote | undefined {
  const note = readDevNote(homeOf(env))
  return env.CRUCIBLE_STORE?.trim() || !isServerOf(env, note) ? undefined : note
}

/** Whether an environment leads to the server of a note. */
function isServerOf(env: Environment, note: DevNote | undefined): boolean {
  return (env.TEMPORAL_ADDRESS?.trim() || note?.address) === note?.address
}

/** Replaces all AWS variables of `env` by those of `settings`. Returns a function that undoes it. */
export function replaceAws(settings: Environment, env: NodeJS.ProcessEnv): () => void {
  const replace = (by: Environment): void => {
    for (const name of Object.keys(env)) if (AWS.test(name)) delete env[name]
    for (const [name, value] of Object.entries(by))
      if (AWS.test(name) && value !== undefined) env[name] = value
  }
  const before = { ...env }
  replace(settings)
  return () => replace(before)
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

function noteIn(home: Home): DevNote | undefined {
  try {
    return JSON.parse(readFileSync(devNotePath(home), 'utf8')) as DevNote
  } catch {
    return undefined
  }
}

export function writeDevNote(home: Home, note: DevNote): void {
  writePrivately(devNotePath(home), `${JSON.stringify(note)}\n`)
}

/** Writes keys to a new file that only this user can read, and renames it, so that readers never see half of it. */
export function writePrivately(path: string, text: string): void {
  const written = `${path}.${process.pid}.tmp`
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  rmSync(written, { force: true })
  writeFileSync(written, text, { mode: 0o600, flag: 'wx' })
  renameSync(written, path)
}

/** Removes a note, unless another `crucible dev` has replaced it meanwhile. */
export function removeDevNote(home: Home, { pid }: DevNote): void {
  if (noteIn(home)?.pid === pid) rmSync(devNotePath(home), { force: true })
}
