import { execFileSync } from 'node:child_process'
import { SECOND_MS } from '../../core/time/time'

/** One figure of a benchmark, against its goal if it has one. */
export interface Measure {
  bench: string
  name: string
  value: number
  unit: string
  goal?: { is: 'at most' | 'at least'; value: number }
  /** What it was measured against, and how, in a few words. */
  remark?: string
}

export function isMissed({ value, goal }: Measure): boolean {
  if (goal === undefined) return false
  return goal.is === 'at most' ? value > goal.value : value < goal.value
}

/** `history     child with a drain      49 events   at most 60: pass`. */
export function lineOf(measure: Measure): string {
  const { bench, name, value, unit, goal, remark } = measure
  const verdict = goal === undefined ? '' : `${goal.is} ${goal.value}: ${isMissed(measure) ? 'MISS' : 'pass'}`
  const note = remark === undefined ? '' : `(${remark})`
  const figure = `${rounded(value)} ${unit}`.padStart(14)
  return [bench.padEnd(11), name.padEnd(46), figure, '  ', verdict.padEnd(20), note].join(' ').trimEnd()
}

/** Three digits that count. */
function rounded(value: number): number {
  return value === 0 ? 0 : Number(value.toPrecision(value >= 1_000 ? 4 : 3))
}

/** The value below which a part of all values lie; `median` is a half. */
export function quantile(values: readonly number[], part: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))]!
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5)
}

/** How long something took, in milliseconds. */
export async function timed(work: () => Promise<unknown>): Promise<number> {
  const from = performance.now()
  await work()
  return performance.now() - from
}

export interface Usage {
  rssKiB: number
  cpuMs: number
}

/** Memory and processor time of a process, as the system counts them. */
export function usageOf(pid: number): Usage {
  const text = execFileSync('ps', ['-o', 'rss=,time=', '-p', String(pid)], { encoding: 'utf8' })
  const [rss, time] = text.trim().split(/\s+/)
  // `[days-][hours:]minutes:seconds`, with or without hundredths.
  const [rest, days = '0'] = time!.split('-').reverse()
  const seconds = rest!.split(':').reduce((sum, part) => sum * 60 + Number(part), 0)
  return { rssKiB: Number(rss), cpuMs: (Number(days) * 86_400 + seconds) * SECOND_MS }
}
