import { CODES } from '../core/errors'
import { parseDeployment } from './deployment-id'
import { layout } from './layout'
import { StoreError } from './store'

/**
 * The mark of a store is `deployment.json` in its root. Without it, the place is an empty mount point or an emptied bucket; with another id
 * in it, the place is another deployment's store. These sentences are the same in every command and worker, and in `store/file_store.py`.
 */

/** The root folder does not exist. */
export function missingRoot(root: string, cause: unknown): StoreError {
  return new StoreError(
    `The folder ${root} of the object store is missing: mount its disk or restore it. A new store is made by \`crucible dev\` or the first worker.`,
    { isTransient: true, code: CODES.noRoot, cause },
  )
}

/** The place exists, and has no mark. */
export function unmarkedStore(url: string): StoreError {
  return new StoreError(
    `The object store ${url} is empty or was emptied: it has no ${layout.deployment()}. If its disk is not mounted, mount it; if its content is lost, restore it. A new store is set up by \`crucible dev\` or the first worker.`,
    { isTransient: true, code: CODES.noMark },
  )
}

/** The place has the mark of another deployment. */
function foreignStore(url: string, { found, expected }: { found: string; expected: string }): StoreError {
  return new StoreError(
    `The object store ${url} belongs to another deployment (${found}, expected ${expected}): correct CRUCIBLE_STORE, or mount the right disk.`,
    { isTransient: true, code: CODES.foreignStore },
  )
}

/** Whether an error says that the place of the store is not this deployment's store. */
export function isNotOurs(error: unknown): boolean {
  return (
    error instanceof StoreError &&
    ([CODES.noRoot, CODES.noMark, CODES.foreignStore] as (string | undefined)[]).includes(error.code)
  )
}

/**
 * Remembers whose store this is, and compares the mark with it. Until `belongTo`, nothing is compared: an unused store has no mark yet.
 * A mark that exists and cannot be read says nothing about the owner, so it stops nothing.
 */
export class MarkCheck {
  #expected: string | undefined

  constructor(private readonly url: string) {}

  get isBound(): boolean {
    return this.#expected !== undefined
  }

  /** The first deployment counts. */
  belongTo(deployment: string): void {
    this.#expected ??= deployment
  }

  /** Throws a `StoreError` if the content of the mark, missing for an absent one, is not that of the own deployment. */
  compare(mark: Buffer | undefined): void {
    const expected = this.#expected
    if (expected === undefined) return
    if (mark === undefined) throw unmarkedStore(this.url)
    const found = idIn(mark)
    if (found !== undefined && found !== expected) throw foreignStore(this.url, { found, expected })
  }
}

function idIn(mark: Buffer): string | undefined {
  try {
    return parseDeployment(mark.toString('utf8')).id
  } catch {
    return undefined
  }
}
