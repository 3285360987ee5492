/** A client of Temporal, or one of its parts. */
interface Limited {
  withDeadline<T>(deadlineAtMs: number, call: () => Promise<T>): Promise<T>
}

/** Makes a call that the server must answer within `limitMs`. gRPC takes a date, and measures the time until then itself. */
export function withLimit<T>(client: Limited, limitMs: number, call: () => Promise<T>): Promise<T> {
  return client.withDeadline(Date.now() + limitMs, call)
}
