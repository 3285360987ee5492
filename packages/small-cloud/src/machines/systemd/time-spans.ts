import { ProgramError } from '../errors'

const SECOND = 1000
const UNITS: readonly [names: readonly string[], ms: number][] = [
  [['us', 'usec', 'µs'], 0.001],
  [['ms', 'msec'], 1],
  [['', 's', 'sec', 'second', 'seconds'], SECOND],
  [['m', 'min', 'minute', 'minutes'], 60 * SECOND],
  [['h', 'hr', 'hour', 'hours'], 3600 * SECOND],
  [['d', 'day', 'days'], 86_400 * SECOND],
  [['w', 'week', 'weeks'], 604_800 * SECOND],
]

/** Milliseconds of `90`, `1h 30min` or `infinity`, as systemd.time(7) writes them. */
export function parseTimeSpan(text: string): number {
  const trimmed = text.trim()
  if (trimmed === 'infinity') return Infinity
  const parts = [...trimmed.matchAll(/(\d+(?:\.\d+)?)\s*([a-zµ]*)\s*/g)]
  const ms = parts.map(([, number, name]) => {
    const unit = UNITS.find(([names]) => names.includes(name!))
    return unit === undefined ? NaN : Number(number) * unit[1]
  })
  const sum = ms.reduce((left, right) => left + right, 0)
  if (parts.length === 0 || parts.map(([whole]) => whole).join('') !== trimmed || Number.isNaN(sum))
    throw new ProgramError(`Failed to parse time span: ${text}`)
  return sum
}
