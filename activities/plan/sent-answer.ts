import { gunzipSync, gzipSync } from 'node:zlib'
import type { SentAnswer } from '../../core/job/waiting'
import type { BackendAnswer } from '../../core/job/plan'

/** Temporal takes no result above 2 MiB; shorter ones stay readable. */
const READABLE_BYTES_MAX = 2 ** 19

/** Encodes an answer for its activity's result: equal parts of its offers, which are most of them, are sent once. */
export function sent(answer: BackendAnswer): SentAnswer {
  const text = JSON.stringify(answer)
  return Buffer.byteLength(text) <= READABLE_BYTES_MAX
    ? answer
    : { gzipBase64: gzipSync(text).toString('base64') }
}

/** The answer that `sent` has prepared. */
export function received(answer: SentAnswer): BackendAnswer {
  if (!('gzipBase64' in answer)) return answer
  // Only `sent` writes this form, so it is trusted.
  return JSON.parse(gunzipSync(Buffer.from(answer.gzipBase64, 'base64')).toString()) as BackendAnswer
}
