/**
 * Reads recordings of real spot markets. It recognizes four formats by their content:
 * - JSON `{"metadata": {"gap_seconds": G}, "data": [...], "prices": [...]}`: available machines in each tick, and prices;
 * - CSV with `ms,event,node`: machines added and removed;
 * - CSV with `zone,time_as_recorded,usd_per_hour`: price changes of several zones;
 * - NDJSON with `zone, window, gap_seconds, available_rle, spot_price_rle`: windows of several zones.
 */
import { readFileSync } from 'node:fs'
import { gunzipSync } from 'node:zlib'
import { z } from 'zod'
import { seriesOf, type Series } from './series'

export interface Recording {
  stock?: Series<number>
  usdPerHour?: Series<number>
}

/** Selects a part of a file. */
export interface Excerpt {
  zone?: string | undefined
  window?: number | undefined
  offset: number
}

/** An unusable recording; the message gives the reason and the possible choices. */
export class TraceError extends Error {}

const ticksFile = z.object({
  metadata: z.object({ gap_seconds: z.number().positive() }),
  data: z.array(z.number().min(0)).min(1),
  prices: z.array(z.number().nullable()).optional(),
})
const runs = z.array(z.tuple([z.number(), z.int().positive()])).min(1)
const windowLine = z.object({
  zone: z.string(),
  window: z.int(),
  gap_seconds: z.number().positive(),
  available_rle: runs,
  spot_price_rle: runs,
})

/** Reads a recording from a file. Its first instant, moved by the offset, is the start of the world. */
export function readTrace(path: string, excerpt: Excerpt): Recording {
  const bytes = bytesOf(path)
  const text = (path.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString('utf8')
  const recording = readText(path, text, excerpt)
  return {
    ...(recording.stock && { stock: moved(recording.stock, excerpt.offset) }),
    ...(recording.usdPerHour && { usdPerHour: moved(recording.usdPerHour, excerpt.offset) }),
  }
}

function bytesOf(path: string): Buffer {
  try {
    return readFileSync(path)
  } catch (error) {
    throw new TraceError(`${path} cannot be read (${(error as NodeJS.ErrnoException).code ?? String(error)})`)
  }
}

function readText(path: string, text: string, excerpt: Excerpt): Recording {
  const [head = ''] = text.split('\n', 1)
  if (/^ms,event,node\s*$/.test(head)) return nodeEvents(text)
  if (/^zone,time_as_recorded,usd_per_hour\s*$/.test(head)) return priceChanges(path, text, excerpt)
  if (/\.ndjson(\.gz)?$/.test(path)) return windowOf(path, text, excerpt)
  const ticks = ticksFile.safeParse(parsed(text))
  if (!ticks.success)
    throw new TraceError(
      `${path} is not a recording that this cloud knows; packages/small-cloud/WORLDS.md lists the formats`,
    )
  return fromTicks(ticks.data)
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function fromTicks({ metadata, data, prices }: z.output<typeof ticksFile>): Recording {
  const gapMs = metadata.gap_seconds * 1000
  const known = (prices ?? []).flatMap((usd, i) =>
    usd === null || usd <= 0 ? [] : [[i * gapMs, usd] as const],
  )
  return {
    stock: seriesOf(data.map((count, i) => [i * gapMs, count] as const)),
    ...(known.length > 0 && { usdPerHour: seriesOf(known) }),
  }
}

function nodeEvents(text: string): Recording {
  let count = 0
  const changes = rowsOf(text).map(([ms, event]) => {
    count += event === 'add' ? 1 : -1
    return [Number(ms), count] as const
  })
  // Of several events at one instant the last count applies.
  const last = new Map(changes)
  return { stock: seriesOf([[0, last.get(0) ?? 0], ...last]) }
}

function priceChanges(path: string, text: string, { zone }: Excerpt): Recording {
  const rows = rowsOf(text)
  const zones = [...new Set(rows.map(([name]) => name!))]
  const wanted = choose(path, { what: 'zone', wanted: zone, choices: zones })
  const instants = rows
    .filter(([name]) => name === wanted)
    .map(([, time, usd]) => [Date.parse(`${time}Z`), Number(usd)] as const)
  const firstMs = Math.min(...rows.map(([, time]) => Date.parse(`${time}Z`)))
  return { usdPerHour: seriesOf(instants.map(([ms, usd]) => [ms - firstMs, usd] as const)) }
}

function windowOf(path: string, text: string, { zone, window }: Excerpt): Recording {
  const lines = text.split('\n').filter((line) => line.trim() !== '')
  const windows = lines.map((line) => {
    const read = windowLine.safeParse(parsed(line))
    if (!read.success) throw new TraceError(`${path} has a line that is not a window: ${line.slice(0, 60)}`)
    return read.data
  })
  const wantedZone = choose(path, {
    what: 'zone',
    wanted: zone,
    choices: [...new Set(windows.map((each) => each.zone))],
  })
  const ofZone = windows.filter((each) => each.zone === wantedZone)
  const numbers = ofZone.map((each) => String(each.window))
  const wantedWindow = choose(path, { what: 'window', wanted: window?.toString(), choices: numbers })
  const found = ofZone.find((each) => String(each.window) === wantedWindow)!
  const gapMs = found.gap_seconds * 1000
  return { stock: fromRuns(found.available_rle, gapMs), usdPerHour: fromRuns(found.spot_price_rle, gapMs) }
}

function fromRuns(lengths: z.output<typeof runs>, gapMs: number): Series<number> {
  let tick = 0
  return seriesOf(
    lengths.map(([value, length]) => {
      const change = [tick * gapMs, value] as const
      tick += length
      return change
    }),
  )
}

interface Choice {
  what: string
  wanted: string | undefined
  choices: readonly string[]
}

function choose(path: string, { what, wanted, choices }: Choice): string {
  if (wanted !== undefined && choices.includes(wanted)) return wanted
  if (wanted === undefined && choices.length === 1) return choices[0]!
  const problem = wanted === undefined ? `holds several ${what}s` : `has no ${what} ${wanted}`
  throw new TraceError(
    `${path} ${problem}; write \`${what}:\` with one of ${choices.slice(0, 12).join(', ')}`,
  )
}

function rowsOf(text: string): string[][] {
  const lines = text.split(/\r?\n/).slice(1)
  return lines
    .filter((line) => line.trim() !== '')
    .map((line) => line.split(',').map((field) => field.trim()))
}

function moved<T>({ changes }: Series<T>, offsetMs: number): Series<T> {
  return { changes: changes.map(([atMs, value]) => [atMs - offsetMs, value] as const) }
}
