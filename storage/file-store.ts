import { createHash, randomUUID } from 'node:crypto'
import { constants } from 'node:fs'
import {
  copyFile,
  mkdir,
  readFile,
  readdir,
  rename,
  rm,
  rmdir,
  stat,
  unlink,
  writeFile,
} from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { CODES } from '../core/errors'
import { DAY_MS } from '../core/time/time'
import { hasCode, storeErrorOf } from './file-errors'
import { readFolder, splitPrefix, statOf, TEMPORARY_FOLDER, walk } from './file-walk'
import { checkKey, checkPrefix } from './keys'
import { layout } from './layout'
import { MarkCheck, missingRoot } from './mark'
import { copySynced, partialOf, placeIfAbsent, removeEmptyFolder, writeSynced } from './place'
import { checkSize, StoreError, type ObjectStore, type SignedUrls, type StoredObject } from './store'
import type { UnfinishedUpload } from './unfinished'

/** Limit on creating the folder of a put again, after another process has pruned it at the same moment. */
const FOLDER_TRIES_MAX = 100

/** The error codes of opening, reading and deleting a key without an object. */
const ABSENT_CODES = ['ENOENT', 'ENOTDIR', 'EISDIR']

/** An object store in a folder; the rules shared with the runner are in docs/reference/runner-protocol-store.md, "A folder as the store". */
export class FileStore implements ObjectStore {
  readonly url: string
  readonly #root: string
  readonly #now: () => number
  readonly #mark: MarkCheck
  #sweptAtMs = -Infinity

  /**
   * Opens an existing folder, or one that `make` makes. A missing folder is reported by the first use.
   *
   * @param root absolute path
   * @param now the wall clock, for the age of leftovers
   */
  constructor(root: string, now: () => number) {
    this.#root = root
    this.#now = now
    this.url = pathToFileURL(root).href
    this.#mark = new MarkCheck(this.url)
  }

