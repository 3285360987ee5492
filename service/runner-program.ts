import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { MINUTE_MS } from '../core/time/time'
import { layout } from '../storage/layout'
import type { ObjectStore } from '../storage/store'

/** The runner of this version, shipped with the code. */
const PROGRAM = join(__dirname, '..', 'runner', 'crucible-runner.pyz')

/** The runner program of this version: uploads it to the store once and returns its digest. */
export function runnerPublisher(store: ObjectStore, program = PROGRAM): () => Promise<string> {
  let published: Promise<string> | undefined
  const publish = async (): Promise<string> => {
    const body = await readFile(program)
    const sha256 = createHash('sha256').update(body).digest('hex')
    await store.putIfAbsent(layout.runner(sha256), body)
    return sha256
  }
  return () => {
    published ??= publish().catch((error: unknown) => {
      // The next job retries, because a full disk may have been freed meanwhile.
      published = undefined
      throw error
    })
    return published
  }
}

/** Copies a runner program of any version from the store to a machine's directory. */
export function runnerFetcher(store: ObjectStore): (sha256: string, toPath: string) => Promise<void> {
  return async (sha256, toPath) => {
    if (await store.getFile(layout.runner(sha256), toPath)) return
    throw new Error(`The runner ${sha256} is not in the object store ${store.url}.`)
  }
}

/** Validity of a URL: a machine downloads its runner immediately after it gets the address, or gets the address again. */
const READABLE_MS = 15 * MINUTE_MS

/** Returns a function that links to a runner program of any version. */
export function runnerLinker(store: ObjectStore): (sha256: string) => Promise<string> {
  return (sha256) => store.readUrl(layout.runner(sha256), READABLE_MS)
}
