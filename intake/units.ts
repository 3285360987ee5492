/** Durations, sizes, ranges, money and instants as people write them. */
import { defined } from '../core/defined'
import { CodedError } from '../core/errors'
import { LABEL_FLOOR } from '../core/gpu-memory'
import { microUsd, type MicroUsd } from '../core/money/money'
import type { Range } from '../core/resources'
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../core/time/time'

/** An unreadable text; the message completes "<field> ..." and the remedy is in the imperative. */
export class UnitError extends CodedError<'unit'> {
  readonly remedy: string

  constructor(message: string, remedy: string) {
    super('unit', message)
    this.remedy = remedy
  }
}

const NUMBER = String.raw`\d+(?:\.\d+)?`

/** `90s`, `30m`, `2h`, `1d12h`, `1.5h`; also used in a schema for editors, so without flags. */
export const DURATION_PATTERN = String.raw`^\s*(?:${NUMBER}\s*[dD]\s*)?(?:${NUMBER}\s*[hH]\s*)?(?:${NUMBER}\s*[mM]\s*)?(?:${NUMBER}\s*[sS]\s*)?$`
/** `10h`, or `10h on A100`: the time that a training takes on an accelerator. */
export const TRAINING_TIME_PATTERN = DURATION_PATTERN.replace(/\$$/, String.raw`(?:[oO][nN]\s+[A-Za-z].*)?$`)
const DURATION_PARTS: readonly [string, number][] = [
  ['d', DAY_MS],
  ['h', HOUR_MS],
  ['m', MINUTE_MS],
  ['s', SECOND_MS],
]

/** Whether a text is a time of hours, minutes and seconds, or has days in front of it. */
function isClock(text: string): boolean {
  return /^\s*(?:\d+-\d+(?::\d+){0,2}|\d+:\d+:\d+)\s*$/.test(text) && clockTime(text) !== undefined
}

/** A duration in milliseconds. */
export function parseDuration(text: string): number {
  const isDuration = new RegExp(DURATION_PATTERN).test(text)
  const parts = isDuration ? [...text.matchAll(new RegExp(`\\s*(${NUMBER})\\s*([dhms])`, 'giy'))] : []
  if (parts.length === 0) {
    throw new UnitError(
      `${quote(text)} is not a duration`,
      /^\s*[\d.]+\s*$/.test(text)
        ? `add its unit: ${text.trim()}s, ${text.trim()}m, ${text.trim()}h or ${text.trim()}d`
        : isClock(text)
          ? `write ${clockTime(text)}`
          : 'write days, hours, minutes and seconds in this order, such as 90s, 30m, 2h, 1d12h or 1.5h',
    )
  }
  const totalMs = parts.reduce((sum, [, count, unit]) => {
    const unitMs = DURATION_PARTS.find(([name]) => name === unit!.toLowerCase())![1]
    return sum + Number(count) * unitMs
  }, 0)
  return Math.round(totalMs)
}

