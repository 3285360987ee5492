/** Reader of a backend's settings from the environment. */
import { withoutEnd } from '../core/trim'
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../core/time/time'

/** Settings by name, as an environment has them. */
export type Settings = Readonly<Record<string, string | undefined>>

/** Why a text is not a value of its setting. */
export class Complaint {
  /** @param advice what to write instead */
  constructor(
    readonly advice: string,
    readonly isSecret = false,
  ) {}
}

export type Parser<T> = (text: string) => T | Complaint

/** Reads settings one by one, and collects their problems. */
export class SettingsReader {
  readonly problems: string[] = []

  /** @param stored values from elsewhere, for settings that the environment lacks */
  constructor(
    private readonly settings: Settings,
    private readonly stored: Settings = {},
  ) {}

  /** Returns `fallback` if the setting is missing or empty, or has a problem. */
  readonly read = <T>(name: string, fallback: T, parse: Parser<T>): T => {
    const text = this.settings[name]?.trim() || this.stored[name]
    if (text === undefined || text === '') return fallback
    const value = parse(text)
    if (!(value instanceof Complaint)) return value
    this.problems.push(`${name} is ${value.isSecret ? 'not usable' : `"${text}"`}: ${value.advice}`)
    return fallback
  }

  /** The config that was read, or every problem at once. */
  readonly result = <Config>(config: Config): { config: Config } | { problems: string[] } =>
    this.problems.length > 0 ? { problems: this.problems } : { config }
}

/** The parts of a list with commas. */
export const listOf = (text: string): string[] =>
  text
    .split(',')
    .map((one) => one.trim())
    .filter((one) => one !== '')

export const parseYesNo: Parser<boolean> = (text) => {
  if (/^(?:yes|true|on|1)$/i.test(text)) return true
  if (/^(?:no|false|off|0)$/i.test(text)) return false
  return new Complaint('write yes or no')
}

/** The address of a server, without slashes at its end. */
export const urlOr =
  (advice: string): Parser<string> =>
  (text) =>
    URL.canParse(text) && /^https?:/.test(text) ? withoutEnd(text, '/') : new Complaint(advice)

const UNITS_MS: Record<string, number> = { s: SECOND_MS, m: MINUTE_MS, h: HOUR_MS }

/** A duration in milliseconds, such as `90s`, that is at least and at most this long. */
export const durationWithin =
  ({
    leastMs = 1,
    mostMs = Infinity,
    advice,
  }: {
    leastMs?: number
    mostMs?: number
    advice: string
  }): Parser<number> =>
  (text) => {
    const match = /^(\d+(?:\.\d+)?)\s*([smh])$/.exec(text)
    const durationMs = match === null ? NaN : Math.round(Number(match[1]) * UNITS_MS[match[2]!]!)
    return durationMs >= leastMs && durationMs <= mostMs ? durationMs : new Complaint(advice)
  }
