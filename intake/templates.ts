/** Texts of a retraining file with dates in them: `s3://data/{{ window.start }}/train.bin`. */
import type { Fault } from './problem'
import { nearest } from './nearest'
import { quote } from './units'

/** The values of a template's names. */
export type TemplateValues = Readonly<Record<string, string>>

const TEMPLATE = /\{\{([^{}]*)\}\}/g

/** Faults of all templates in a value: names that are unknown, and braces that never close. */
export function templateFaults(
  value: unknown,
  known: readonly string[],
  path: readonly PropertyKey[] = [],
): Fault[] {
  if (typeof value === 'string') return textFaults(value, known).map((fault) => ({ ...fault, path }))
  if (typeof value !== 'object' || value === null) return []
  const isList = Array.isArray(value)
  return Object.entries(value).flatMap(([name, inner]) => {
    const at = [...path, isList ? Number(name) : name]
    const ofName = isList
      ? []
      : textFaults(name, known).map((fault) => ({ ...fault, path: at, isAboutName: true }))
    return [...ofName, ...templateFaults(inner, known, at)]
  })
}

function textFaults(text: string, known: readonly string[]): Omit<Fault, 'path'>[] {
  const names = [...text.matchAll(TEMPLATE)].map(([, name = '']) => name.trim())
  const unknown = names.filter((name) => !known.includes(name))
  const faults = unknown.map((name) => {
    const near = nearest(name, known)
    const list = `the names are ${known.join(', ')}`
    return {
      message: `has {{ ${name} }}, which is not known here`,
      remedy: near === undefined ? list : `write {{ ${near} }}; ${list}`,
    }
  })
  if (!text.replaceAll(TEMPLATE, '').includes('{{')) return faults
  const message = `has {{ without }} in ${quote(text)}`
  return [...faults, { message, remedy: 'close it, such as {{ window.start }}' }]
}

/** A value with the templates in all its texts, and names of fields, replaced. */
export function filled<T>(value: T, values: TemplateValues): T {
  return fill(value, values) as T
}

function fill(value: unknown, values: TemplateValues): unknown {
  if (typeof value === 'string') {
    return value.replaceAll(TEMPLATE, (whole, name: string) => values[name.trim()] ?? whole)
  }
  if (Array.isArray(value)) return value.map((entry) => fill(entry, values))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [fill(name, values) as string, fill(inner, values)]),
  )
}
