/** Outside calls of retraining: whether inputs exist, and posts to webhooks. */
import { INPUT_MEASURERS } from '../service/input-measurers'
import type { MeasureSource } from '../activities/retraining/checks'

/** Reads the head of an input. Files of other machines cannot be seen from here. */
export const measureInput: MeasureSource = (source, signal) => {
  const scheme = source.slice(0, source.indexOf(':') + 1)
  const measurer = INPUT_MEASURERS[scheme]
  if (measurer !== undefined) return measurer.measure(source, signal).then(() => undefined)
  if (scheme !== 'https:' && scheme !== 'http:') return undefined
  return fetch(source, { method: 'HEAD', signal }).then((response) => {
    if (!response.ok) throw new Error(`the server answered ${response.status}`)
  })
}

/**
 * Posts JSON. Throws if the receiver refuses it. It follows no redirect. The URL may be a secret, so no error contains it. The answer is
 * not read, because it could have any length.
 */
export async function postJson(url: string, body: string, signal: AbortSignal): Promise<void> {
  const headers = { 'content-type': 'application/json' }
  const request = { method: 'POST', headers, body, signal, redirect: 'manual' } as const
  const response = await fetch(url, request).catch((error: unknown) => {
    if (signal.aborted) throw error
    throw new Error(`the webhook cannot be reached (${reasonOf(error)})`)
  })
  await response.body?.cancel()
  if (!response.ok) throw new Error(`the webhook answered ${response.status}`)
}

/** Names of errors only: messages of `fetch` may contain the URL. */
function reasonOf(error: unknown): string {
  const { cause, name } = error as { cause?: { code?: string }; name?: string }
  return cause?.code ?? name ?? 'unknown'
}
