import { layout } from './layout'
import type { AttemptKey } from './machines'
import type { ObjectStore } from './store'

/** A machine writes some hundred characters. Any holder of its URL could write more, so nothing else is read. */
const BYTES_MAX = 4_096
const CHARS_MAX = 500
/** Line breaks and other control characters. */
const CONTROLS = /\p{Cc}+/gu

/** Returns why a machine of an attempt started no runner, as one line in its own words; undefined if none has reported that. */
export async function readLastWords(
  store: ObjectStore,
  { jobId, attempt }: AttemptKey,
): Promise<string | undefined> {
  const key = layout.lastWords(jobId, attempt)
  const found = await store.head(key)
  if (found === undefined) return undefined
  if (found.sizeBytes > BYTES_MAX) return 'its message is too long'
  const text = (await store.get(key))?.toString('utf8').replace(CONTROLS, ' ').trim().slice(0, CHARS_MAX)
  return text === '' ? 'no further message' : text
}