  async make(): Promise<void> {
    await mkdir(this.#root, { recursive: true, mode: 0o700 }).catch((error: unknown) => {
      throw storeErrorOf(
        error,
        `make the folder ${this.#root} of the object store, which CRUCIBLE_STORE names`,
      )
    })
  }

  belongTo(deployment: string): void {
    this.#mark.belongTo(deployment)
  }

  async get(key: string): Promise<Buffer | undefined> {
    return this.#existing(key, 'read', async (path) => {
      checkSize(key, (await stat(path)).size)
      return readFile(path)
    })
  }

  async head(key: string): Promise<StoredObject | undefined> {
    const stats = await this.#existing(key, 'read', statOf)
    return stats && { key, sizeBytes: stats.size, modifiedAtMs: Math.floor(stats.mtimeMs) }
  }

  async put(key: string, body: Buffer | string): Promise<void> {
    await this.#placing(key, (temporary) => writeSynced(temporary, body), renamed)
  }

  async putIfAbsent(key: string, body: Buffer | string): Promise<boolean> {
    if ((await this.head(key)) !== undefined) return false
    const claim = join(
      this.#root,
      TEMPORARY_FOLDER,
      `${createHash('sha256').update(key).digest('hex')}.claim`,
    )
    return this.#placing(
      key,
      (temporary) => writeSynced(temporary, body),
      (temporary, target) => placeIfAbsent(temporary, target, claim),
    )
  }

  async putFile(key: string, path: string): Promise<void> {
    await stat(path).catch((error: unknown) => {
      throw storeErrorOf(error, `read ${path} to store it`)
    })
    await this.#placing(key, (temporary) => copySynced(path, temporary), renamed)
  }

  async getFile(key: string, path: string): Promise<boolean> {
    if ((await this.head(key)) === undefined) return false
    const partial = partialOf(path)
    const failed = (error: unknown): never => {
      throw storeErrorOf(error, `write ${path}`)
    }
    try {
      // The target is created first: any later error except a lack of space then comes from the source.
      await writeFile(partial, '', { flag: 'wx' }).catch(failed)
      const copied = await this.#existing(key, 'read', async (source) => {
        await copyFile(source, partial, constants.COPYFILE_FICLONE).catch((error: unknown) => {
          if (hasCode(error, 'ENOSPC', 'EDQUOT')) failed(error)
          throw error
        })
        return true
      })
      if (copied === undefined) return false
      await rename(partial, path).catch(failed)
      return true
    } finally {
      await rm(partial, { force: true })
    }
  }

  async copy(fromKey: string, toKey: string): Promise<boolean> {
    if ((await this.head(fromKey)) === undefined) return false
    const from = this.#path(fromKey)
    await this.#placing(toKey, (temporary) => copySynced(from, temporary), renamed)
    return true
  }

  async readUrl(key: string): Promise<string> {
    return pathToFileURL(this.#path(key)).href
  }

  async signUrls(key: string): Promise<SignedUrls> {
    const url = await this.readUrl(key)
    return { read: url, write: url, delete: url }
  }

  async *list(prefix: string): AsyncGenerator<StoredObject> {
    checkPrefix(prefix)
    try {
      await this.#checkRoot()
      yield* walk(this.#root, prefix)
    } catch (error) {
      throw storeErrorOf(error, `list ${join(this.#root, prefix)}`)
    }
  }

  async listFolders(prefix: string): Promise<string[]> {
    checkPrefix(prefix)
    const { folder, begin } = splitPrefix(prefix)
    const names: string[] = []
    try {
      await this.#checkRoot()
      for (const entry of await readFolder(this.#root, folder)) {
        if (!entry.isDirectory() || !entry.name.startsWith(begin)) continue
        const first = await walk(this.#root, `${folder}${entry.name}/`).next()
        if (first.done !== true) names.push(entry.name)
      }
    } catch (error) {
      throw storeErrorOf(error, `list ${join(this.#root, prefix)}`)
    }
    return names
  }

  async delete(key: string): Promise<void> {
    if (key !== layout.deployment()) await this.#checkMark()
    await this.#existing(key, 'delete', unlink)
    for (let folder = dirname(key); folder !== '.'; folder = dirname(folder)) {
      // A folder with content, or with content added at this moment, stays; pruning is optional.
      const isPruned = await rmdir(join(this.#root, folder)).then(
        () => true,
        () => false,
      )
      if (!isPruned) return
    }
  }

  async unfinished(): Promise<UnfinishedUpload[]> {
    const folder = join(this.#root, TEMPORARY_FOLDER)
    const found: UnfinishedUpload[] = []
    for (const name of await readdir(folder).catch(() => [])) {
      const stats = await statOf(join(folder, name))
      if (stats !== undefined)
        found.push({ id: name, sizeBytes: stats.size, beganAtMs: Math.floor(stats.mtimeMs) })
    }
    return found
  }

  async abandon({ id }: UnfinishedUpload): Promise<void> {
    await rm(join(this.#root, TEMPORARY_FOLDER, basename(id)), { force: true })
  }

  #path(key: string): string {
    checkKey(key)
    if (key.split('/', 1)[0] === TEMPORARY_FOLDER) {
      throw new StoreError(
        `The key ${JSON.stringify(key)} is in ${TEMPORARY_FOLDER}/, which is reserved for the store.`,
        {
          isTransient: false,
          code: CODES.badKey,
        },
      )
    }
    return join(this.#root, key)
  }

  /** Performs an action on the object's file; returns `undefined` if it does not exist. */
  async #existing<T>(
    key: string,
    verb: string,
    action: (path: string) => Promise<T>,
  ): Promise<T | undefined> {
    const path = this.#path(key)
    try {
      const result = await action(path)
      if (result !== undefined) return result
    } catch (error) {
      // Unlinking a folder is EPERM on macOS.
      const isFolder =
        hasCode(error, 'EPERM') &&
        (await stat(path).then(
          (stats) => stats.isDirectory(),
          () => false,
        ))
      if (!hasCode(error, ...ABSENT_CODES) && !isFolder) throw storeErrorOf(error, `${verb} ${path}`)
    }
    await this.#checkRoot()
    return undefined
  }

  /** Writes a temporary file and moves it to its place, creating folders again that other processes prune. */
  async #placing<T>(
    key: string,
    write: (temporary: string) => Promise<void>,
    place: (temporary: string, target: string) => Promise<T>,
  ): Promise<T> {
    const target = this.#path(key)
    const temporary = join(this.#root, TEMPORARY_FOLDER, randomUUID())
    if (key !== layout.deployment()) await this.#checkMark()
    try {
      await this.#sweep()
      await this.#inFolder(temporary, () => write(temporary))
      return await this.#inFolder(target, () => place(temporary, target))
    } catch (error) {
      throw storeErrorOf(error, `write ${target}`)
    } finally {
      await rm(temporary, { force: true })
    }
  }

  async #inFolder<T>(path: string, action: () => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries++) {
      try {
        return await action()
      } catch (error) {
        if (!hasCode(error, 'ENOENT') || tries === FOLDER_TRIES_MAX) throw error
      }
      await this.#checkRoot()
      await mkdir(dirname(path), { recursive: true }).catch((error: unknown) => {
        // Another process may prune one of several folders before the next is created. A real obstacle fails the action.
        if (!hasCode(error, 'ENOENT', 'ENOTDIR', 'EEXIST')) throw error
      })
    }
  }

  /** A missing root folder means an unmounted disk, and so does one without the deployment's mark; neither is an empty store. */
  async #checkRoot(): Promise<void> {
    await this.#statRoot()
    await this.#checkMark()
  }

  async #statRoot(): Promise<void> {
    await stat(this.#root).catch((error: unknown) => {
      throw hasCode(error, 'ENOENT')
        ? missingRoot(this.#root, error)
        : storeErrorOf(error, `read ${this.#root}`)
    })
  }

  /** An obstacle to reading the mark, other than its absence, also stops the write itself. */
  async #checkMark(): Promise<void> {
    if (!this.#mark.isBound) return
    try {
      this.#mark.compare(await readFile(join(this.#root, layout.deployment())))
    } catch (error) {
      if (error instanceof StoreError) throw error
      if (!hasCode(error, 'ENOENT')) return
      await this.#statRoot()
      this.#mark.compare(undefined)
    }
  }

  /** Removes leftovers of killed processes, once a day. */
  async #sweep(): Promise<void> {
    const nowMs = this.#now()
    if (nowMs - this.#sweptAtMs < DAY_MS) return
    this.#sweptAtMs = nowMs
    for (const upload of await this.unfinished())
      if (nowMs - upload.beganAtMs > DAY_MS) await this.abandon(upload)
  }
}

async function renamed(temporary: string, target: string): Promise<void> {
  try {
    await rename(temporary, target)
  } catch (error) {
    if (!hasCode(error, 'EISDIR', 'ENOTEMPTY', 'EEXIST') || !(await removeEmptyFolder(target))) throw error
    await rename(temporary, target)
  }
}
