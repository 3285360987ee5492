import type { TimedContext } from '../../backends/backend'

/**
 * Sends a request, so that none leaves later than `untilMs`: from then on others rely on the provider's lists. With no time left, the
 * signal has aborted before the call. Both the clock and a timer are checked, because the clock can be set back, and timers stand still in
 * a suspended process.
 */
export async function sendWithin<T>(
  { untilMs, now, signal }: { untilMs: number; now: () => number; signal: AbortSignal },
  send: (ctx: Required<TimedContext>) => Promise<T>,
): Promise<T> {
  const leftMs = untilMs - now()
  const limit = new AbortController()
  const stop = (): void => limit.abort(new DOMException('The send took too long.', 'TimeoutError'))
  if (leftMs <= 0) stop()
  const timer = setTimeout(stop, Math.max(0, leftMs))
  try {
    return await send({
      signal: AbortSignal.any([signal, limit.signal]),
      isLate: () => limit.signal.aborted || now() >= untilMs,
    })
  } finally {
    clearTimeout(timer)
  }
}
