/** Validates a client's input against the fields of an action. */
import type { z } from 'zod'
import { innermost, type Issue } from '../issues'
import { ApiError, type Style } from './errors'

/** Reads the input of an action; the first error becomes the answer, in the service's format. */
export function readInput<S extends z.ZodType>(schema: S, value: unknown, style: Style): z.output<S> {
  const read = schema.safeParse(value)
  if (read.success) return read.data
  const issues = read.error.issues.flatMap((issue) => innermost(issue))
  // An unknown name is more helpful than the errors that follow from it.
  const issue = issues.find(({ code }) => code === 'unrecognized_keys') ?? issues[0]!
  throw style === 'ec2' ? ec2Fault(issue, value) : otherFault(issue, style)
}

const isMissing = (issue: Issue): boolean =>
  issue.code === 'invalid_type' && issue.message.endsWith('received undefined')

function nameOf(path: readonly PropertyKey[]): string {
  return path.map(String).join('.')
}

function ec2Fault(issue: Issue, value: unknown): ApiError {
  const name = nameOf(issue.path)
  if (issue.code === 'unrecognized_keys')
    return new ApiError(
      'UnknownParameter',
      `The parameter ${nameOf([...issue.path, issue.keys[0]!])} is not recognized`,
    )
  if (isMissing(issue))
    return new ApiError('MissingParameter', `The request must contain the parameter ${name}`)
  const given = issue.path.reduce<unknown>(
    (at, part) =>
      typeof at === 'object' && at !== null ? (at as Record<PropertyKey, unknown>)[part] : undefined,
    value,
  )
  const shown = typeof given === 'string' ? given : JSON.stringify(given)
  return new ApiError(
    'InvalidParameterValue',
    `Value (${shown}) for parameter ${name} is invalid. ${issue.message}`,
  )
}

function otherFault(issue: Issue, style: Style): ApiError {
  const name = nameOf(issue.path)
  const code = style === 'json' ? 'ValidationException' : 'ValidationError'
  if (issue.code === 'unrecognized_keys')
    return new ApiError(
      code,
      `The parameter ${nameOf([...issue.path, issue.keys[0]!])} is not known to this small cloud`,
    )
  if (isMissing(issue))
    return new ApiError(
      code,
      `1 validation error detected: Value null at '${name}' failed to satisfy constraint: Member must not be null`,
    )
  return new ApiError(
    code,
    `1 validation error detected: Value at '${name}' failed to satisfy constraint: ${issue.message}`,
  )
}
