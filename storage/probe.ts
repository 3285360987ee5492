import { randomUUID } from 'node:crypto'
import { CODES } from '../core/errors'
import { StoreError, type ObjectStore } from './store'

/**
 * Proves the one promise of a store that nothing can be built without: of two writers of one key the second is told. Throws a
 * `StoreError` that says what to do where it does not hold.
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
