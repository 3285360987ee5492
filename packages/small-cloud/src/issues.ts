/** Formats the issues of a schema. */
import type { z } from 'zod'

export type Issue = z.core.$ZodIssue

/** Returns the most relevant issue: of several alternatives the deepest one, or one with its own message. */
export function innermost(issue: Issue, above: readonly PropertyKey[] = []): Issue[] {
  const path = [...above, ...issue.path]
  if (issue.code === 'invalid_key') return issue.issues.flatMap((each) => innermost(each, path))
  if (issue.code !== 'invalid_union' || issue.errors.length === 0) return [{ ...issue, path }]
  const branches = issue.errors.map((errors) => errors.flatMap((each) => innermost(each, path)))
  const weight = (issues: Issue[]): number =>
    Math.max(0, ...issues.map((each) => 2 * each.path.length + (each.code === 'custom' ? 1 : 0)))
  return branches.reduce((best, branch) => (weight(branch) > weight(best) ? branch : best))
}

/** Replaces the library's messages for people; `undefined` keeps the library's message. */
export function inWords({ input }: { input?: unknown }): string | undefined {
  return input === undefined ? 'is missing' : undefined
}

/** Returns each issue with its path: `faults.0.after: is missing`. */
export function complaintsOf({
  issues,
}: z.ZodError): { path: PropertyKey[]; isUnknown: boolean; words: string }[] {
  return issues
    .flatMap((issue) => innermost(issue))
    .map((issue) => {
      const isUnknown = issue.code === 'unrecognized_keys'
      const path = isUnknown ? [...issue.path, issue.keys[0]!] : issue.path
      const what = isUnknown ? `there is no field ${issue.keys.join(', ')} here` : issue.message
      return { path, isUnknown, words: `${path.map(String).join('.') || 'all of it'}: ${what}` }
    })
}
