/** Converts errors of the schema library to faults, in words for the author of the value. */
import type { z } from 'zod'
import { nearest } from './nearest'
import { formatPath, type Fault, type Path } from './problem'
import { allFields, fieldsAt } from './schema-walk'
import { INTERVALS, REMEDIES } from './synonyms'
import { quote } from './units'

type Issue = z.core.$ZodIssue

/** The value that was checked, for messages about it. */
export interface Checked {
  value: unknown
  schema: z.core.$ZodType
  /** Names of fields in other programs, and their names here. */
  synonyms: ReadonlyMap<string, string>
}

/** The faults behind a schema's issues with a value. */
export function faultsOf(issues: readonly Issue[], checked: Checked): Fault[] {
  return issues.flatMap(flatten).flatMap((issue) => faultsOfIssue(issue, checked))
}

/** For a union, the issues of the alternative with the same type as the value. */
function flatten(issue: Issue): Issue[] {
  if (issue.code !== 'invalid_union') return [issue]
  const meant = issue.errors.find((issues) => !issues.some(isOfAnotherKind))
  if (meant === undefined) return [issue]
  return meant.flatMap((inner) => flatten({ ...inner, path: [...issue.path, ...inner.path] }))
}

function isOfAnotherKind(issue: Issue): boolean {
  return issue.path.length === 0 && ['invalid_type', 'invalid_union', 'invalid_value'].includes(issue.code)
}

function faultsOfIssue(issue: Issue, checked: Checked): Fault[] {
  const { path } = issue
  const value = valueAt(checked.value, path)
  const fault = (message: string, remedy?: string): Fault[] => [{ path, message, remedy }]
  switch (issue.code) {
    case 'unrecognized_keys':
      return issue.keys.map((key) => unknownField([...path, key], checked))
    case 'invalid_type':
      return [{ path, ...typeFault(value, issue.expected), ...remedyOfKind(value, path, issue.expected) }]
    case 'invalid_union':
      return value === null
        ? [{ path, ...NO_VALUE }]
        : [
            {
              path,
              message: `${issue.message}, but is ${show(value)}`,
              ...remedyOfKind(value, path, 'array'),
            },
          ]
    case 'invalid_value':
      return [{ path, ...choiceFault(value, issue.values.map(String)) }]
    case 'too_big':
      return [{ path, ...lengthFault(value, String(issue.maximum)) }]
    case 'too_small':
      return fault(`must be at least ${issue.minimum}, but is ${show(value)}`)
    case 'custom':
      return fault(withValue(issue.message, value), issue.params?.remedy as string | undefined)
    case 'invalid_key':
      return faultsOfKey(issue, checked)
    case 'invalid_format':
    case 'invalid_element':
    case 'not_multiple_of':
      return fault(withValue(issue.message, value))
  }
}

function faultsOfKey(issue: z.core.$ZodIssueInvalidKey, checked: Checked): Fault[] {
  return issue.issues
    .flatMap((inner) => faultsOfIssue({ ...inner, path: [] }, { ...checked, value: issue.path.at(-1) }))
    .map((fault) => ({ ...fault, path: issue.path, isAboutName: true }))
}

/** The part that exceeds the limit, and the remedy; empty for a value that is neither a text nor a list. */
function lengthFault(value: unknown, most: string): Omit<Fault, 'path'> {
  if (typeof value === 'string') {
    return { message: `has ${value.length} characters of at most ${most}`, remedy: 'shorten it' }
  }
  if (Array.isArray(value)) {
    return { message: `has ${value.length} entries of at most ${most}`, remedy: 'remove some' }
  }
  return { message: `must be at most ${most}, but is ${show(value)}` }
}

/** Adds the value to a message that does not show it. */
function withValue(message: string, value: unknown): string {
  if (typeof value !== 'string') return message
  if (message.startsWith('is not ')) return `${quote(value)} ${message}`
  return message.startsWith('must be ') ? `${message}, but is ${quote(value)}` : message
}

/** Remedies for values of a wrong kind, for fields whose example says too little. */
function remedyOfKind(value: unknown, path: Path, expected: string): Pick<Fault, 'remedy'> {
  const name = String(path.at(-1))
  if (['run', 'setup'].includes(name) && Array.isArray(value))
    return { remedy: `write its entries as lines below ${name}: |` }
  if (name === 'secrets' && expected === 'array')
    return {
      remedy:
        'write the names only, such as secrets: [ HF_TOKEN ]; their values are read from the environment',
    }
  return {}
}

const NO_VALUE = { message: 'has no value', remedy: 'give it one, or remove it' }

const TYPE_WORDS: Readonly<Record<string, string>> = {
  string: 'a text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'a mapping of names to values',
  record: 'a mapping of names to values',
}

/** Booleans of YAML 1.1 and of everyday writing, which are texts in YAML 1.2. */
const BOOLEANS = new Map([
  ['yes', true],
  ['on', true],
  ['y', true],
  ['no', false],
  ['off', false],
  ['n', false],
])

function typeFault(value: unknown, expected: string): Omit<Fault, 'path'> {
  if (value === undefined) return { message: 'is missing' }
  if (value === null) return NO_VALUE
  const fault = { message: `must be ${TYPE_WORDS[expected] ?? expected}, but is ${show(value)}` }
  const isScalar = typeof value === 'number' || typeof value === 'boolean'
  if (expected === 'string' && isScalar) return { ...fault, remedy: `put it in quotes: "${value}"` }
  const meant = typeof value === 'string' ? BOOLEANS.get(value.toLowerCase()) : undefined
  return expected === 'boolean' && meant !== undefined ? { ...fault, remedy: `write ${meant}` } : fault
}

function choiceFault(value: unknown, choices: string[]): Omit<Fault, 'path'> {
  const message = `must be one of ${choices.join(', ')}, but is ${show(value)}`
  const meant = typeof value === 'string' ? (INTERVALS.get(value) ?? nearest(value, choices)) : undefined
  return meant === undefined ? { message } : { message, remedy: `write ${meant}` }
}

/** A field that is unknown at its place: misspelt, known by another name, or belonging elsewhere. */
function unknownField(path: Path, { schema, synonyms }: Checked): Fault {
  const name = String(path.at(-1))
  const siblings = fieldsAt(schema, path.slice(0, -1))
  const elsewhere = allFields(schema).find((field) => field.at(-1) === name)
  const fault = (remedy: string): Fault => ({
    path,
    isAboutName: true,
    message: 'is not a field',
    remedy,
  })
  if (elsewhere !== undefined) return fault(`write it as ${formatPath(elsewhere)}`)
  const remedy = synonyms.size > 0 ? REMEDIES.get(name.toLowerCase()) : undefined
  if (remedy !== undefined) return fault(remedy)
  const meant = synonyms.get(name.toLowerCase()) ?? nearest(name, siblings)
  if (meant !== undefined) return fault(`did you mean ${meant}?`)
  return fault(`remove it; valid fields here are ${siblings.join(', ')}`)
}

function valueAt(root: unknown, path: Path): unknown {
  return path.reduce<unknown>(
    (value, key) =>
      typeof value === 'object' && value !== null ? (value as Record<PropertyKey, unknown>)[key] : undefined,
    root,
  )
}

function show(value: unknown): string {
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'object' && value !== null) return 'a mapping'
  return typeof value === 'string' ? quote(value) : String(value)
}
