/** What a schema complains of. */
import type { z } from 'zod'

export type Issue = z.core.$ZodIssue

/** The complaint that was meant: of several alternatives the one that came furthest, or that has words of its own. */
export function innermost(issue: Issue, above: readonly PropertyKey[] = []): Issue[] {
  const path = [...above, ...issue.path]
  if (issue.code !== 'invalid_union' || issue.errors.length === 0) return [{ ...issue, path }]
  const branches = issue.errors.map((errors) => errors.flatMap((each) => innermost(each, path)))
  const weight = (issues: Issue[]): number =>
    Math.max(0, ...issues.map((each) => 2 * each.path.length + (each.code === 'custom' ? 1 : 0)))
  return branches.reduce((best, branch) => (weight(branch) > weight(best) ? branch : best))
}
