/** Fields of the job file that are stored differently from how they are written: as texts with units, or in short form. */
import { withoutEnd } from '../core/trim'
import { z } from 'zod'
import { ACCELERATORS, findAccelerator } from '../core/accelerators'
import { PERIODS, WEEKDAYS, type DayRule, type Period } from '../core/time/calendar'
import { formatUsd, type MicroUsd } from '../core/money/money'
import { CAPACITY_TYPES, type BackendChoice } from '../core/offer'
import type { Range } from '../core/resources'
import type { Tolerance } from '../core/retraining/retraining'
import { SPEED_REFERENCE, speedOf } from '../core/speed'
import { formatDuration, SECOND_MS } from '../core/time/time'
import { backendName, envOf, envValue, innerPath, LIMITS, source, tagsOf } from './fields'
import { nearest } from './nearest'
import * as units from './units'
import { quote, UnitError } from './units'

/** A field written as an amount, and its stored form. */
export type Written<T> = z.ZodType<T, string | number>

/** An amount: a text with a pattern, or a number, which YAML makes of some texts. */
function amount<T>(what: string, pattern: string, read: (text: string) => T): Written<T> {
  return z
    .union([z.string().meta({ pattern }), z.number()], `must be ${what}`)
    .transform((value, context) => reading(() => read(String(value)), context))
}

/** Returns a schema for a text with a meaning. */
function text<T>(read: (text: string) => T): z.ZodType<T, string> {
  return z.string().transform((value, context) => reading(() => read(value), context))
}

/** Calls `read`; its `UnitError` becomes an issue. */
function reading<T>(read: () => T, context: z.core.$RefinementCtx): T {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof UnitError)) throw error
    const { message, remedy } = error
    context.issues.push({ code: 'custom', message, input: context.value, params: { remedy } })
    return z.NEVER
  }
}

/** Variables as written in the file: `4` and `true` are texts for a program. */
export const env = envOf(
  z.union([z.string(), z.number(), z.boolean()], 'must be a text').transform(String).pipe(envValue),
)

/** Tags as written in the file: `42` is a text, as on a bill. */
export const tags = tagsOf(
  z.union([z.string(), z.number(), z.boolean()], 'must be a text').transform(String).pipe(z.string()),
)

/** A list that may be written as its only entry. */
export function oneOrMore<T, I>(entry: z.ZodType<T, I>, entriesMax: number): z.ZodType<T[], I | I[]> {
  return z.union([entry.transform((value) => [value]), z.array(entry).max(entriesMax)], 'must be a list')
}

interface Bounds {
  least: number
  most: number
  format: (value: number) => string
}

function bounded(text: string, value: number, { least, most, format }: Bounds): number {
  if (value < least) throw new UnitError(`${quote(text)} is too small`, `write at least ${format(least)}`)
  if (value > most) throw new UnitError(`${quote(text)} is too large`, `write at most ${format(most)}`)
  return value
}

function boundedDuration(text: string, least: number): number {
  return bounded(text, units.parseDuration(text), { least, most: LIMITS.durationMs, format: formatDuration })
}

function duration(least: number): Written<number> {
  return amount('a duration such as 36h', units.DURATION_PATTERN, (text) => boundedDuration(text, least))
}

/** A positive duration. */
export const span = duration(SECOND_MS)

/** A training time: a positive duration, and the accelerator that it was measured on or estimated for. */
export const trainingTime = amount(
  'a duration such as 36h, or 36h on A100',
  units.TRAINING_TIME_PATTERN,
  (text): { ms: number; on?: string } => {
    const [length = '', name] = text.split(/\bon\s/i)
    const ms = boundedDuration(length, SECOND_MS)
    return name === undefined ? { ms } : { ms, on: acceleratorOfKnownSpeed(name.trim()) }
  },
)

function acceleratorOfKnownSpeed(written: string): string {
  const name = findAccelerator(written)?.name
  if (name !== undefined && speedOf(name, SPEED_REFERENCE) !== undefined) return name
  const known = ACCELERATORS.map((one) => one.name)
  throw new UnitError(
    `names ${quote(written)}, a GPU type of unknown training speed`,
    `write the duration on a GPU type whose speed is known, such as ${nearest(written, known) ?? SPEED_REFERENCE}`,
  )
}

