/**
 * Sends something, so that no request leaves later than `leftMs` from now: from then on others rely on the provider's lists. With no time
 * left, the signal has aborted before the call.
 */
export async function sendWithin<T>(
  { leftMs, signal }: { leftMs: number; signal: AbortSignal },
  send: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const limit = new AbortController()
  const stop = (): void => limit.abort(new DOMException('The send took too long.', 'TimeoutError'))
  if (leftMs <= 0) stop()
  const timer = setTimeout(stop, Math.max(0, leftMs))
  try {
    return await send(AbortSignal.any([signal, limit.signal]))
  } finally {
    clearTimeout(timer)
  }
}
