/**
 * Instants are milliseconds since 1970-01-01 UTC and are named `...AtMs`; durations are milliseconds and are named
 * `...Ms`. Both are plain numbers: they cross Temporal as JSON.
 */
export const SECOND_MS = 1_000
export const MINUTE_MS = 60 * SECOND_MS
export const HOUR_MS = 60 * MINUTE_MS
export const DAY_MS = 24 * HOUR_MS

/**
 * Slack for every comparison of two machines' wall clocks. Clock services keep machines within a second of each other; half a minute also
 * covers a machine whose clock is set only after its first beats.
 */
export const CLOCK_SLACK_MS = 30 * SECOND_MS

const UNITS: readonly [string, number][] = [
  ['d', DAY_MS],
  ['h', HOUR_MS],
  ['m', MINUTE_MS],
  ['s', SECOND_MS],
]

/** A duration as people read it, in its two largest units: `3d 4h`, `1m 05s`, `12s`, `0.4s`. */
export function formatDuration(durationMs: number): string {
  const ms = Math.max(0, durationMs)
  if (ms < 10 * SECOND_MS && ms % SECOND_MS !== 0) return `${(ms / SECOND_MS).toFixed(1)}s`
  const whole = Math.round(ms / SECOND_MS) * SECOND_MS
  const first = UNITS.findIndex(([, unitMs]) => whole >= unitMs)
  if (first === -1) return '0s'
  const [name, unitMs] = UNITS[first]!
  const next = UNITS[first + 1]
  const count = Math.floor(whole / unitMs)
  if (next === undefined) return `${count}${name}`
  const rest = Math.floor((whole % unitMs) / next[1])
  if (rest === 0) return `${count}${name}`
  return next[0] === 's'
    ? `${count}${name} ${String(rest).padStart(2, '0')}s`
    : `${count}${name} ${rest}${next[0]}`
}

/** An instant as ISO 8601 in UTC, without milliseconds: `2026-11-21T09:30:00Z`. `unknown` for a number that is no instant. */
export function formatInstant(atMs: number): string {
  const instant = new Date(atMs)
  if (Number.isNaN(instant.getTime())) return 'unknown'
  return instant.toISOString().replace(/\.\d{3}Z$/, 'Z')
}