/** A duration as Slurm writes it, here `12h`, `2d` and `30m`: `12:00:00`, `2-00:00:00`, `30`. */
export function clockTime(text: string): string | undefined {
  const match = /^(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?$/.exec(text.trim())
  if (match === null) return undefined
  const [days = '0', first = '0', second, third] = match.slice(1)
  const hasHours = match[1] !== undefined || third !== undefined
  const hours = hasHours ? Number(first) : 0
  const minutes = Number((hasHours ? second : first) ?? 0)
  const parts: [number, string][] = [
    [Number(days), 'd'],
    [hours, 'h'],
    [minutes, 'm'],
  ]
  return parts.flatMap(([count, unit]) => (count === 0 ? [] : [`${count}${unit}`])).join('') || undefined
}

const GIB = 2 ** 30
const SIZE_UNITS: Readonly<Record<string, number>> = {
  mb: 1e6,
  gb: 1e9,
  tb: 1e12,
  mib: 2 ** 20,
  gib: GIB,
  tib: 2 ** 40,
}
const SIZE = String.raw`${NUMBER}\s*[mMgGtT][iI]?[bB]`
export const SIZE_PATTERN = String.raw`^\s*${SIZE}\s*$`
export const SIZE_RANGE_PATTERN = String.raw`^\s*(?:${SIZE}\s*\+?|(?:${NUMBER}|${SIZE})\s*\.\.\s*${SIZE}|${SIZE}\s*\.\.|\.\.\s*${SIZE})\s*$`
const SIZE_REMEDY = 'write a number with MB, GB, TB, MiB, GiB or TiB, such as 24GB or 16GiB'

interface Size {
  bytes: number
  /** MB, GB or TB: a marketing size, not an exact one. */
  isLabel: boolean
}

function parseSize(text: string): Size {
  const match = new RegExp(`^(${NUMBER})\\s*([mgt]i?b)$`, 'i').exec(text.trim())
  if (match === null) throw notASize(text)
  const unit = match[2]!.toLowerCase()
  return { bytes: Number(match[1]) * SIZE_UNITS[unit]!, isLabel: !unit.includes('i') }
}

function notASize(text: string): UnitError {
  const isBare = /^\s*[\d.]*\d\s*$/.test(text)
  return new UnitError(
    `${quote(text)} is not a size`,
    isBare ? `add its unit: ${text.trim()}GB or ${text.trim()}GiB` : SIZE_REMEDY,
  )
}

/** A single amount in GiB, exact: 1 GB is 10^9 bytes. */
export function parseSizeGiB(text: string): number {
  return roundGiB(parseSize(text).bytes / GIB, Math.round)
}

/**
 * A range of sizes in GiB as a machine reports them. GB is a marketing size: 0.92 GiB as a lower bound, 1 GiB as an upper bound.
 * GiB is exact. A single size is a lower bound.
 */
export function parseSizeRange(text: string): Range {
  const { from, to } = parseSizes(text)
  const range: Range = {}
  if (from !== undefined)
    range.min = from.isLabel ? roundGiB(labelGb(from) * LABEL_FLOOR, Math.floor) : gib(from, Math.floor)
  if (to !== undefined) range.max = to.isLabel ? roundGiB(labelGb(to), Math.ceil) : gib(to, Math.ceil)
  return range
}

/** A range of sizes with bounds in GB (marketing sizes) or in GiB (exact). */
export interface LabelledRange {
  gb?: Range
  gib?: Range
}

/** Parses a range like `parseSizeRange`, but keeps marketing sizes, because their meaning depends on the card. */
export function parseLabelledRange(text: string): LabelledRange {
  const { from, to } = parseSizes(text)
  const range: LabelledRange = {}
  if (from !== undefined)
    if (from.isLabel) range.gb = { min: roundGiB(labelGb(from), Math.floor) }
    else range.gib = { min: gib(from, Math.floor) }
  if (to !== undefined)
    if (to.isLabel) range.gb = { ...range.gb, max: roundGiB(labelGb(to), Math.ceil) }
    else range.gib = { ...range.gib, max: gib(to, Math.ceil) }
  return range
}

function parseSizes(text: string): { from: Size | undefined; to: Size | undefined } {
  const bounds = splitRange(text)
  if (!/[a-z]/i.test(text)) throw notASize(text)
  // In `24..80GB`, the unit appears once.
  const unit = /(?<![a-z])[a-z]+$/i.exec(bounds.to ?? '')?.[0] ?? ''
  const isBare = bounds.to !== undefined && new RegExp(`^${NUMBER}$`).test(bounds.from ?? '')
  const from = bounds.from === undefined ? undefined : parseSize(isBare ? bounds.from + unit : bounds.from)
  const to = bounds.to === undefined ? undefined : parseSize(bounds.to)
  if (from !== undefined && to !== undefined && from.bytes > to.bytes) throw reversed(text, bounds)
  return { from, to }
}

function labelGb(size: Size): number {
  return size.bytes / SIZE_UNITS.gb!
}

function gib(size: Size, round: (value: number) => number): number {
  return roundGiB(size.bytes / GIB, round)
}

/** Thousandths: fine enough for differences in MiB, short enough to read. */
function roundGiB(value: number, round: (value: number) => number): number {
  // Twelve digits first, so that 22.080000000000002 does not round up.
  return round(Number((value * 1000).toPrecision(12))) / 1000
}

export const COUNT_RANGE_PATTERN = String.raw`^\s*(?:\d+\s*\+?|\d+\s*\.\.\s*\d*|\.\.\s*\d+)\s*$`

/** A range of whole numbers, such as `4`, `16+`, `2..8`, `..8`; a single one is a lower bound, or exact when `isExact`. */
export function parseCountRange(text: string, isExact: boolean): Range {
  const { from, to } = splitRange(text)
  const isSingle = new RegExp(`^\\s*${NUMBER}\\s*$`).test(text)
  const [min, max] = [from, isSingle && isExact ? from : to].map((bound) => {
    if (bound === undefined) return undefined
    if (!/^\d{1,9}$/.test(bound)) {
      throw new UnitError(`${quote(text)} is not a whole number or a range of them`, RANGE_REMEDY)
    }
    return Number(bound)
  })
  if (min !== undefined && max !== undefined && min > max) throw reversed(text, { from: from!, to: to! })
  return defined({ min, max })
}

const RANGE_REMEDY = 'write 4, 16+ (at least), 2..8 (from, to) or ..8 (at most)'

interface Bounds {
  from: string | undefined
  to: string | undefined
}

/** The texts of both bounds; a text without `..` is only a lower bound, with or without a trailing `+`. */
function splitRange(text: string): Bounds {
  const [from = '', to, ...rest] = text.split('..').map((part) => part.trim())
  const isEmpty = from === '' && (to === undefined || to === '')
  if (isEmpty || rest.length > 0) throw new UnitError(`${quote(text)} is not a range`, RANGE_REMEDY)
  if (to === undefined) return { from: from.replace(/\+$/, '').trimEnd(), to: undefined }
  return { from: from === '' ? undefined : from, to: to === '' ? undefined : to }
}

function reversed(text: string, { from, to }: Bounds): UnitError {
  return new UnitError(`${quote(text)} has its bounds in the wrong order`, `write ${to}..${from}`)
}

export const MONEY_PATTERN = String.raw`^\s*(?:\$\s*)?${NUMBER}(?:\s*[uU][sS][dD])?\s*$`

/** US dollars: `$25`, `25`, `25.50`, `25 USD`. */
export function parseMoney(text: string): MicroUsd {
  const match = new RegExp(`^\\$?\\s*(${NUMBER})(?:\\s*usd)?$`, 'i').exec(text.trim())
  if (match === null) {
    const isGrouped = /^\$?\s*\d{1,3}(?:[,_ ]\d{3})+(?:\.\d+)?$/.test(text.trim())
    throw new UnitError(
      `${quote(text)} is not an amount of US dollars`,
      isGrouped ? `write ${text.trim().replace(/[,_ ]/g, '')}` : 'write $25, 25.50 or "25 USD"',
    )
  }
  return microUsd(Number(match[1]))
}

const INSTANT =
  /^(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,3})\d*)?)?\s*(Z|[+-]\d\d:?\d\d)?$/i
