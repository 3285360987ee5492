import { constants, existsSync } from 'node:fs'
import { mkdir, open, realpath, rename, rm, symlink, unlink, type FileHandle } from 'node:fs/promises'
import { join, sep } from 'node:path'
import type { TreeEntry } from '../../core/job/checkpoint'
import { SECOND_MS } from '../../core/time/time'
import { hasCode } from '../../storage/file-errors'
import { partialOf } from '../../storage/place'
import { CrucibleError } from '../errors'

const PERMISSIONS = 0o777
const NS_PER_SECOND = 1e9
/** Folders stay open for their owner, who may download into them again. */
const OWNER_PASSES = 0o700
/** Opens no link, and does not wait for the writer of a named pipe. */
const NO_LINK = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
/** Errors of names that a file system does not support. */
export const OF_NAMES = ['ENAMETOOLONG', 'EINVAL', 'EILSEQ'] as const
/** Linux only: paths below an open folder stay in that folder, whatever its own path leads to by now. */
const DESCRIPTORS = '/proc/self/fd'

/**
 * A folder for downloads. The paths in it come from a job, and other programs may change it meanwhile: nothing is written through a link below
 * it. Each step of a path is opened without following links; a file is written under a new name in the opened folder and then renamed. A system
 * without `/proc` checks the same by path, so that a link which appears between the check and the write may be followed there.
 */
export class FencedFolder {
  readonly #path: string
  readonly #root: FileHandle

  private constructor(path: string, root: FileHandle) {
    this.#path = path
    this.#root = root
  }

  /** Opens an existing folder; the person who downloads chose it, so its own path may have links. */
  static async open(path: string): Promise<FencedFolder> {
    return new FencedFolder(path, await open(path, constants.O_RDONLY | constants.O_DIRECTORY))
  }

  /** Opens a folder, creates it if it is missing, and closes it after use. */
  static async using<T>(path: string, use: (folder: FencedFolder) => Promise<T>): Promise<T> {
    await mkdir(path, { recursive: true })
    const folder = await FencedFolder.open(path)
    try {
      return await use(folder)
    } finally {
      await folder.#root.close()
    }
  }

  /**
   * Creates the folders above a path and calls `use` with a name for it that leads through no link. Throws `failed` if a step of the path is not
   * a folder.
   */
  async at<T>(path: string, use: (at: string) => Promise<T>): Promise<T> {
    const parents = path.split('/')
    const name = parents.pop()!
    const opened: FileHandle[] = []
    let folder = stepInto(this.#root, this.#path)
    try {
      for (const [depth, parent] of parents.entries()) {
        const step = join(folder, parent)
        await mkdir(step).catch(unlessThere)
        const handle = await open(step, NO_LINK | constants.O_DIRECTORY).catch((error: unknown) => {
          throw notAFolder(parents.slice(0, depth + 1).join('/'), error)
        })
        opened.push(handle)
        folder = stepInto(handle, step)
      }
      return await use(join(folder, name))
    } catch (error) {
      if (error instanceof Error)
        error.message = error.message.replaceAll(folder, join(this.#path, ...parents))
      throw error
    } finally {
      for (const handle of opened) await handle.close()
    }
  }

  /** Writes a file: `fill` gets a new name, which replaces the path, or a link there, when `fill` returns. */
  async place<T>(path: string, fill: (temporary: string) => Promise<T>): Promise<T> {
    return this.at(path, async (at) => {
      const temporary = partialOf(at)
      try {
        const filled = await fill(temporary)
        await rename(temporary, at)
        return filled
      } finally {
        await rm(temporary, { force: true })
      }
    })
  }

  async makeFolder(path: string): Promise<void> {
    await this.at(path, (at) => mkdir(at).catch(unlessThere))
  }

  /**
   * Makes links unless their names are taken. Returns the paths of those that lead out of the folder, which are removed again.
   * `isTolerant` leaves out links that the file system does not support, which are an error otherwise.
   */
  async makeLinks(
    links: readonly { path: string; target: string }[],
    { isTolerant = false } = {},
  ): Promise<string[]> {
    const made: string[] = []
    const tolerated = isTolerant ? OF_NAMES : []
    for (const { path, target } of links) if (await this.#makeLink(path, target, tolerated)) made.push(path)
    // One link may lead through another, so they are followed when all are made.
    const root = await realpath(this.#path)
    const outside: string[] = []
    for (const path of made)
      await this.at(path, async (at) => {
        const end = await realpath(at).catch(() => undefined)
        if (end === undefined || end === root || end.startsWith(`${root}${sep}`)) return
        await unlink(at)
        outside.push(path)
      })
    return outside
  }

  /** Whether it was made; not if its name is taken, if its place is not in a folder, or after a tolerated error. */
  async #makeLink(path: string, target: string, tolerated: readonly string[]): Promise<boolean> {
    try {
      await this.at(path, (at) => symlink(target, at))
      return true
    } catch (error) {
      if (hasCode(error, 'EEXIST', 'ENOTDIR', ...tolerated) || error instanceof CrucibleError) return false
      throw error
    }
  }

  /** Gives a downloaded file or folder its permissions and time. Links and absent files stay as they are. */
  async shape(path: string, { mode, modifiedAtMs, modifiedNs = 0 }: TreeEntry): Promise<void> {
    await this.at(path, async (at) => {
      const handle = await open(at, NO_LINK).catch(() => undefined)
      if (handle === undefined) return
      try {
        const isFolder = (await handle.stat()).isDirectory()
        await handle.chmod((mode & PERMISSIONS) | (isFolder ? OWNER_PASSES : 0))
        if (modifiedAtMs === undefined) return
        const seconds = modifiedAtMs / SECOND_MS + modifiedNs / NS_PER_SECOND
        await handle.utimes(seconds, seconds)
      } finally {
        await handle.close()
      }
    })
  }
}

function stepInto(handle: FileHandle, path: string): string {
  return existsSync(DESCRIPTORS) ? `${DESCRIPTORS}/${handle.fd}` : path
}

function notAFolder(path: string, cause: unknown): unknown {
  if (!hasCode(cause, 'ELOOP', 'ENOTDIR')) return cause
  return new CrucibleError('failed', `${path} is a link or a file there, not a folder.`, {
    hint: 'Choose an empty folder.',
    cause,
  })
}

function unlessThere(error: unknown): void {
  if (!hasCode(error, 'EEXIST', 'ENOTDIR')) throw error
}
