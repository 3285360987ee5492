import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { copyFile, lchown, link, lstat, mkdir, readdir, realpath, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

/** The user of the server, which sees its folder as the whole file system. */
export interface Confinement {
  uid: number
  /** Path of the server's executable in the folder. */
  executable: string
  /** Path of the socket in the folder. */
  socket: string
}

/** Uids above those of local jobs, which end at 1900065535. */
const UIDS = { first: 1_900_065_536, count: 65_536 }
/** The `chroot` of GNU. Others refuse its options, and then the server is not confined. */
const CHROOT = '/usr/sbin/chroot'
const EXECUTABLE = '/versitygw'
const PROBE_TIMEOUT_MS = 20_000

/**
 * Prepares a folder with the objects in `buckets` and `metadata`, so that root can start the server there as a user of its own. Returns
 * `undefined` if this host does not allow it: for other users than root, in a container without the rights or uids, or for an executable
 * that needs other files. Throws if the folder cannot be written.
 */
export async function confinementIn(directory: string, executable: string): Promise<Confinement | undefined> {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return undefined
  const uid = UIDS.first + (createHash('sha256').update(directory).digest().readUInt32BE() % UIDS.count)
  await placeAt(join(directory, EXECUTABLE), await realpath(executable))
  const confinement = { uid, executable: EXECUTABLE, socket: '/run/s3' }
  const { program, args } = confined(confinement, directory, ['--version'])
  const isAllowed = await promisify(execFile)(program, args, { timeout: PROBE_TIMEOUT_MS }).then(
    () => true,
    () => false,
  )
  if (!isAllowed) return undefined
  for (const name of ['buckets', 'metadata', 'run']) {
    const folder = join(directory, name)
    await mkdir(folder, { recursive: true })
    await giveTo(uid, folder)
  }
  return confinement
}

/** Returns the command that starts the server as its user, with the folder as its root directory. */
export function confined(
  { uid, executable }: Confinement,
  directory: string,
  args: readonly string[],
): { program: string; args: string[] } {
  const user = [`--userspec=${uid}:${uid}`, '--groups=']
  return { program: CHROOT, args: [...user, directory, executable, ...args] }
}

async function placeAt(path: string, executable: string): Promise<void> {
  await mkdir(join(path, '..'), { recursive: true })
  await rm(path, { force: true })
  // Other file systems cannot share the file.
  await link(executable, path).catch(() => copyFile(executable, path))
}

/**
 * Changes the owner of everything in a folder, which may have new entries of root at its first level. A folder below gets its owner
 * last: if it has it already, so has everything in it.
 */
async function giveTo(uid: number, path: string, isTop = true): Promise<void> {
  const stats = await lstat(path)
  if (stats.uid === uid && !isTop) return
  if (stats.isDirectory()) for (const name of await readdir(path)) await giveTo(uid, join(path, name), false)
  await lchown(path, uid, uid)
}
