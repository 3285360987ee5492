import { randomUUID } from 'node:crypto'
import { CODES } from '../core/errors'
import { StoreError, type ObjectStore } from './store'

/** Returns the store's own time: the date of an object written just now. Throws a `StoreError`. */
export async function storeTimeMs(store: ObjectStore): Promise<number> {
  const key = `doctor/${randomUUID()}`
  try {
    await store.put(key, '')
    const head = await store.head(key)
    if (head !== undefined) return head.modifiedAtMs
  } finally {
    await store.delete(key).catch(() => undefined)
  }
  throw new StoreError(`${store.url} does not show an object that was just written.`, { isTransient: true })
}

/**
 * Verifies conditional writes, the guarantee on which everything depends: of two writers of one key, the second must get an error. Throws a
 * `StoreError` with the remedy if the store does not honour them.
 */
export async function provePutIfAbsent(store: ObjectStore): Promise<void> {
  const key = `doctor/${randomUUID()}`
  try {
    const isFirst = await store.putIfAbsent(key, '')
    if (isFirst && !(await store.putIfAbsent(key, ''))) return
  } finally {
    await store.delete(key).catch(() => undefined)
  }
  throw new StoreError(
    `${store.url} does not honour conditional writes (If-None-Match): two writers both created the same key. ` +
      'Use a store that honours If-None-Match on PUT, as S3 does.',
    { isTransient: false, code: CODES.noPutIfAbsent },
  )
}