/** An interval; 0s for every time. */
export const pace = duration(0)

export const sizeRange = amount('a size or a range of sizes', units.SIZE_RANGE_PATTERN, (text): Range => {
  const range = units.parseSizeRange(text)
  bounded(text, range.min ?? 0, SIZE_BOUNDS)
  return range
})

export const labelledRange = amount(
  'a size or a range of sizes',
  units.SIZE_RANGE_PATTERN,
  (text): units.LabelledRange => {
    const range = units.parseLabelledRange(text)
    bounded(text, range.gb?.min ?? range.gib?.min ?? 0, SIZE_BOUNDS)
    return range
  },
)

export const size = amount('a size', units.SIZE_PATTERN, (text) =>
  bounded(text, units.parseSizeGiB(text), SIZE_BOUNDS),
)
const SIZE_BOUNDS: Bounds = { least: 0, most: LIMITS.sizeGiB, format: (gib) => `${gib}GiB` }

/** A number of things, or a range; a single number means exactly that many, or at least that many. */
export function count(most: number, single: 'exactly' | 'at least'): Written<Range> {
  return amount('a whole number or a range of them', units.COUNT_RANGE_PATTERN, (text) => {
    const range = units.parseCountRange(text, single === 'exactly')
    bounded(text, range.max ?? range.min ?? 0, { least: 0, most, format: String })
    return range
  })
}

const CENT: MicroUsd = 10_000
export const budget: Written<MicroUsd> = amount('an amount of US dollars', units.MONEY_PATTERN, (text) =>
  bounded(text, units.parseMoney(text), { least: CENT, most: LIMITS.budgetMicroUsd, format: formatUsd }),
)

export const deadline = text(units.parseDeadline)

/** A model by any of its names. An unknown one may be newer than our table, and is passed on unchanged. */
export const accelerator = text((written) => {
  const name = written.trim()
  if (/^[A-Za-z][\w .+-]{0,60}$/.test(name)) return findAccelerator(name)?.name ?? name
  if (/^[^,]+(?:,[^,]+)+$/.test(name))
    throw new UnitError(
      `${quote(written)} is several accelerators in one text`,
      `write a list: [ ${name
        .split(',')
        .map((one) => one.trim())
        .join(', ')} ]`,
    )
  const counted = /^([^:=]+)[:=]\s*(\d+)$/.exec(name)
  throw new UnitError(
    `${quote(written)} is not the name of an accelerator`,
    counted === null
      ? 'write its model, such as H100'
      : `write ${counted[1]!.trim()} here, and gpus: ${counted[2]}`,
  )
})

/** `train.py --lr 3`, as a command. */
export const script = text((written) => {
  const script = written.trim()
  if (PYTHON_SCRIPT.test(script)) return `python3 ${script}`
  const ofPython = /^python[\d.]* +(\S.*)$/.exec(script)?.[1] ?? ''
  const remedy = /\.py\b/.test(ofPython) ? ofPython : `run: ${script}`
  throw new UnitError(
    `${quote(written)} does not begin with a Python file of the working directory`,
    `write ${remedy}`,
  )
})
const PYTHON_SCRIPT = /^(?!["']?(?:\/|~|\.\.\/))(?:"[^"]+\.py"|'[^']+\.py'|[^\s"']+\.py)(?:[^\S\n].*)?$/

export const backendChoice = text(parseBackendChoice)

export function parseBackendChoice(text: string): BackendChoice {
  const [backend = '', type, ...rest] = text.trim().split(':')
  if (rest.length > 0 || !backendName.safeParse(backend).success) {
    throw new UnitError(
      `${quote(text)} is not a backend`,
      'write its name, such as local, or local:spot for one capacity type of it',
    )
  }
  if (type === undefined) return { backend }
  const capacityType = CAPACITY_TYPES.find((known) => known === type)
  if (capacityType !== undefined) return { backend, capacityType }
  throw new UnitError(
    `${quote(type)} is not a capacity type (${CAPACITY_TYPES.join(', ')})`,
    `write ${backend}:${nearest(type, CAPACITY_TYPES) ?? CAPACITY_TYPES[0]}, or ${backend} for any`,
  )
}

