import { InvalidArgumentError, Option, type Command } from 'commander'
import { parseDuration, UnitError } from '../../intake/units'
import { DAY_MS, SECOND_MS } from '../../core/time/time'
import { CrucibleError } from '../../client/errors'
import { FORMATS, type Format } from './answer'

/** The options of every command. */
export interface SharedOptions {
  output?: Format
  json?: true
  regions?: string[]
  region?: string[]
  profile?: string
  color: boolean
  emoji: boolean
  timeout?: number
  fresh?: true
}

export const TIMEOUT_MS = 60 * SECOND_MS

/** `a,b` and several flags alike. */
export function listArgument(text: string, before: string[] = []): string[] {
  const given = text
    .split(/[\s,]+/)
    .map((one) => one.trim())
    .filter((one) => one !== '')
  if (given.length === 0) throw new InvalidArgumentError('It is empty.')
  return [...before, ...given]
}

function timeoutArgument(text: string): number {
  // Seconds, as other tools take them.
  const timeoutMs = /^\d+$/.test(text.trim()) ? Number(text) * SECOND_MS : durationOf(text)
  if (timeoutMs > 0) return timeoutMs
  throw new InvalidArgumentError('Write more than 0, such as 30s or 5m.')
}

function durationOf(text: string): number {
  try {
    return parseDuration(text)
  } catch (error) {
    if (!(error instanceof UnitError)) throw error
    throw new InvalidArgumentError(`${error.message}; ${error.remedy}.`)
  }
}

/** A number above zero: `0.10`, `$0.10`. */
export function priceArgument(text: string): number {
  const price = Number(text.trim().replace(/^\$/, ''))
  if (text.trim() !== '' && price > 0) return price
  throw new InvalidArgumentError('Write dollars per hour, such as 0.10.')
}

/** Whole days: `7`, `7d`. */
export function daysArgument(text: string): number {
  const [, count] = /^(\d+(?:\.\d+)?)\s*(?:d|days?)?$/i.exec(text.trim()) ?? []
  if (count !== undefined && Number(count) > 0) return Number(count)
  throw new InvalidArgumentError('Write days, such as 7.')
}

/** `2027-01-15` (midnight UTC) or `2027-01-15T11:30:00Z`, in milliseconds. */
export function dateArgument(text: string): number {
  const trimmed = text.trim()
  const isDate = /^\d{4}-\d{2}-\d{2}$/.test(trimmed)
  const isInstant = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:\d{2})$/.test(trimmed)
  const atMs = isDate || isInstant ? Date.parse(trimmed) : NaN
  // `2027-02-30` is read as March.
  if (!Number.isNaN(atMs) && (!isDate || new Date(atMs).toISOString().startsWith(trimmed))) return atMs
  throw new InvalidArgumentError(
    'Write a date such as 2027-01-15, or an instant such as 2027-01-15T11:30:00Z.',
  )
}

/** A size in GiB: `64`, `64GiB`, `64GB`. */
export function gibArgument(text: string): number {
  const [, count, unit = 'gib'] = /^(\d+(?:\.\d+)?)\s*([a-z]*)$/i.exec(text.trim()) ?? []
  const factor = { gib: 1, gb: 1, g: 1, '': 1, tib: 1_024, tb: 1_024, mib: 1 / 1_024, mb: 1 / 1_024 }[
    unit.toLowerCase()
  ]
  if (count !== undefined && factor !== undefined) return Number(count) * factor
  throw new InvalidArgumentError('Write GiB, such as 64.')
}

const ARCHITECTURES: Readonly<Record<string, string>> = {
  x86_64: 'x86_64',
  amd64: 'x86_64',
  x64: 'x86_64',
  intel: 'x86_64',
  amd: 'x86_64',
  arm64: 'arm64',
  aarch64: 'arm64',
  arm: 'arm64',
  graviton: 'arm64',
  i386: 'i386',
}

export function architectureArgument(text: string): string {
  const known = ARCHITECTURES[text.trim().toLowerCase()]
  if (known !== undefined) return known
  throw new InvalidArgumentError('Write x86_64 or arm64.')
}

/** Hours of price history, at most the 90 days that AWS keeps. */
export function hoursArgument(text: string): number {
  const hours = /^\d+(\.\d+)?$/.test(text.trim()) ? Number(text) : durationOf(text) / (60 * 60 * SECOND_MS)
  const most = (90 * DAY_MS) / (60 * 60 * SECOND_MS)
  if (hours > 0 && hours <= most) return hours
  throw new InvalidArgumentError(`Write hours up to ${most}, the 90 days that AWS keeps.`)
}

/** Parses a format in upper or lower case: `JSON` is `json`. */
function formatArgument(formats: readonly Format[]): (text: string) => Format {
  return (text) => {
    const found = formats.find((format) => format === text.trim().toLowerCase())
    if (found !== undefined) return found
    throw new InvalidArgumentError(`Allowed choices are ${formats.join(', ')}.`)
  }
}

export function addShared(command: Command, { hasTerraform = false } = {}): Command {
  const formats = FORMATS.filter((format) => format !== 'terraform' || hasTerraform)
  return command
    .addOption(
      new Option('-o, --output <format>', 'format of the answer')
        .choices(formats)
        .argParser(formatArgument(formats)),
    )
    .option('--json', 'the same as --output json')
    .option(
      '-r, --regions <list>',
      'Regions to ask, separated by commas (default: all enabled ones)',
      listArgument,
    )
    .addOption(new Option('--region <list>').argParser(listArgument).hideHelp())
    .option('--profile <name>', 'profile of the AWS configuration')
    .option('--timeout <time>', 'give up on Regions that take longer (default: 60s)', timeoutArgument)
    .option('--fresh', 'ask again, instead of using answers of the last seconds')
    .option('--no-color', 'no colours')
    .option('--no-emoji', 'no emoji')
}

const REGION = /^[a-z]{2,4}(?:-[a-z]+)+-\d+$/

/** The Regions that a command asks, each once. */
export function regionsOf({
  regions = [],
  region = [],
}: Pick<SharedOptions, 'regions' | 'region'>): readonly string[] | 'all' {
  const named = [...new Set([...regions, ...region].map((name) => name.toLowerCase()))]
  if (named.length === 0 || (named.length === 1 && named[0] === 'all')) return 'all'
  for (const name of named) {
    if (REGION.test(name)) continue
    const [start] = /^[a-z-]+\d+/.exec(name) ?? []
    throw new CrucibleError('usage', `"${name}" is not a Region.`, {
      hint:
        start !== undefined && REGION.test(start)
          ? `It looks like a zone: --regions ${start} asks its Region.`
          : 'Write one such as us-east-1.',
    })
  }
  return named
}
