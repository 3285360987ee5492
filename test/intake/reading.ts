import { parseJobFile, type Job } from '../../intake/job-file'
import { formatProblem, type Problem } from '../../intake/problem'

/** When the tests read their job files. */
export const NOW = Date.UTC(2026, 10, 21, 12)

export function parsed(text: string, fileName = 'job.yaml'): Job {
  const result = parseJobFile(text, { fileName, nowMs: NOW })
  if ('job' in result) return result.job
  throw new Error(result.problems.map(formatProblem).join('\n'))
}

export function problems(text: string): Problem[] {
  const result = parseJobFile(text, { fileName: 'job.yaml', nowMs: NOW })
  if ('problems' in result) return result.problems
  throw new Error(`it was read: ${JSON.stringify(result.job)}`)
}

/** The problems of a file as people see them, without its name. */
export function complaints(text: string): string[] {
  return problems(text).map((problem) => formatProblem(problem).replace(/^job\.yaml:/, ''))
}