/** A single source keeps its file name. */
const inputEntry = z.union(
  [
    source.transform((from) => ({ source: from, path: undefined })),
    z.strictObject({ source, path: innerPath.optional() }),
  ],
  'must be a source, or a mapping with source and path',
)

/** A list of sources, or a mapping of paths to sources. */
export const inputs = z
  .union(
    [z.array(inputEntry).max(LIMITS.inputs), z.record(innerPath, source)],
    'must be a mapping of paths to sources, or a list',
  )
  .transform((value) =>
    Array.isArray(value)
      ? value.map((entry) => ({ source: entry.source, path: entry.path ?? lastName(entry.source) }))
      : Object.entries(value).map(([path, from]) => ({ source: from, path })),
  )

function lastName(from: string): string {
  const name = withoutEnd(new URL(from).pathname, '/').split('/').at(-1)!
  return name.replaceAll('%20', ' ')
}

const NTH = ['first', 'second', 'third', 'fourth', 'last'] as const

/** `15`, `last`, `first monday`, `last friday` */
export const dayRule: Written<DayRule> = amount(
  'a day such as 1, last or first monday',
  String.raw`^(?:\d{1,2}|last|(?:${NTH.join('|')}) [a-z]+)$`,
  (written) => {
    const [first = '', weekdayName] = written.trim().toLowerCase().split(/\s+/)
    if (weekdayName === undefined && first === 'last') return { kind: 'date', day: 'last' }
    if (weekdayName === undefined && /^\d+$/.test(first)) {
      return { kind: 'date', day: bounded(written, Number(first), { least: 1, most: 31, format: String }) }
    }
    const nth = NTH.findIndex((word) => word === first)
    const weekday = WEEKDAYS.find((name) => name === weekdayName)
    if (nth >= 0 && weekday !== undefined) return { kind: 'weekday', weekday, nth: NUMBERS[nth]! }
    const near = weekdayName === undefined ? undefined : nearest(weekdayName, WEEKDAYS)
    throw new UnitError(
      `${quote(written)} is not a day of the month`,
      `write 1 to 31, last, or ${nth >= 0 ? first : 'first'} ${near ?? 'monday'}`,
    )
  },
)
const NUMBERS = [1, 2, 3, 4, 'last'] as const

/** `06:00` */
export const timeOfDay = text((written) => {
  const match = /^(\d{1,2}):(\d\d)$/.exec(written.trim())
  const [hour, minute] = [Number(match?.[1]), Number(match?.[2])]
  if (match === null || hour > 23 || minute > 59)
    throw new UnitError(`${quote(written)} is not a time of day`, 'write hours and minutes, such as "06:00"')
  return { hour, minute }
})

/** The last whole period, or a number of days. */
export const dataWindow = text((written): { period: Period } | { days: number } => {
  const name = written.trim()
  const period = PERIODS.find((known) => known === name)
  if (period !== undefined) return { period }
  const days = /^(\d{1,4})\s*d(?:ays?)?$/.exec(name)?.[1]
  if (days !== undefined)
    return { days: bounded(written, Number(days), { least: 1, most: 3_660, format: (one) => `${one}d` }) }
  throw new UnitError(
    `${quote(written)} is not a data window`,
    `write ${PERIODS.join(', ')}, or days such as 90d`,
  )
})

/** `2%` of the value in production, or `0.05` in units of the metric. */
export const tolerance: Written<Tolerance> = amount(
  'a share such as 2%, or an amount',
  String.raw`^\s*\d+(?:\.\d+)?\s*%?\s*$`,
  (written) => {
    const match = /^(\d+(?:\.\d+)?(?:e-?\d+)?)\s*(%?)$/i.exec(written.trim())
    if (match === null)
      throw new UnitError(
        `${quote(written)} is not a tolerance`,
        'write a share such as 2%, or an amount such as 0.05',
      )
    const value = Number(match[1])
    return match[2] === '%' ? { kind: 'relative', value: value / 100 } : { kind: 'absolute', value }
  },
)