const INSTANT_REMEDY =
  'write a date and time with its zone, such as 2027-01-31T18:00:00Z or 2027-01-31T18:00+01:00, or a duration such as 36h'

/** The deadline of a job: a time, or a duration after its submission. */
export type Deadline = { atMs: number } | { afterMs: number }

/** An instant with its zone (ISO 8601), or a duration. */
export function parseDeadline(text: string): Deadline {
  if (!/^\s*\d{4}-/.test(text)) return { afterMs: durationUntilDeadline(text) }
  const match = INSTANT.exec(text.trim())
  if (match === null) throw new UnitError(`${quote(text)} is not an instant`, INSTANT_REMEDY)
  const [year, month, day, hour, minute, second] = match.slice(1, 7).map((part) => Number(part ?? 0))
  const zone = match[8]
  if (zone === undefined) {
    throw new UnitError(
      `${quote(text)} has no time zone`,
      `write ${text.trim()}Z for UTC, or add an offset such as +01:00`,
    )
  }
  const local = new Date(
    Date.UTC(year!, month! - 1, day, hour, minute, second, Number((match[7] ?? '').padEnd(3, '0'))),
  )
  const offset = /^([+-])(\d\d):?(\d\d)$/.exec(zone)
  const isReal =
    local.getUTCMonth() === month! - 1 &&
    local.getUTCDate() === day &&
    hour! < 24 &&
    minute! < 60 &&
    second! < 60
  if (!isReal || Number(offset?.[2] ?? 0) > 14 || Number(offset?.[3] ?? 0) > 59) {
    throw new UnitError(`${quote(text)} is not in the calendar`, INSTANT_REMEDY)
  }
  const offsetMs = Number(offset?.[2] ?? 0) * HOUR_MS + Number(offset?.[3] ?? 0) * MINUTE_MS
  return { atMs: local.getTime() + (offset?.[1] === '-' ? offsetMs : -offsetMs) }
}

function durationUntilDeadline(text: string): number {
  try {
    return parseDuration(text)
  } catch {
    throw new UnitError(`${quote(text)} is neither an instant nor a duration`, INSTANT_REMEDY)
  }
}

const QUOTED_MAX = 60

/** A text in quotes, shortened. */
export function quote(text: string): string {
  return JSON.stringify(text.length > QUOTED_MAX ? `${text.slice(0, QUOTED_MAX)}…` : text)
}
